package bolt_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/bolt"
)

// BenchmarkCommit is one durable transaction with so many batches of a 1 KiB record,
// each of another producer, from their arrival in the queue to the last acknowledgement.
func BenchmarkCommit(b *testing.B) {
	for _, batches := range []int{1, 64, 1000} {
		b.Run(fmt.Sprintf("batches=%d", batches), func(b *testing.B) {
			s := openBench(b)
			waiting, stop := startAppenders(b, s, batches)
			before := s.Stats()
			b.ReportAllocs()
			b.SetBytes(int64(batches) << 10)
			for b.Loop() {
				b.StopTimer()
				release := s.Block()
				waiting.start(s)
				b.StartTimer()
				release()
				waiting.done.Wait()
			}
			after := s.Stats()
			stop()
			b.ReportMetric(float64(after.Records-before.Records)/float64(after.Commits-before.Commits), "records/commit")
		})
	}
}

// BenchmarkRead reads a partition from beginning to end in pages of 1 MiB. An operation
// is a page.
func BenchmarkRead(b *testing.B) {
	const total = 64 << 20
	for _, records := range []int{1, 100, 1024} {
		b.Run(fmt.Sprintf("batch=%dx1KiB", records), func(b *testing.B) {
			s := openBench(b)
			ctx, p := context.Background(), store.Partition{Topic: "t"}
			payload := benchBatch(records)
			var filling sync.WaitGroup
			for range 8 {
				filling.Go(func() {
					for range total / 8 / payload.PayloadBytes {
						if _, err := s.Append(ctx, store.Append{Partition: p, Batch: payload}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			filling.Wait()
			b.ReportAllocs()
			var offset, bytes int64
			for b.Loop() {
				got, err := s.Read(ctx, store.Read{Partition: p, Offset: offset, MaxRecords: store.MaxReadRecords, MaxBytes: 1 << 20})
				if err != nil {
					b.Fatal(err)
				}
				for i := range got.Batches {
					bytes += int64(len(got.Batches[i].Bytes))
				}
				offset = got.Batches[len(got.Batches)-1].LastOffset + 1
				if offset == got.HighWatermark {
					offset = 0
				}
			}
			b.SetBytes(bytes / int64(b.N))
		})
	}
}

func openBench(b *testing.B) *bolt.Store {
	b.Helper()
	s, err := bolt.Open(b.TempDir(), bolt.Options{QueueLength: 4096})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	if _, err := s.CreateTopic(context.Background(), "t", 1, store.DefaultConfig()); err != nil {
		b.Fatal(err)
	}
	return s
}

func benchBatch(records int) batch.Batch {
	var b batch.Builder
	for range records {
		b.Add(&batch.Record{Value: make([]byte, 1024), Timestamp: batch.NoTimestamp})
	}
	return b.Build()
}

// appenders append one batch each whenever they are started.
type appenders struct {
	n     int
	turns chan struct{}
	done  sync.WaitGroup
}

func startAppenders(b *testing.B, s *bolt.Store, n int) (a *appenders, stop func()) {
	b.Helper()
	a = &appenders{n: n, turns: make(chan struct{})}
	payload := benchBatch(1)
	var running sync.WaitGroup
	for range n {
		pid, err := s.AllocateProducer(context.Background(), "")
		if err != nil {
			b.Fatal(err)
		}
		running.Go(func() {
			r := store.Append{Partition: store.Partition{Topic: "t"}, Producer: &store.ProducerSeq{ID: pid.ID}, Batch: payload}
			for range a.turns {
				if _, err := s.Append(context.Background(), r); err != nil {
					b.Error(err)
				}
				r.Producer.BaseSeq++
				a.done.Done()
			}
		})
	}
	return a, func() {
		close(a.turns)
		running.Wait()
	}
}

// start puts a batch of each appender into the queue of an engine whose committer is
// blocked, and returns when all of them wait.
func (a *appenders) start(s *bolt.Store) {
	a.done.Add(a.n)
	for range a.n {
		a.turns <- struct{}{}
	}
	for s.QueueLen() < a.n {
		runtime.Gosched()
	}
}
