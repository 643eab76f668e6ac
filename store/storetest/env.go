package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

// env is an engine under test. Its methods fail the test when the engine does not do
// as they expect.
type env struct {
	store.Store
	t      testing.TB
	ctx    context.Context //nolint:containedctx // that of the test
	f      Factory
	clock  *Clock
	topics int
}

func newEnv(t testing.TB, f Factory) *env {
	t.Helper()
	clock := NewClock()
	return &env{Store: f.Open(t, clock), t: t, ctx: t.Context(), f: f, clock: clock}
}

// restart ends the engine and opens it again.
func (e *env) restart(kill bool) {
	e.t.Helper()
	e.Store = e.f.Reopen(e.t, e.Store, kill)
}

// sweep applies retention.
func (e *env) sweep() {
	e.t.Helper()
	e.f.Sweep(e.t, e.Store)
}

// topic creates a topic of one partition with the default config as change has it.
func (e *env) topic(change ...func(*store.Config)) store.Partition {
	e.t.Helper()
	e.topics++
	return e.named(fmt.Sprintf("topic-%d", e.topics), 1, change...)
}

func (e *env) named(name string, partitions int, change ...func(*store.Config)) store.Partition {
	e.t.Helper()
	c := store.DefaultConfig()
	for _, f := range change {
		f(&c)
	}
	if _, err := e.CreateTopic(e.ctx, name, partitions, c); err != nil {
		e.t.Fatalf("create topic %q: %v", name, err)
	}
	return store.Partition{Topic: name}
}

func (e *env) pid() int64 {
	e.t.Helper()
	p, err := e.AllocateProducer(e.ctx, "")
	if err != nil {
		e.t.Fatalf("allocate a producer: %v", err)
	}
	return p.ID
}

// seq is an idempotent append of n records that depend on its place in the sequence.
func seq(p store.Partition, pid, epoch, base int64, n int) store.Append {
	return seqOf(p, pid, epoch, base, Batch(fmt.Sprintf("%d.%d", epoch, base), n))
}

func seqOf(p store.Partition, pid, epoch, base int64, b batch.Batch) store.Append {
	return store.Append{
		Partition: p, Producer: &store.ProducerSeq{ID: pid, Epoch: epoch, BaseSeq: base}, Batch: b, NoHold: true,
	}
}

func plain(p store.Partition, values ...string) store.Append {
	return store.Append{Partition: p, Batch: Texts(values...), NoHold: true}
}

// stored appends and expects the batch to be new and to begin at offset.
func (e *env) stored(a store.Append, offset int64) store.Ack {
	e.t.Helper()
	ack, err := e.Append(e.ctx, a)
	last := offset + int64(a.Batch.Count) - 1
	if err != nil || ack.Duplicate || ack.BaseOffset != offset || ack.LastOffset != last {
		e.t.Fatalf("append %s: %+v, %v; want it stored at %d to %d", show(a), ack, err, offset, last)
	}
	next := int64(-1)
	if a.Producer != nil {
		next = a.Producer.BaseSeq + int64(a.Batch.Count)
	}
	if ack.NextSeq != next {
		e.t.Fatalf("append %s: next sequence %d, want %d", show(a), ack.NextSeq, next)
	}
	if ack.AppendedAt.IsZero() {
		e.t.Fatalf("append %s: no arrival time", show(a))
	}
	return ack
}

// duplicate appends and expects to hear of the batch at offset.
func (e *env) duplicate(a store.Append, offset int64) store.Ack {
	e.t.Helper()
	ack, err := e.Append(e.ctx, a)
	last, next := offset+int64(a.Batch.Count)-1, a.Producer.BaseSeq+int64(a.Batch.Count)
	if err != nil || !ack.Duplicate || ack.BaseOffset != offset || ack.LastOffset != last || ack.NextSeq != next {
		e.t.Fatalf("append %s: %+v, %v; want a duplicate of %d to %d with next sequence %d", show(a), ack, err, offset, last, next)
	}
	return ack
}

// forgotten appends and expects a duplicate without offsets.
func (e *env) forgotten(a store.Append) {
	e.t.Helper()
	ack, err := e.Append(e.ctx, a)
	want := store.Ack{BaseOffset: -1, LastOffset: -1, NextSeq: a.Producer.BaseSeq + int64(a.Batch.Count), Duplicate: true}
	if err != nil || ack != want {
		e.t.Fatalf("append %s: %+v, %v; want %+v", show(a), ack, err, want)
	}
}

// refused appends and expects an error of a code.
func (e *env) refused(a store.Append, code store.Code) store.Error {
	e.t.Helper()
	ack, err := e.Append(e.ctx, a)
	if err == nil {
		e.t.Fatalf("append %s: %+v, want %s", show(a), ack, code)
	}
	return e.coded("append "+show(a), err, code)
}

