package storetest

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/store"
)

// Bounds are on what an engine remembers of producers. 0: the engine's own.
type Bounds struct {
	MaxProducers  int64 // live ones, in all partitions together
	MaxTombstones int   // expired ones, in each partition
}

func testBounds(t *testing.T, f Factory) {
	if f.OpenBounded == nil {
		t.Skip("the engine has no bounds that can be set")
	}
	tombs := Bounds{MaxTombstones: 3}
	t.Run("tombstones", func(t *testing.T) { tombstonesBounded(newBoundedEnv(t, f, tombs)) })
	t.Run("tombstones-epochs", func(t *testing.T) { tombstonesEpochs(newBoundedEnv(t, f, tombs)) })
	t.Run("tombstones-newcomers", func(t *testing.T) { tombstonesNewcomers(newBoundedEnv(t, f, tombs)) })
	t.Run("tombstones-snapshots", func(t *testing.T) { tombstonesSnapshots(newBoundedEnv(t, f, tombs)) })
	if !f.Traits.RealTime {
		t.Run("producers", func(t *testing.T) { producersBounded(newBoundedEnv(t, f, Bounds{MaxProducers: 3})) })
		t.Run("producers-one", func(t *testing.T) { producersOne(newBoundedEnv(t, f, Bounds{MaxProducers: 1})) })
	}
	if f.Traits.Slow {
		return
	}
	t.Run("nothing-twice", func(t *testing.T) {
		nothingTwice(t, newBoundedEnv(t, f, Bounds{MaxTombstones: 2, MaxProducers: 5}))
	})
}

func newBoundedEnv(t testing.TB, f Factory, b Bounds) *env {
	t.Helper()
	clock := NewClock()
	return &env{Store: f.OpenBounded(t, clock, b), t: t, ctx: t.Context(), f: f, clock: clock}
}

// restarts runs check as it is and after restarts of both kinds, if there are any.
func (e *env) restarts(check func()) {
	e.t.Helper()
	check()
	if e.f.Reopen == nil {
		return
	}
	for _, kill := range []bool{true, false, true} {
		e.restart(kill)
		check()
	}
}

// cutOff expects an append to be refused because nothing is known any more of producers
// like this one, whose epochs were at most the given one.
func (e *env) cutOff(a store.Append, epoch int64) {
	e.t.Helper()
	d := e.refused(a, store.CodeProducerExpired).Sequence
	if d == nil || d.LastSeq != nil || d.LastEpoch != epoch || d.ExpiredAt.IsZero() {
		e.t.Fatalf("append %s: %+v, want no last sequence, last epoch %d and a time", show(a), d, epoch)
	}
}

// used makes n producers store a batch of two each and expires them. The partition was
// empty.
func (e *env) used(p store.Partition, n int) []int64 {
	e.t.Helper()
	pids := make([]int64, n)
	for i := range pids {
		pids[i] = e.pid()
		e.stored(seq(p, pids[i], 0, 0, 2), int64(2*i))
	}
	for _, pid := range pids {
		e.expire(p, pid)
	}
	return pids
}

// tombstonesBounded: what a partition has dropped stays refused.
func tombstonesBounded(e *env) {
	p := e.topic()
	pids := e.used(p, 8)
	e.restarts(func() {
		e.t.Helper()
		for i, pid := range pids {
			for _, a := range []store.Append{seq(p, pid, 0, 0, 2), seq(p, pid, 0, 2, 1), seq(p, pid, 0, 0, 1)} {
				if i < 5 {
					e.cutOff(a, 0)
				} else {
					e.expired(a, 1, 0)
				}
			}
		}
		e.out(seq(p, pids[0], 1, 1, 1), 0, nil, nil)
	})
	if s := e.Stats(); !e.f.Traits.NoClose && s.Tombstones != 3 {
		e.t.Errorf("%d tombstones, want 3", s.Tombstones)
	}
	e.stored(seq(p, pids[0], 1, 0, 1), 16)
	e.fenced(seq(p, pids[0], 0, 0, 2), 1)
	e.expire(p, pids[0]) // below what was dropped already
	e.restarts(func() {
		e.t.Helper()
		e.cutOff(seq(p, pids[0], 1, 0, 1), 1)
		e.cutOff(seq(p, pids[1], 1, 0, 1), 1)
	})
	e.stored(seq(p, pids[1], 2, 0, 1), 17)
	e.stored(seq(p, pids[7], 1, 0, 1), 18)
}

