package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

func testRestart(t *testing.T, f Factory) {
	if f.Reopen == nil {
		t.Skip("the engine cannot be restarted")
	}
	for _, kill := range []bool{false, true} {
		t.Run(map[bool]string{false: "clean", true: "kill"}[kill], func(t *testing.T) {
			t.Run("view", func(t *testing.T) { restartView(newEnv(t, f), kill) })
			t.Run("ids", func(t *testing.T) { restartIDs(newEnv(t, f), kill) })
			t.Run("empty", func(t *testing.T) { restartEmpty(newEnv(t, f), kill) })
			t.Run("again-and-again", func(t *testing.T) { restartOften(newEnv(t, f), kill) })
		})
	}
}

// view writes down everything that a client can see, but for counters, which begin
// anew, and for snapshots, which come and go with restarts.
func (e *env) view() string {
	e.t.Helper()
	var out strings.Builder
	topics, err := e.Topics(e.ctx, "", 1000)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, topic := range topics {
		topic.CreatedAt = topic.CreatedAt.UTC().Truncate(time.Millisecond)
		fmt.Fprintf(&out, "%+v\n", topic)
		for n := range topic.Partitions {
			e.viewPartition(&out, store.Partition{Topic: topic.Name, Number: n})
		}
	}
	producers, err := e.Producers(e.ctx, -1, 1000)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, p := range producers {
		fmt.Fprintf(&out, "producer %d: epoch %d, %d partitions, last %d, expires %d\n",
			p.ID, p.Epoch, p.Partitions, p.LastTimestamp.UnixMilli(), p.ExpiresAt.UnixMilli())
	}
	return out.String()
}

func (e *env) viewPartition(out *strings.Builder, p store.Partition) {
	e.t.Helper()
	i := e.partition(p)
	fmt.Fprintf(out, "%v: %+v, %d bytes, %d producers\n", p, i.Bounds, i.Bytes, i.Producers)
	for _, s := range i.Segments {
		fmt.Fprintf(out, "  segment %d to %d, %d bytes in %d batches, since %d\n", s.BaseOffset, s.NextOffset, s.Bytes, s.Batches, s.CreatedAt.UnixMilli())
	}
	for _, h := range e.headers(p, i.Earliest, 10_000) {
		fmt.Fprintf(out, "  batch %d to %d, %d bytes at %d, crc %x", h.BaseOffset, h.LastOffset, h.Bytes, h.AppendedAt.UnixMilli(), h.CRC)
		if h.Producer != nil {
			fmt.Fprintf(out, " by %+v", *h.Producer)
		}
		out.WriteString("\n")
	}
	values, err := readAll(e.ctx, e, p, i.Earliest, e.f.Traits)
	if err != nil {
		e.t.Fatal(err)
	}
	fmt.Fprintf(out, "  values %s\n", values)
	states, err := e.PartitionProducers(e.ctx, p, -1, 1000)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, s := range states {
		fmt.Fprintf(out, "  producer %d expires %d: %s\n", s.ID, s.ExpiresAt.UnixMilli(), showState(&s.State, e.f.Traits))
	}
}

// showState writes down all of a state that the engine can show.
func showState(s *sequence.State, traits Traits) string {
	if !traits.Records {
		return fmt.Sprintf("%+v", *s)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "epoch %d, sequences %d to %d, offset %d:", s.Epoch(), s.FirstSeq(), s.LastSeq(), s.LastOffset())
	for _, r := range s.Recent() {
		fmt.Fprintf(&out, " %d–%d at %d", r.BaseSeq, r.LastSeq, r.BaseOffset)
	}
	return out.String()
}