// coded expects err to be of a code. What it returns is no error value, so that it can
// be dropped.
func (e *env) coded(what string, err error, code store.Code) store.Error {
	e.t.Helper()
	se, ok := errors.AsType[*store.Error](err)
	if !ok || se.Code != code {
		e.t.Fatalf("%s: %v, want %s", what, err, code)
	}
	return *se
}

// out expects a refusal as out of order, in all details. last and epoch are nil when
// nothing is known of the producer.
func (e *env) out(a store.Append, expected int64, last, epoch *int64) {
	e.t.Helper()
	d := e.refused(a, store.CodeOutOfOrderSequence).Sequence
	if d == nil || d.ExpectedSeq != expected || d.ReceivedSeq != a.Producer.BaseSeq ||
		!same(d.LastSeq, last) || !same(d.CurrentEpoch, epoch) {
		e.t.Fatalf("append %s: %+v; want expected %d, received %d, last %v, epoch %v",
			show(a), d, expected, a.Producer.BaseSeq, last, epoch)
	}
}

func (e *env) overlap(a store.Append, expected int64) {
	e.t.Helper()
	d := e.refused(a, store.CodeSequenceOverlap).Sequence
	if d == nil || d.ExpectedSeq != expected || d.ReceivedSeq != a.Producer.BaseSeq {
		e.t.Fatalf("append %s: %+v, want expected %d", show(a), d, expected)
	}
}

func (e *env) reused(a store.Append, original int64) {
	e.t.Helper()
	if d := e.refused(a, store.CodeSequenceReused).Sequence; d == nil || d.OriginalOffset != original {
		e.t.Fatalf("append %s: %+v, want original offset %d", show(a), d, original)
	}
}

func (e *env) fenced(a store.Append, current int64) {
	e.t.Helper()
	if d := e.refused(a, store.CodeProducerFenced).Sequence; d == nil || !same(d.CurrentEpoch, &current) {
		e.t.Fatalf("append %s: %+v, want current epoch %d", show(a), d, current)
	}
}

func (e *env) expired(a store.Append, last, epoch int64) time.Time {
	e.t.Helper()
	d := e.refused(a, store.CodeProducerExpired).Sequence
	if d == nil || !same(d.LastSeq, &last) || d.LastEpoch != epoch || d.ExpiredAt.IsZero() {
		e.t.Fatalf("append %s: %+v, want last sequence %d of epoch %d and a time", show(a), d, last, epoch)
	}
	return d.ExpiredAt
}

// bounds expects the ends of a partition.
func (e *env) bounds(p store.Partition, earliest, next int64) store.Bounds {
	e.t.Helper()
	b, err := e.Bounds(e.ctx, p)
	if err != nil || b.Earliest != earliest || b.HighWatermark != next {
		e.t.Fatalf("bounds of %v: %+v, %v; want %d to %d", p, b, err, earliest, next)
	}
	return b
}

func (e *env) partition(p store.Partition) store.PartitionInfo {
	e.t.Helper()
	i, err := e.Partition(e.ctx, p)
	if err != nil {
		e.t.Fatalf("partition %v: %v", p, err)
	}
	return i
}

func (e *env) trim(p store.Partition, before, earliest int64) {
	e.t.Helper()
	if got, err := e.Trim(e.ctx, p, before); err != nil || got != earliest {
		e.t.Fatalf("trim %v below %d: %d, %v; want %d", p, before, got, err, earliest)
	}
}

func (e *env) roll(p store.Partition) store.PartitionInfo {
	e.t.Helper()
	i, err := e.Roll(e.ctx, p)
	if err != nil {
		e.t.Fatalf("roll %v: %v", p, err)
	}
	return i
}

func (e *env) expire(p store.Partition, pid int64) {
	e.t.Helper()
	if err := e.ExpireProducer(e.ctx, p, pid); err != nil {
		e.t.Fatalf("expire producer %d: %v", pid, err)
	}
}

func (e *env) state(p store.Partition, pid int64) store.ProducerState {
	e.t.Helper()
	s, err := e.PartitionProducer(e.ctx, p, pid)
	if err != nil {
		e.t.Fatalf("producer %d: %v", pid, err)
	}
	return s
}

func same(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func show(a store.Append) string {
	if a.Producer == nil {
		return fmt.Sprintf("plain ×%d", a.Batch.Count)
	}
	return fmt.Sprintf("%+v ×%d", *a.Producer, a.Batch.Count)
}

func sameTime(a, b time.Time) bool { return a.UnixMilli() == b.UnixMilli() }