// tombstonesEpochs: a dropped producer's later epochs are refused as its first is.
func tombstonesEpochs(e *env) {
	p := e.topic()
	high, low := e.pid(), e.pid()
	e.stored(seq(p, high, 0, 0, 1), 0)
	e.stored(seq(p, high, 7, 0, 1), 1)
	e.stored(seq(p, low, 0, 0, 1), 2)
	e.expire(p, high)
	e.expire(p, low)
	for i := range int64(3) {
		pid := e.pid()
		e.stored(seq(p, pid, 0, 0, 1), 3+i)
		e.expire(p, pid)
	}
	e.restarts(func() {
		e.t.Helper()
		for epoch := range int64(8) {
			e.cutOff(seq(p, high, epoch, 0, 1), 7)
			e.cutOff(seq(p, low, epoch, 0, 1), 7)
		}
	})
	e.stored(seq(p, low, 8, 0, 1), 6)
	e.stored(seq(p, high, 9, 0, 1), 7)
	e.fenced(seq(p, high, 8, 0, 1), 9)
}

// tombstonesNewcomers: new producers begin as ever; an old one that has sent nothing here
// yet cannot be told from one that is dropped, and begins with a higher epoch. Other
// partitions have nothing to do with it.
func tombstonesNewcomers(e *env) {
	p := e.topic()
	unused := e.pid()
	e.used(p, 5)
	fresh := e.pid()
	e.cutOff(seq(p, unused, 0, 0, 1), 0)
	e.stored(seq(p, fresh, 0, 0, 1), 10)
	e.stored(seq(p, unused, 1, 0, 1), 11)
	e.duplicate(seq(p, unused, 1, 0, 1), 11)
	other := e.topic()
	e.stored(seq(other, unused, 0, 0, 1), 0)
}

// tombstonesSnapshots: a snapshot holds what was dropped, wherever it is taken.
func tombstonesSnapshots(e *env) {
	p := e.topic(func(c *store.Config) { c.SegmentBytes = store.MinSegmentBytes })
	offset := int64(0)
	for i := range 12 {
		pid := e.pid()
		e.stored(seq(p, pid, int64(i%4), 0, 3), offset)
		offset += 3
		e.expire(p, pid)
		switch i {
		case 2, 5, 9:
			e.take(p)
		case 6, 8:
			e.roll(p)
		}
	}
	e.verifyAll(p)
	e.trim(p, 21, 21)
	if e.f.Sweep != nil {
		e.sweep()
	}
	e.restarts(func() {
		e.t.Helper()
		e.verifyAll(p)
	})
}

