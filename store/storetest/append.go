package storetest

import (
	"testing"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// testAppendRule goes through the rule's table: each row in a topic of its own, and
// after each refusal everything must be as before.
func testAppendRule(t *testing.T, f Factory) {
	rows := []struct {
		name string
		run  func(e *env, p store.Partition, pid int64)
	}{
		{"in-order", ruleInOrder},
		{"must-start-at-zero", ruleStart},
		{"gap", ruleGap},
		{"overlap", ruleOverlap},
		{"reused", ruleReused},
		{"epochs", ruleEpochs},
		{"epoch-before-sequence", ruleEpochFirst},
		{"tombstone", ruleTombstone},
		{"limits-of-numbers", ruleLargest},
		{"independent", ruleIndependent},
		{"plain", rulePlain},
	}
	e := newEnv(t, f)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			e.t = t
			row.run(e, e.topic(), e.pid())
		})
	}
}

// unchanged runs what is to be refused and expects that log and state stay as they were.
func (e *env) unchanged(p store.Partition, pid int64, refuse func()) {
	e.t.Helper()
	bounds, before := e.partition(p), e.state(p, pid)
	refuse()
	after := e.state(p, pid)
	if after.State != before.State {
		e.t.Errorf("the state is now %+v, it was %+v", after.State, before.State)
	}
	if now := e.partition(p); now.Bounds != bounds.Bounds || now.Bytes != bounds.Bytes {
		e.t.Errorf("the partition is now %+v, it was %+v", now, bounds)
	}
}

func ruleInOrder(e *env, p store.Partition, pid int64) {
	first := e.stored(seq(p, pid, 0, 0, 3), 0)
	if !e.f.Traits.RealTime && !sameTime(first.AppendedAt, e.clock.Now()) {
		e.t.Errorf("appended at %v, want %v", first.AppendedAt, e.clock.Now())
	}
	e.stored(seq(p, pid, 0, 3, 1), 3)
	e.stored(seq(p, pid, 0, 4, 10), 4)
	s := e.state(p, pid).State
	if s.Epoch() != 0 || s.FirstSeq() != 0 || s.NextSeq() != 14 || s.LastOffset() != 13 || len(s.Recent()) != 3 {
		e.t.Errorf("state %+v", s)
	}
	if !sameTime(e.state(p, pid).ExpiresAt, unixMilli(s.LastTimestamp()+store.DefaultConfig().ProducerExpiryMs)) {
		e.t.Errorf("expires at %v, last batch at %v", e.state(p, pid).ExpiresAt, unixMilli(s.LastTimestamp()))
	}
	e.bounds(p, 0, 14)
}

func ruleStart(e *env, p store.Partition, pid int64) {
	e.out(seq(p, pid, 0, 5, 1), 0, nil, nil)
	e.out(seq(p, pid, 3, 1, 2), 0, nil, nil)
	_, err := e.PartitionProducer(e.ctx, p, pid)
	e.coded("state after refusals", err, store.CodeUnknownProducerID)
	e.bounds(p, 0, 0)
	e.stored(seq(p, pid, 0, 0, 1), 0)
}

func ruleGap(e *env, p store.Partition, pid int64) {
	e.stored(seq(p, pid, 2, 0, 2), 0)
	e.unchanged(p, pid, func() {
		for _, base := range []int64{3, 4, 1000, sequence.Max} {
			e.out(seq(p, pid, 2, base, 1), 2, new(int64(1)), new(int64(2)))
		}
	})
	e.stored(seq(p, pid, 2, 2, 1), 2)
}

func ruleOverlap(e *env, p store.Partition, pid int64) {
	e.stored(seq(p, pid, 0, 0, 2), 0)
	e.stored(seq(p, pid, 0, 2, 4), 2)
	e.stored(seq(p, pid, 0, 6, 1), 6)
	e.unchanged(p, pid, func() {
		for _, r := range [][2]int64{
			{6, 2}, {0, 8}, {5, 3}, // across the next sequence
			{0, 1}, {1, 1}, {2, 3}, {3, 3}, // a part of a batch
			{0, 6}, {2, 5}, {0, 7}, {1, 2}, // several, or parts of them
		} {
			e.overlap(seq(p, pid, 0, r[0], int(r[1])), 7)
		}
	})
	e.duplicate(seq(p, pid, 0, 2, 4), 2)
	e.stored(seq(p, pid, 0, 7, 1), 7)
}

func ruleReused(e *env, p store.Partition, pid int64) {
	e.stored(seq(p, pid, 0, 0, 2), 0)
	e.stored(seq(p, pid, 0, 2, 1), 2)
	e.unchanged(p, pid, func() {
		e.reused(seqOf(p, pid, 0, 0, Batch("other", 2)), 0)
		e.reused(seqOf(p, pid, 0, 2, Batch("other", 1)), 2)
	})
	e.duplicate(seq(p, pid, 0, 0, 2), 0)
	e.holds(p, 0, "0.0-0", "0.0-1", "0.2-0")
}

