package bolt_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// BenchmarkMillionProducers fills a partition with a million producers of full windows and
// reports what one costs in memory, how long a snapshot and a start from it take, how
// long the slowest append waited meanwhile, and the rate of appends beside that of a
// partition with ten. Run it with -benchtime 1x: once is enough.
func BenchmarkMillionProducers(b *testing.B) {
	const many, few = 1_000_000, 10
	for b.Loop() {
		dir := b.TempDir()
		s, err := bolt.Open(dir, bolt.Options{RetentionInterval: time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		ctx := context.Background()
		topics := map[string]int{"few": few, "many": many}
		for name := range topics {
			if _, err := s.CreateTopic(ctx, name, 1, store.DefaultConfig()); err != nil {
				b.Fatal(err)
			}
		}
		for range many {
			if _, err := s.AllocateProducer(ctx, ""); err != nil {
				b.Fatal(err)
			}
		}
		before := heap()
		s.FillProducers(store.Partition{Topic: "many"}, many)
		b.ReportMetric(float64(heap()-before)/many, "B/producer")
		s.FillProducers(store.Partition{Topic: "few"}, few)

		// By turns, so that noise hits both.
		var took [2]time.Duration
		var seq [2]int64
		for range 5 {
			for i, name := range []string{"few", "many"} {
				start := time.Now()
				appendRounds(b, s, store.Partition{Topic: name}, topics[name], &seq[i], 20000)
				took[i] += time.Since(start)
			}
		}
		b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "rate-vs-ten")

		var snaps []store.Snapshot
		alone := longestAppend(b, s, func() { time.Sleep(5 * time.Second) })
		beside := longestAppend(b, s, func() {
			start := time.Now()
			snaps, err = s.TakeSnapshots(ctx, store.SnapshotFilter{Topic: "many"})
			if err != nil {
				b.Error(err)
			}
			b.ReportMetric(time.Since(start).Seconds(), "s/snapshot")
		})
		b.ReportMetric(alone.Seconds()*1000, "ms-longest-append-without")
		b.ReportMetric(beside.Seconds()*1000, "ms-longest-append")
		b.ReportMetric(float64(snaps[0].Bytes)/many, "B/producer-in-snapshot")
		if err := s.Crash(); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		s, err = bolt.Open(dir, bolt.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/start")
		if err := s.Crash(); err != nil {
			b.Fatal(err)
		}
	}
}

// appendRounds appends n batches of the next sequences, by 64 goroutines, each to
// producers of its own.
func appendRounds(b *testing.B, s *bolt.Store, p store.Partition, producers int, seq *int64, n int) {
	b.Helper()
	const workers = 10
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range n / workers {
				pid := int64(w)
				at := *seq + int64(i)
				if producers > workers { // another one each time
					pid, at = (int64(i)*workers+int64(w)+*seq*workers)%int64(producers), bolt.FilledSeq
				} else {
					at += bolt.FilledSeq
				}
				if _, err := s.Append(context.Background(), app(p, pid, 0, at, 1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	*seq += int64(n / workers)
}

// longestAppend appends one record after the other while during runs.
func longestAppend(b *testing.B, s *bolt.Store, during func()) time.Duration {
	b.Helper()
	var longest time.Duration
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		a := store.Append{Partition: store.Partition{Topic: "few"}, Batch: texts("x", 1)}
		for {
			select {
			case <-stop:
				return
			default:
			}
			start := time.Now()
			if _, err := s.Append(context.Background(), a); err != nil {
				b.Error(err)
				return
			}
			longest = max(longest, time.Since(start))
		}
	})
	during()
	close(stop)
	wg.Wait()
	return longest
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