// fill brings about something of everything and gives appends with the answers that
// they must get from now on.
func (e *env) fill() (check func()) {
	e.t.Helper()
	p := e.named("filled", 3, func(c *store.Config) { c.SegmentBytes = store.MinSegmentBytes })
	q := store.Partition{Topic: "filled", Number: 2}
	quiet, busy, gone, back := e.pid(), e.pid(), e.pid(), e.pid()
	e.stored(seq(p, quiet, 3, 0, 2), 0)
	e.stored(seq(p, gone, 5, 0, 1), 2)
	e.stored(seq(p, back, 0, 0, 1), 3)
	e.expire(p, back)
	for i := range int64(30) {
		e.clock.Add(time.Second)
		e.stored(seq(p, busy, 0, i, 1), 4+i)
	}
	e.take(p)
	e.expire(p, gone)
	e.stored(seq(p, back, 1, 0, 2), 34)
	e.stored(plain(p, "plain"), 36)
	e.stored(seq(q, busy, 9, 0, 3), 0)
	e.trim(q, 3, 3)
	e.trim(p, 7, 7)
	e.topic()
	_, err := e.UpdateTopic(e.ctx, "filled", func(t store.Topic) (store.Topic, error) {
		t.Partitions = 4
		t.Config.MaxProducers = 10
		return t, nil
	})
	if err != nil {
		e.t.Fatal(err)
	}
	deleted := e.topic()
	e.stored(plain(deleted, "x"), 0)
	if err := e.DeleteTopic(e.ctx, deleted.Topic); err != nil {
		e.t.Fatal(err)
	}
	first := e.duplicate(seq(p, quiet, 3, 0, 2), 0)
	expiredAt := e.expired(seq(p, gone, 5, 1, 1), 0, 5)
	return func() {
		e.t.Helper()
		if again := e.duplicate(seq(p, quiet, 3, 0, 2), 0); !sameTime(again.AppendedAt, first.AppendedAt) {
			e.t.Errorf("appended at %v, before at %v", again.AppendedAt, first.AppendedAt)
		}
		if at := e.expired(seq(p, gone, 5, 1, 1), 0, 5); !sameTime(at, expiredAt) {
			e.t.Errorf("expired at %v, before at %v", at, expiredAt)
		}
		e.fenced(seq(p, quiet, 2, 2, 1), 3)
		e.reused(seqOf(p, quiet, 3, 0, Batch("other", 2)), 0)
		e.forgotten(seq(p, busy, 0, 24, 1))
		for i := range int64(5) {
			e.duplicate(seq(p, busy, 0, 25+i, 1), 29+i)
		}
		e.fenced(seq(p, back, 0, 1, 1), 1)
		e.duplicate(seq(p, back, 1, 0, 2), 34)
		e.duplicate(seq(q, busy, 9, 0, 3), 0)
		e.out(seq(q, busy, 9, 4, 1), 3, new(int64(2)), new(int64(9)))
		e.nowhere(deleted, store.CodeUnknownTopic)
		e.refused(seq(p, sequence.Max, 0, 0, 1), store.CodeUnknownProducerID)
	}
}

func restartView(e *env, kill bool) {
	check := e.fill()
	before := e.view()
	kept := e.snapshots(store.SnapshotFilter{Topic: "filled"})
	for range 2 {
		e.restart(kill)
		if after := e.view(); after != before {
			e.t.Fatalf("after the restart:\n%s\nbefore it:\n%s", after, before)
		}
		check()
	}
	now := e.snapshots(store.SnapshotFilter{Topic: "filled"})
	for _, s := range kept {
		if !slices.ContainsFunc(now, func(n store.Snapshot) bool { return n.Partition == s.Partition && n.Offset == s.Offset }) {
			e.t.Errorf("snapshot %+v is gone", s)
		}
	}
	p := store.Partition{Topic: "filled"}
	e.verifyAll(p)
	e.stored(plain(p, "more"), 37)
	if e.f.Sweep != nil {
		e.sweep()
		e.restart(kill)
		check()
		e.verifyAll(p)
	}
}

// restartIDs: an id is never given out twice, and those that were stay issued.
func restartIDs(e *env, kill bool) {
	p := e.topic()
	last := int64(-1)
	for i := range int64(4) {
		for range 3 {
			pid := e.pid()
			if pid <= last {
				e.t.Fatalf("id %d after %d", pid, last)
			}
			last = pid
		}
		e.restart(kill)
		e.stored(seq(p, last, 0, 0, 1), i)
		if _, err := e.Producer(e.ctx, last); err != nil {
			e.t.Errorf("producer %d: %v", last, err)
		}
	}
}

func restartEmpty(e *env, kill bool) {
	e.restart(kill)
	p := e.topic()
	e.restart(kill)
	e.bounds(p, 0, 0)
	e.stored(plain(p, "x"), 0)
	e.roll(p)
	e.trim(p, 1, 1)
	e.restart(kill)
	e.bounds(p, 1, 1)
	e.stored(plain(p, "y"), 1)
	e.holds(p, 1, "y")
}

// restartOften: sequences and offsets go on, each batch sent once more after a restart.
func restartOften(e *env, kill bool) {
	p := e.topic(func(c *store.Config) { c.SegmentBytes = store.MinSegmentBytes })
	pid := e.pid()
	var want []string
	for i := range int64(10) {
		for j := range int64(4) {
			e.stored(seq(p, pid, 0, 4*i+j, 1), 4*i+j)
			want = append(want, fmt.Sprintf("0.%d-0", 4*i+j))
		}
		if i == 5 {
			e.trim(p, 11, 11)
		}
		e.restart(kill)
		e.duplicate(seq(p, pid, 0, 4*i+3, 1), 4*i+3)
		e.duplicate(seq(p, pid, 0, 4*i, 1), 4*i)
	}
	e.holds(p, 11, want[11:]...)
	e.verifyAll(p)
}
