package bolt_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// jumpingClock is the clock of a machine: a wall clock that somebody sets, and the time that
// really passes. A test cannot set the machine's own. The engine reads the wall clock once,
// at its start, and from then on only what has passed since (Options.Now says so).
type jumpingClock struct {
	passed time.Duration
	wall   time.Time // at the start of the test, as it is set now
}

func (c *jumpingClock) set() time.Time { return c.wall.Add(c.passed) }

// started is the clock that an engine has which starts now.
func (c *jumpingClock) started() func() time.Time {
	wall, passed := c.set(), c.passed
	return func() time.Time { return wall.Add(c.passed - passed) }
}

// TestClockJumps sets the clock of the machine forth and back by a day, again and again, and
// restarts the engine cleanly and not. Arrival times never go back. A producer expires when
// it has been idle for its time by the engine's clock, and not before: a jump while the
// engine runs changes nothing; a restart after one forth is like a day off; after one back
// time stands still until it is caught up with, so that nobody expires too early.
func TestClockJumps(t *testing.T) {
	const expiry = time.Minute
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	clock := &jumpingClock{wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	o := bolt.Options{DiskReserve: -1, RetentionInterval: time.Hour, Now: clock.started()}
	r := &rig{t: t, dir: shm(t), opts: o, log: &logBuffer{}}
	r.open()
	t.Cleanup(func() {
		if r.Store != nil {
			_ = r.Store.Close()
		}
	})
	p := r.topic("t", func(c *store.Config) { c.ProducerExpiryMs = expiry.Milliseconds() })
	type idle struct {
		pid, epoch, next int64
		last             time.Time
	}
	var all []*idle
	for range 4 {
		all = append(all, &idle{pid: r.pid()})
	}
	var latest time.Time // that the engine has shown
	jumps, restarts, expired, stored := 0, 0, 0, 0
	for range 2500 {
		switch n := rnd.IntN(20); {
		case n == 0:
			clock.wall = clock.wall.Add([]time.Duration{-24 * time.Hour, 24 * time.Hour}[rnd.IntN(2)])
			jumps++
		case n == 1:
			// What nobody has stored anything at is not kept over a crash.
			ack, err := r.Append(context.Background(), store.Append{Partition: p, Batch: texts("plain", 1)})
			if err != nil {
				t.Fatal(err)
			}
			latest = ack.AppendedAt
			if rnd.IntN(2) == 0 {
				r.crash()
			} else {
				r.close()
			}
			r.opts.Now = clock.started()
			r.open()
			restarts++
		case n == 2: // so that a clock that was set back catches up
			clock.passed += time.Duration(rnd.IntN(12*3600)) * time.Second
		case n < 11:
			clock.passed += time.Duration(rnd.IntN(15_000)) * time.Millisecond
		default:
			pr := all[rnd.IntN(len(all))]
			if now := r.opts.Now(); now.After(latest) {
				latest = now
			}
			gone := !pr.last.IsZero() && latest.Sub(pr.last) >= expiry
			ack, err := r.Append(context.Background(), app(p, pr.pid, pr.epoch, pr.next, 1))
			switch {
			case gone && store.CodeOf(err) != store.CodeProducerExpired:
				t.Fatalf("a producer that was idle for %v: %v", latest.Sub(pr.last), err)
			case gone: // it begins anew
				expired++
				pr.epoch, pr.next, pr.last = pr.epoch+1, 0, time.Time{}
			case err != nil:
				t.Fatalf("a producer that was idle for %v: %v", latest.Sub(pr.last), err)
			case !ack.AppendedAt.Equal(latest):
				t.Fatalf("stored at %v, it is %v", ack.AppendedAt, latest)
			default:
				stored++
				pr.next, pr.last = pr.next+1, latest
			}
		}
	}
	r.crash()
	r.check()
	t.Logf("%d jumps of a day, %d restarts: %d batches stored, %d expiries, each at its time", jumps, restarts, stored, expired)
	if expired == 0 || stored == 0 {
		t.Error("nothing has expired, or all")
	}
}
