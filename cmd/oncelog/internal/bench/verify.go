package bench

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/producer"
)

// verifier holds what a topic has at the end against what the answers said.
type verifier struct {
	client *producer.Client
	topic  Topic
	starts []int64 // each partition's next offset at the beginning
}

// begin looks at where the topic ends.
func (v *verifier) begin(ctx context.Context) (err error) {
	v.starts, err = v.offsets(ctx)
	return err
}

// offsets gives each partition's next offset.
func (v *verifier) offsets(ctx context.Context) ([]int64, error) {
	all := make([]int64, v.topic.Partitions)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for n := range all {
		group.Go(func() error {
			p, err := v.client.Partition(ctx, v.topic.Name, n)
			all[n] = p.NextOffset
			return err
		})
	}
	return all, group.Wait()
}

// end compares. told gives what the answers said of a partition: how many records, and
// the sum of their offsets modulo 2^64; and whether they said it of all that was sent.
// Where every record was counted once, neither one too many nor a lost one can hide: the
// offsets are as many as the partition has, and have the same sum.
func (v *verifier) end(ctx context.Context, total *Total, told func(partition int) (records int64, offsets uint64, all bool)) error {
	ends, err := v.offsets(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for p, end := range ends {
		records, offsets, all := told(p)
		stored := end - v.starts[p]
		total.TopicRecords += stored
		switch {
		case stored < records:
			errs = append(errs, fmt.Errorf("%w: partition %d holds %d new records, and %d were acknowledged", errAnswer, p, stored, records))
		case !v.topic.Own || !all:
		case stored > records:
			errs = append(errs, fmt.Errorf("%w: partition %d holds %d new records, and only %d were sent", errAnswer, p, stored, records))
		case offsets != sumBetween(v.starts[p], end):
			errs = append(errs, fmt.Errorf("%w: partition %d: an offset was given twice, and another one not at all", errAnswer, p))
		}
	}
	return errors.Join(errs...)
}

// sumBetween is the sum of the numbers from start to end−1, modulo 2^64.
func sumBetween(start, end int64) uint64 {
	n, sum := big.NewInt(end-start), big.NewInt(start+end-1)
	n.Mul(n, sum).Rsh(n, 1)
	return n.And(n, new(big.Int).SetUint64(1<<64-1)).Uint64()
}
