package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/sequence"
)

// Result is what was proved of a partition, and what is wrong with it.
type Result struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	// Offsets from EarliestOffset on and below NextOffset were looked at.
	EarliestOffset int64 `json:"earliestOffset"`
	NextOffset     int64 `json:"nextOffset"`
	Batches        int64 `json:"batches"`
	Records        int64 `json:"records"`
	Bytes          int64 `json:"bytes"`
	Segments       int64 `json:"segments"` // closed ones
	// Producers are those whose state is the one that follows from the log. Of Older ones
	// all batches are below the log. Expired ones are in the log, and the server knows that
	// they have expired and after which batch.
	Producers int64 `json:"producers"`
	Older     int64 `json:"older"`
	Expired   int64 `json:"expired"`
	Snapshots int64 `json:"snapshots"`
	// Problems are sentences, one for each fault.
	Problems []string `json:"problems"`
}

// mostProblems bounds those that are told.
const mostProblems = 1000

// wireTime is how times are written.
const wireTime = "2006-01-02T15:04:05.000Z"

// tries is how often a partition is begun anew because retention was faster.
const tries = 5

// Partition verifies a partition. An error means that it could not be. progress, if not
// nil, is told of the records looked at and of their number.
func Partition(ctx context.Context, c *producer.Client, topic string, partition int, progress func(done, total int64)) (*Result, error) {
	var v *verifier
	var err error
	for range tries {
		v = &verifier{
			client: c, progress: progress, states: map[int64]*sequence.State{}, sums: map[int64]*sum{},
			Result: Result{Topic: topic, Partition: partition, Problems: []string{}},
		}
		if err = v.run(ctx); !errors.Is(err, producer.CodeRecordsTrimmed) {
			break
		}
	}
	if errors.Is(err, producer.CodeRecordsDamaged) { // of the partition as a whole
		v.bad("%s", detail(err))
		err = nil
	}
	return &v.Result, err
}

type verifier struct {
	Result
	client   *producer.Client
	progress func(done, total int64)
	segments []openapi.Segment
	sums     map[int64]*sum            // of segments, by base offset
	states   map[int64]*sequence.State // of producers, by what has been read of the log
	waiting  map[int64]*openapi.PartitionProducer
	// damaged: a batch could not be read, so that nothing can be said of what follows
	// from it.
	damaged bool
}

// sum is what the batches of a segment add up to.
type sum struct{ bytes, batches int64 }

func (v *verifier) bad(format string, args ...any) {
	if len(v.Problems) < mostProblems {
		v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
	}
}

func (v *verifier) run(ctx context.Context) error {
	info, err := v.client.Partition(ctx, v.Topic, v.Partition)
	if err != nil {
		return err
	}
	v.segments = info.Segments
	v.EarliestOffset, v.NextOffset = info.EarliestOffset, info.EarliestOffset
	if err := v.log(ctx, info.NextOffset); err != nil {
		return err
	}
	v.totals()
	if err := v.producers(ctx); err != nil {
		return err
	}
	return v.snapshots(ctx)
}

// totals compares segments that were closed with what their batches add up to.
func (v *verifier) totals() {
	for i, s := range v.segments {
		last := i == len(v.segments)-1
		if !last && s.NextOffset != v.segments[i+1].BaseOffset {
			v.bad("segment %d ends below offset %d, the next one begins at %d", s.BaseOffset, s.NextOffset, v.segments[i+1].BaseOffset)
		}
		if last || s.BaseOffset < v.EarliestOffset || v.damaged {
			continue
		}
		got := v.sums[s.BaseOffset]
		if got == nil || got.bytes != s.Bytes || got.batches != s.Batches {
			v.bad("segment %d is said to hold %d batches and %d bytes, which its batches do not add up to", s.BaseOffset, s.Batches, s.Bytes)
			continue
		}
		v.Segments++
	}
}

// producers compares the state of each producer with the log.
func (v *verifier) producers(ctx context.Context) error {
	page := producer.Page{Limit: 1000}
	live := map[int64]bool{}
	for {
		list, err := v.client.PartitionProducers(ctx, v.Topic, v.Partition, page)
		if err != nil {
			return err
		}
		// What was stored after the log was read decides about those that went on.
		v.waiting = map[int64]*openapi.PartitionProducer{}
		for i := range list.Items {
			p := &list.Items[i]
			live[p.PID] = true
			if p.LastOffset >= v.NextOffset {
				v.waiting[p.PID] = p
				continue
			}
			v.compare(p, v.states[p.PID])
		}
		if len(v.waiting) > 0 {
			if err := v.catchUp(ctx); err != nil {
				return err
			}
		}
		if list.NextPageToken == nil || *list.NextPageToken == "" {
			break
		}
		page.Token = *list.NextPageToken
	}
	for _, pid := range slices.Sorted(maps.Keys(v.states)) {
		if live[pid] || v.damaged {
			continue
		}
		if err := v.expired(ctx, pid); err != nil {
			return err
		}
	}
	return nil
}