// producersBounded: beyond the store's limit the producer goes that has been quiet for
// longest, wherever that is.
func producersBounded(e *env) {
	p, q := e.topic(), e.topic()
	a, b, c, d := e.pid(), e.pid(), e.pid(), e.pid()
	e.stored(seq(p, a, 0, 0, 1), 0)
	e.clock.Add(time.Second)
	e.stored(seq(q, a, 0, 0, 1), 0)
	e.clock.Add(time.Second)
	e.stored(seq(p, b, 0, 0, 1), 1)
	e.clock.Add(time.Second)
	e.stored(seq(p, a, 0, 1, 1), 2) // so that a in q is the quietest
	e.clock.Add(time.Second)
	e.stored(seq(p, c, 0, 0, 1), 3)
	e.expired(seq(q, a, 0, 1, 1), 0, 0)
	e.stored(seq(q, d, 0, 0, 2), 1)
	e.expired(seq(p, b, 0, 1, 1), 0, 0)
	e.restarts(func() {
		e.t.Helper()
		if s := e.Stats(); !e.f.Traits.NoClose && s.Producers != 3 {
			e.t.Errorf("%d producers, want 3", s.Producers)
		}
		e.duplicate(seq(p, a, 0, 1, 1), 2)
		e.duplicate(seq(q, d, 0, 0, 2), 1)
		e.expired(seq(p, b, 0, 0, 1), 0, 0)
	})
	e.clock.Add(time.Second)
	e.stored(seq(q, b, 0, 0, 1), 3) // pushes out a in p
	e.expired(seq(p, a, 0, 2, 1), 1, 0)
	if err := e.DeleteTopic(e.ctx, p.Topic); err != nil { // which makes room
		e.t.Fatal(err)
	}
	e.stored(seq(q, c, 0, 0, 1), 4)
	e.duplicate(seq(q, d, 0, 0, 2), 1)
}

// producersOne: there is always room for the one that comes.
func producersOne(e *env) {
	p, q := e.topic(), e.topic()
	a, b := e.pid(), e.pid()
	for i := range int64(4) {
		e.stored(seq(p, a, i, 0, 1), 2*i)
		e.stored(seq(p, a, i, 1, 1), 2*i+1)
		e.stored(seq(q, b, i, 0, 1), i)
		e.expired(seq(p, a, i, 2, 1), 1, i)
	}
}

// nothingTwice appends at random with bounds that are reached all the time, and expects
// that no sequence of a producer's epoch is ever stored twice, that none is left out, and
// that no epoch comes back.
func nothingTwice(t *testing.T, e *env) {
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		p := e.named(fmt.Sprintf("twice-%d", runs), 1, func(c *store.Config) { c.MaxProducers = 3 })
		pids := make([]int64, 6)
		for i := range pids {
			pids[i] = e.pid()
		}
		steps := rapid.IntRange(1, 80).Draw(rt, "steps")
		for range steps {
			pid := rapid.SampledFrom(pids).Draw(rt, "pid")
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				_ = e.ExpireProducer(e.ctx, p, pid) // if it is there
			case 1:
				if e.f.Reopen != nil {
					e.restart(rapid.Bool().Draw(rt, "kill"))
				}
			default:
				epoch, base := rapid.Int64Range(0, 3).Draw(rt, "epoch"), rapid.Int64Range(0, 2).Draw(rt, "base")
				_, _ = e.Append(e.ctx, seq(p, pid, epoch, base, 1)) // or it is refused
			}
		}
		e.inSequence(rt, p)
		if err := e.DeleteTopic(e.ctx, p.Topic); err != nil {
			rt.Fatal(err)
		}
	})
}

// inSequence goes over a partition that was never trimmed.
func (e *env) inSequence(rt *rapid.T, p store.Partition) {
	type place struct{ epoch, next int64 }
	at := map[int64]place{}
	headers, err := e.Headers(e.ctx, p, 0, 10_000)
	if err != nil {
		rt.Fatal(err)
	}
	for _, h := range headers {
		was, known := at[h.Producer.ID]
		begins := h.Producer.BaseSeq == 0 && (!known || h.Producer.Epoch > was.epoch)
		goesOn := known && h.Producer.Epoch == was.epoch && h.Producer.BaseSeq == was.next
		if !begins && !goesOn {
			rt.Fatalf("at offset %d is %+v, after epoch %d up to sequence %d", h.BaseOffset, *h.Producer, was.epoch, was.next)
		}
		at[h.Producer.ID] = place{h.Producer.Epoch, h.Producer.BaseSeq + int64(h.Count())}
	}
}
