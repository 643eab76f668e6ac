package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oncelog/oncelog/store"
)

const (
	racers  = 3  // that send the same batches of one producer
	senders = 4  // producers
	rounds  = 25 // batches of each producer
)

func testConcurrency(t *testing.T, f Factory) {
	t.Run("retries", func(t *testing.T) { concurrentRetries(newEnv(t, f)) })
	t.Run("ids", func(t *testing.T) { concurrentIDs(newEnv(t, f)) })
	t.Run("everything", func(t *testing.T) { concurrentEverything(newEnv(t, f)) })
}

// race is what became of the batches of one producer.
type race struct {
	mu     sync.Mutex
	fresh  [rounds]int           // answers that were no duplicate
	offset [rounds]map[int64]int // base offsets that were named
}

// concurrentRetries: of batches that are sent many times at once each lands once, in
// order, and readers never see a gap.
func concurrentRetries(e *env) {
	p := e.topic()
	races := make([]*race, senders)
	stop := make(chan struct{})
	var writers, readers sync.WaitGroup
	for i := range senders {
		races[i] = &race{}
		pid := e.pid()
		for range racers {
			writers.Go(func() { e.runRacer(p, pid, i, races[i]) })
		}
	}
	for range 2 {
		readers.Go(func() { e.follow(p, stop) })
	}
	writers.Wait()
	close(stop)
	readers.Wait()

	values, err := readAll(e.ctx, e, p, 0, e.f.Traits)
	if err != nil {
		e.t.Fatal(err)
	}
	e.bounds(p, 0, int64(len(values)))
	for i, r := range races {
		next := 0
		for at, v := range values {
			if !strings.HasPrefix(v, fmt.Sprintf("s%d.", i)) {
				continue
			}
			if want := fmt.Sprintf("s%d.%d-0", i, next); v != want && !strings.HasSuffix(v, "-1") {
				e.t.Fatalf("%s at %d, want %s", v, at, want)
			}
			if strings.HasSuffix(v, "-1") {
				continue
			}
			if o := r.offset[next]; r.fresh[next] != 1 || len(o) > 2 || o[int64(at)] == 0 || (len(o) == 2 && o[-1] == 0) {
				e.t.Errorf("%s is at %d; %d answers called it new, they named %v", v, at, r.fresh[next], o)
			}
			next++
		}
		if next != rounds {
			e.t.Errorf("producer %d has %d batches, want %d", i, next, rounds)
		}
	}
}

// runRacer sends all batches of a producer, each until it is stored.
func (e *env) runRacer(p store.Partition, pid int64, sender int, r *race) {
	for i := range rounds {
		a := seqOf(p, pid, 0, int64(2*i), Batch(fmt.Sprintf("s%d.%d", sender, i), 2))
		ack, err := e.Append(e.ctx, a)
		if err != nil {
			e.t.Errorf("append %s: %v", show(a), err)
			return
		}
		r.mu.Lock()
		if !ack.Duplicate {
			r.fresh[i]++
		}
		if r.offset[i] == nil {
			r.offset[i] = map[int64]int{}
		}
		r.offset[i][ack.BaseOffset]++
		r.mu.Unlock()
	}
}

// follow reads on until stop, and fails the test when there is a gap or when what was
// read before is no longer the same.
func (e *env) follow(p store.Partition, stop <-chan struct{}) {
	var seen []string
	for {
		select {
		case <-stop:
			return
		default:
		}
		high, err := e.Bounds(e.ctx, p)
		if err != nil {
			e.t.Errorf("bounds: %v", err)
			return
		}
		values, err := readAll(e.ctx, e, p, 0, e.f.Traits)
		if err != nil {
			e.t.Errorf("read: %v", err)
			return
		}
		if int64(len(values)) < high.HighWatermark || len(values) < len(seen) || !slices.Equal(values[:len(seen)], seen) {
			e.t.Errorf("read %v, the high watermark was %d, and before that there was %v", values, high.HighWatermark, seen)
			return
		}
		seen = values
	}
}

func concurrentIDs(e *env) {
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				p, err := e.AllocateProducer(e.ctx, "")
				mu.Lock()
				if err != nil || seen[p.ID] {
					e.t.Errorf("id %d, seen before: %v, %v", p.ID, seen[p.ID], err)
				}
				seen[p.ID] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// concurrentEverything calls all there is at once. Whatever is answered must be
// consistent in itself, and all snapshots must match the log.
func concurrentEverything(e *env) {
	p := e.topic(func(c *store.Config) { c.SegmentBytes = store.MinSegmentBytes })
	ctx, stop := e.ctx, make(chan struct{}) // a call that is cancelled may take effect later
	var writers, others sync.WaitGroup
	for range senders {
		pid := e.pid()
		writers.Go(func() {
			for i := range int64(rounds) {
				if _, err := e.Append(e.ctx, seq(p, pid, 0, i, 1)); err != nil {
					e.t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	for what, call := range map[string]func() error{
		"trim": func() error {
			b, err := e.Bounds(ctx, p)
			if err == nil {
				_, err = e.Trim(ctx, p, b.Earliest+(b.HighWatermark-b.Earliest)/2)
			}
			return err
		},
		"roll": func() error { _, err := e.Roll(ctx, p); return err },
		"take": func() error { _, err := e.TakeSnapshots(ctx, store.SnapshotFilter{Topic: p.Topic}); return err },
		"list": func() error { _, err := e.Producers(ctx, -1, 100); return err },
		"info": func() error { _, err := e.Partition(ctx, p); return err },
		"read": func() error {
			b, err := e.Bounds(ctx, p)
			if err != nil {
				return err
			}
			_, err = readAll(ctx, e, p, b.Earliest, e.f.Traits)
			if store.CodeOf(err) == store.CodeRecordsTrimmed {
				return nil // while it was on its way
			}
			return err
		},
	} {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := call(); err != nil {
					e.t.Errorf("%s: %v", what, err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	others.Wait()
	if b, err := e.Bounds(e.ctx, p); err != nil || b.HighWatermark != senders*rounds {
		e.t.Errorf("bounds %+v, %v", b, err)
	}
	e.verifyAll(p)
}
