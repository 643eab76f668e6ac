package bolt_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// BenchmarkAppend appends batches of one 1 KiB record, each producer one at a time.
// Compare bytes, allocations and records/commit, and the rate with that of 64 producers
// in another shape; the time itself is that of the disk.
func BenchmarkAppend(b *testing.B) {
	for _, shape := range []struct {
		name       string
		partitions int
		producers  int
	}{
		{"partitions=1/producers=1", 1, 1},
		{"partitions=1/producers=64", 1, 64},
		{"partitions=64/producers=64", 64, 64},
	} {
		b.Run(shape.name, func(b *testing.B) {
			s, err := bolt.Open(b.TempDir(), bolt.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			ctx := context.Background()
			if _, err := s.CreateTopic(ctx, "t", shape.partitions, store.DefaultConfig()); err != nil {
				b.Fatal(err)
			}
			payload := large(1024)
			var started atomic.Int64
			b.ReportAllocs()
			b.SetBytes(1024)
			b.SetParallelism(max(1, shape.producers/2))
			b.RunParallel(func(pb *testing.PB) {
				n := started.Add(1) - 1
				if n >= int64(shape.producers) {
					return
				}
				pid, err := s.AllocateProducer(ctx, "")
				if err != nil {
					b.Error(err)
					return
				}
				a := store.Append{
					Partition: store.Partition{Topic: "t", Number: int(n) % shape.partitions},
					Producer:  &store.ProducerSeq{ID: pid.ID}, Batch: payload,
				}
				for pb.Next() {
					if _, err := s.Append(ctx, a); err != nil {
						b.Error(err)
						return
					}
					a.Producer.BaseSeq++
				}
			})
			st := s.Stats()
			b.ReportMetric(float64(st.Records)/float64(st.Commits), "records/commit")
		})
	}
}