func ruleEpochs(e *env, p store.Partition, pid int64) {
	e.stored(seq(p, pid, 0, 0, 2), 0)
	e.unchanged(p, pid, func() { e.out(seq(p, pid, 1, 2, 1), 0, new(int64(1)), new(int64(0))) })
	e.stored(seq(p, pid, 5, 0, 1), 2)
	e.unchanged(p, pid, func() {
		for epoch := range int64(5) {
			e.fenced(seq(p, pid, epoch, 0, 2), 5)
			e.fenced(seq(p, pid, epoch, 2, 1), 5)
		}
	})
	e.stored(seq(p, pid, 5, 1, 1), 3)
	s := e.state(p, pid).State
	if s.Epoch() != 5 || s.FirstSeq() != 0 || s.NextSeq() != 2 || len(s.Recent()) != 2 {
		e.t.Errorf("the new epoch did not begin anew: %+v", s)
	}
}

func ruleEpochFirst(e *env, p store.Partition, pid int64) {
	e.stored(seq(p, pid, 2, 0, 2), 0)
	e.unchanged(p, pid, func() {
		e.fenced(seq(p, pid, 1, 100, 1), 2)                          // a gap as well
		e.fenced(seq(p, pid, 1, 1, 5), 2)                            // an overlap as well
		e.fenced(seqOf(p, pid, 1, 0, Batch("other", 2)), 2)          // reused as well
		e.out(seq(p, pid, 3, 2, 1), 0, new(int64(1)), new(int64(2))) // in order for the old epoch
	})
}

func ruleTombstone(e *env, p store.Partition, pid int64) {
	e.stored(seq(p, pid, 3, 0, 2), 0)
	e.expire(p, pid)
	for _, a := range []store.Append{seq(p, pid, 3, 2, 1), seq(p, pid, 3, 0, 2), seq(p, pid, 3, 9, 1), seq(p, pid, 2, 0, 1)} {
		at := e.expired(a, 1, 3)
		if !e.f.Traits.RealTime && !sameTime(at, e.clock.Now()) {
			e.t.Errorf("expired at %v, want %v", at, e.clock.Now())
		}
	}
	if d := e.refused(seq(p, pid, 4, 2, 1), store.CodeOutOfOrderSequence).Sequence; d == nil || d.ExpectedSeq != 0 || d.ReceivedSeq != 2 {
		e.t.Errorf("a higher epoch above sequence 0: %+v", d)
	}
	e.bounds(p, 0, 2)
	e.stored(seq(p, pid, 4, 0, 1), 2)
	e.fenced(seq(p, pid, 3, 2, 1), 4)
	if s := e.state(p, pid).State; s.Epoch() != 4 || s.NextSeq() != 1 || len(s.Recent()) != 1 {
		e.t.Errorf("state %+v", s)
	}
}

func ruleLargest(e *env, p store.Partition, pid int64) {
	e.stored(seq(p, pid, sequence.Max-1, 0, 1), 0)
	e.stored(seq(p, pid, sequence.Max, 0, 1), 1)
	e.duplicate(seq(p, pid, sequence.Max, 0, 1), 1)
	e.fenced(seq(p, pid, sequence.Max-1, 1, 1), sequence.Max)
	e.out(seq(p, pid, sequence.Max, sequence.Max, 1), 1, new(int64(0)), new(int64(sequence.Max)))
	e.refused(seq(p, sequence.Max, 0, 0, 1), store.CodeUnknownProducerID)
}

func ruleIndependent(e *env, p store.Partition, pid int64) {
	other := e.pid()
	q := e.topic()
	e.stored(seq(p, pid, 0, 0, 2), 0)
	e.out(seq(p, other, 0, 2, 1), 0, nil, nil)
	e.out(seq(q, pid, 0, 2, 1), 0, nil, nil)
	e.stored(seq(q, pid, 0, 0, 1), 0)
	e.stored(seq(p, other, 9, 0, 1), 2)
	e.stored(seq(p, pid, 0, 2, 1), 3)
	e.expire(q, pid)
	e.stored(seq(p, pid, 0, 3, 1), 4)
	e.duplicate(seq(p, other, 9, 0, 1), 2)
}

func rulePlain(e *env, p store.Partition, pid int64) {
	e.stored(plain(p, "a", "b"), 0)
	e.stored(plain(p, "a", "b"), 2) // nobody can tell that it is a retry
	e.stored(seq(p, pid, 0, 0, 1), 4)
	e.stored(plain(p, "c"), 5)
	e.stored(seq(p, pid, 0, 1, 1), 6)
	e.holds(p, 0, "a", "b", "a", "b", "0.0-0", "c", "0.1-0")
	if i := e.partition(p); i.Producers != 1 {
		e.t.Errorf("%d producers, want 1", i.Producers)
	}
}