// expired makes sure that of a producer in the log that has no state any more the server
// knows so much as that it has expired, and after which batch. Otherwise it would take a
// repeat of an old batch for a new one.
func (v *verifier) expired(ctx context.Context, pid int64) error {
	for again := range 2 {
		p, err := v.client.PartitionProducer(ctx, v.Topic, v.Partition, pid)
		if err == nil { // it has come back since the list was made
			v.waiting = map[int64]*openapi.PartitionProducer{}
			if p.LastOffset < v.NextOffset {
				v.compare(&p, v.states[pid])
				return nil
			}
			v.waiting[pid] = &p
			return v.catchUp(ctx)
		}
		e, ok := errors.AsType[*producer.Error](err)
		if !ok || e.Code != producer.CodeUnknownProducerID || e.Problem == nil {
			return err
		}
		wrong := v.leftOver(pid, e.Problem)
		if wrong == "" {
			v.Expired++
			return nil
		}
		if again == 1 {
			v.bad("%s", wrong)
			return nil
		}
		if err := v.catchUp(ctx); err != nil { // it may have sent more before it expired
			return err
		}
	}
	return nil
}

// leftOver says how what is left of an expired producer differs from the log.
func (v *verifier) leftOver(pid int64, p *openapi.Problem) string {
	state := v.states[pid]
	switch {
	case p.ExpiredAt == nil || p.LastEpoch == nil:
		return fmt.Sprintf("producer %d is in the log, and the server knows nothing of it", pid)
	case p.LastSeq.Value == nil: // it is one of many old ones that are treated alike
		if *p.LastEpoch >= state.Epoch() {
			return ""
		}
	case *p.LastEpoch == state.Epoch() && *p.LastSeq.Value == state.LastSeq():
		return ""
	}
	return fmt.Sprintf("producer %d is said to have expired in epoch %d, and by the log it has been at epoch %d, sequence %d",
		pid, *p.LastEpoch, state.Epoch(), state.LastSeq())
}

// catchUp reads what has been appended since. Producers that wait are compared on the way.
func (v *verifier) catchUp(ctx context.Context) error {
	info, err := v.client.Partition(ctx, v.Topic, v.Partition)
	if err != nil {
		return err
	}
	if err := v.log(ctx, info.NextOffset); err != nil {
		return err
	}
	for pid, p := range v.waiting {
		if !v.damaged {
			v.bad("producer %d is said to have stored offset %d, where no batch of it ends", pid, p.LastOffset)
		}
	}
	v.waiting = nil
	return nil
}

// compare holds a producer's state as the server tells it to the one that follows from the
// log, as far as that goes back.
func (v *verifier) compare(p *openapi.PartitionProducer, state *sequence.State) {
	if v.damaged {
		return
	}
	trimmed := v.EarliestOffset > 0
	if state == nil {
		if !trimmed || p.LastOffset >= v.EarliestOffset {
			v.bad("producer %d has state, and the log has no batch of it", p.PID)
			return
		}
		v.Older++
		return
	}
	if p.Epoch != state.Epoch() || p.LastSeq != state.LastSeq() || p.LastOffset != state.LastOffset() {
		v.bad("producer %d is said to be at epoch %d, sequence %d, offset %d; by the log it is at epoch %d, sequence %d, offset %d",
			p.PID, p.Epoch, p.LastSeq, p.LastOffset, state.Epoch(), state.LastSeq(), state.LastOffset())
		return
	}
	want := state.Recent()
	got := p.Recent
	if extra := len(got) - len(want); extra > 0 && trimmed && got[extra-1].BaseOffset < v.EarliestOffset {
		got = got[extra:] // the log no longer has them
	}
	same := len(got) == len(want) && len(p.Recent) > 0 && p.FirstSeq == p.Recent[0].BaseSeq &&
		p.LastTimestamp == time.UnixMilli(state.LastTimestamp()).UTC().Format(wireTime)
	for i := 0; same && i < len(got); i++ {
		same = got[i].BaseSeq == want[i].BaseSeq && got[i].LastSeq == want[i].LastSeq && got[i].BaseOffset == want[i].BaseOffset
	}
	if !same {
		v.bad("producer %d: the batches that the server remembers, or their time, are not those that the log ends with", p.PID)
		return
	}
	v.Producers++
}

// snapshots has the server rebuild the state at each snapshot from the log.
func (v *verifier) snapshots(ctx context.Context) error {
	page := producer.Page{Limit: 1000}
	for {
		list, err := v.client.Snapshots(ctx, producer.SnapshotFilter{Topic: v.Topic, Partition: &v.Partition}, page)
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := v.snapshot(ctx, list.Items[i].Offset); err != nil {
				return err
			}
		}
		if list.NextPageToken == nil || *list.NextPageToken == "" {
			return nil
		}
		page.Token = *list.NextPageToken
	}
}

func (v *verifier) snapshot(ctx context.Context, offset int64) error {
	diff, err := v.client.VerifySnapshot(ctx, v.Topic, v.Partition, offset)
	switch {
	case errors.Is(err, producer.CodeUnknownSnapshot): // a newer one has replaced it
		return nil
	case errors.Is(err, producer.CodeRecordsDamaged):
		v.bad("snapshot at offset %s: %s", strconv.FormatInt(offset, 10), detail(err))
		return nil
	case err != nil:
		return err
	case !diff.Match:
		v.bad("snapshot at offset %d: %v", offset, diff.Differences)
		return nil
	}
	v.Snapshots++
	return nil
}

func detail(err error) string {
	if e, ok := errors.AsType[*producer.Error](err); ok {
		return e.Detail
	}
	return err.Error()
}
