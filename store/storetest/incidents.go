package storetest

import (
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

func testIncidents(t *testing.T, f Factory) {
	t.Run("rejections", func(t *testing.T) { incidentRejections(newEnv(t, f)) })
	t.Run("all kinds", func(t *testing.T) { incidentKinds(newEnv(t, f)) })
	t.Run("bounds", func(t *testing.T) { incidentBounds(newEnv(t, f)) })
	t.Run("held", func(t *testing.T) { incidentHeld(newEnv(t, f)) })
}

// incidentRejections: what was refused of a producer, newest first, with the reason and
// what the sender must know; duplicates and accepted batches are not among it.
func incidentRejections(e *env) {
	p, q := e.topic(), e.topic()
	pid, other, stranger := e.pid(), e.pid(), e.pid()
	if got := e.Rejections(pid); len(got) != 0 {
		e.t.Errorf("a new producer has rejections %+v", got)
	}
	e.stored(seq(p, pid, 3, 0, 2), 0)
	e.duplicate(seq(p, pid, 3, 0, 2), 0)
	e.reused(seqOf(p, pid, 3, 0, Batch("other", 2)), 0)
	e.overlap(seq(p, pid, 3, 1, 3), 2)
	e.fenced(seq(p, pid, 2, 2, 1), 3)
	e.refused(seq(p, pid, 3, 9, 4), store.CodeOutOfOrderSequence)
	e.refused(seq(q, pid, 0, 5, 1), store.CodeOutOfOrderSequence)
	e.expire(p, pid)
	e.expired(seq(p, pid, 3, 2, 1), 1, 3)
	e.stored(seq(p, other, 0, 0, 1), 2)

	want := []store.Incident{
		{Partition: p, Code: store.CodeProducerExpired, Producer: at(pid, 3, 2), Count: 1, CurrentEpoch: 3, ExpectedSeq: -1, Offset: -1},
		{Partition: q, Code: store.CodeOutOfOrderSequence, Producer: at(pid, 0, 5), Count: 1, CurrentEpoch: -1, ExpectedSeq: 0, Offset: -1},
		{Partition: p, Code: store.CodeOutOfOrderSequence, Producer: at(pid, 3, 9), Count: 4, CurrentEpoch: 3, ExpectedSeq: 2, Offset: -1},
		{Partition: p, Code: store.CodeProducerFenced, Producer: at(pid, 2, 2), Count: 1, CurrentEpoch: 3, ExpectedSeq: -1, Offset: -1},
		{Partition: p, Code: store.CodeSequenceOverlap, Producer: at(pid, 3, 1), Count: 3, CurrentEpoch: 3, ExpectedSeq: 2, Offset: -1},
		{Partition: p, Code: store.CodeSequenceReused, Producer: at(pid, 3, 0), Count: 2, CurrentEpoch: 3, ExpectedSeq: -1, Offset: 0},
	}
	got := e.Rejections(pid)
	if len(got) != len(want) {
		e.t.Fatalf("rejections %+v, want %+v", got, want)
	}
	for i := range want {
		e.incident(&got[i], &want[i])
	}
	for _, id := range []int64{other, stranger} {
		if got := e.Rejections(id); len(got) != 0 {
			e.t.Errorf("producer %d, which was never refused, has rejections %+v", id, got)
		}
	}
}

func at(id, epoch, base int64) store.ProducerSeq {
	return store.ProducerSeq{ID: id, Epoch: epoch, BaseSeq: base}
}

// incident compares what the suite can know.
func (e *env) incident(got, want *store.Incident) {
	e.t.Helper()
	if got.At.IsZero() || got.Waited != 0 || want.Code != store.CodeOutOfOrderSequence && got.Lasting {
		e.t.Errorf("incident %+v", got)
	}
	cleaned := *got
	cleaned.At, cleaned.Number, cleaned.Lasting = time.Time{}, want.Number, false
	if cleaned != *want {
		e.t.Errorf("incident %+v, want %+v", cleaned, *want)
	}
}

// incidentKinds: duplicates are incidents too, and all are numbered in their order.
func incidentKinds(e *env) {
	p := e.topic()
	pid := e.pid()
	for i := range int64(sequence.Window + 1) {
		e.stored(seq(p, pid, 0, i, 1), i)
	}
	e.duplicate(seq(p, pid, 0, 3, 1), 3)
	e.forgotten(seq(p, pid, 0, 0, 1))
	e.reused(seqOf(p, pid, 0, 5, Batch("other", 1)), 5)
	if _, err := e.Append(e.ctx, plain(p, "x")); err != nil {
		e.t.Fatal(err)
	}
	want := []store.Incident{
		{Number: 1, Partition: p, Producer: at(pid, 0, 3), Count: 1, ExpectedSeq: -1, Offset: 3},
		{Number: 2, Partition: p, Producer: at(pid, 0, 0), Count: 1, ExpectedSeq: -1, Offset: -1},
		{Number: 3, Partition: p, Producer: at(pid, 0, 5), Count: 1, ExpectedSeq: -1, Offset: 5, Code: store.CodeSequenceReused},
	}
	got := e.Incidents(0, 100)
	if len(got) != len(want) {
		e.t.Fatalf("incidents %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i].Number != want[i].Number || got[i].Duplicate() != (want[i].Code == "") {
			e.t.Errorf("incident %+v", got[i])
		}
		e.incident(&got[i], &want[i])
	}
	if got := e.Incidents(1, 1); len(got) != 1 || got[0].Number != 3 {
		e.t.Errorf("the last one after 1 is %+v", got)
	}
	if got := e.Incidents(3, 100); len(got) != 0 {
		e.t.Errorf("after the last one: %+v", got)
	}
}

// incidentBounds: what is remembered of a producer is bounded, the newest is kept.
func incidentBounds(e *env) {
	p := e.topic()
	pid := e.pid()
	e.stored(seq(p, pid, 1, 0, 1), 0)
	const refused = 100
	for i := range int64(refused) {
		e.fenced(seqOf(p, pid, 0, i, Batch("late", 1)), 1)
	}
	got := e.Rejections(pid)
	if len(got) == 0 || len(got) >= refused {
		e.t.Fatalf("%d of %d rejections are remembered", len(got), refused)
	}
	for i := range got {
		if want := int64(refused - 1 - i); got[i].Producer.BaseSeq != want {
			e.t.Fatalf("rejection %d is %+v, want sequence %d", i, got[i], want)
		}
	}
	// A flood of one producer pushes out no other's, nor do duplicates.
	quiet := e.pid()
	e.refused(seq(p, quiet, 0, 7, 1), store.CodeOutOfOrderSequence)
	for i := range int64(refused) {
		e.fenced(seq(p, pid, 0, i, 1), 1)
		e.duplicate(seq(p, pid, 1, 0, 1), 0)
	}
	if got := e.Rejections(quiet); len(got) != 1 {
		e.t.Errorf("the quiet producer has %d rejections", len(got))
	}
}

// incidentHeld: nothing is held of a producer that is in order.
func incidentHeld(e *env) {
	p := e.topic()
	pid := e.pid()
	e.stored(seq(p, pid, 0, 0, 1), 0)
	if got := e.Held(p, pid); len(got) != 0 {
		e.t.Errorf("held: %+v", got)
	}
}
