package storetest

import (
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
)

func testSnapshots(t *testing.T, f Factory) {
	t.Run("take", func(t *testing.T) { snapshotTake(newEnv(t, f)) })
	t.Run("filter", func(t *testing.T) { snapshotFilter(newEnv(t, f)) })
	t.Run("detail", func(t *testing.T) { snapshotDetail(newEnv(t, f)) })
	t.Run("delete", func(t *testing.T) { snapshotDelete(newEnv(t, f)) })
	t.Run("verify", func(t *testing.T) { snapshotVerify(newEnv(t, f)) })
	t.Run("expiry-at-the-cut", func(t *testing.T) { snapshotExpiryAtCut(newEnv(t, f)) })
}

// take takes a snapshot of one partition.
func (e *env) take(p store.Partition) store.Snapshot {
	e.t.Helper()
	got, err := e.TakeSnapshots(e.ctx, store.SnapshotFilter{Topic: p.Topic, Partition: &p.Number})
	if err != nil || len(got) != 1 {
		e.t.Fatalf("take a snapshot of %v: %+v, %v", p, got, err)
	}
	return got[0]
}

func (e *env) snapshots(f store.SnapshotFilter) []store.Snapshot {
	e.t.Helper()
	got, err := e.Snapshots(e.ctx, f)
	if err != nil {
		e.t.Fatalf("snapshots %+v: %v", f, err)
	}
	return got
}

// verifyAll verifies each snapshot that is listed for a partition.
func (e *env) verifyAll(p store.Partition) {
	e.t.Helper()
	for _, s := range e.snapshots(store.SnapshotFilter{Topic: p.Topic, Partition: &p.Number}) {
		diff, err := e.VerifySnapshot(e.ctx, p, s.Offset)
		if err != nil || len(diff.Differences) != 0 {
			e.t.Errorf("snapshot at %d (%s): %v, %v", s.Offset, s.Reason, diff.Differences, err)
		}
	}
}

func sameSnapshot(a, b store.Snapshot) bool {
	equal := sameTime(a.CreatedAt, b.CreatedAt)
	a.CreatedAt = b.CreatedAt
	return equal && a == b
}

func snapshotTake(e *env) {
	p := e.topic()
	pid, other := e.pid(), e.pid()
	e.stored(seq(p, pid, 0, 0, 3), 0)
	e.stored(seq(p, other, 0, 0, 1), 3)
	first := e.take(p)
	if first.Partition != p || first.Offset != 4 || first.Reason != store.SnapshotRequest || first.Producers != 2 || first.Bytes <= 0 {
		e.t.Errorf("snapshot %+v", first)
	}
	if !e.f.Traits.RealTime && !sameTime(first.CreatedAt, e.clock.Now()) {
		e.t.Errorf("created at %v, want %v", first.CreatedAt, e.clock.Now())
	}
	e.clock.Add(time.Second)
	e.expire(p, other)
	second := e.take(p) // in place of the first
	if second.Offset != 4 || second.Producers != 1 {
		e.t.Errorf("snapshot %+v", second)
	}
	e.stored(seq(p, pid, 0, 3, 1), 4)
	third := e.take(p)
	all := e.snapshots(store.SnapshotFilter{})
	if len(all) != 2 || !sameSnapshot(all[0], second) || !sameSnapshot(all[1], third) {
		e.t.Errorf("snapshots %+v, want %+v and %+v", all, second, third)
	}
	e.verifyAll(p)
}

func snapshotFilter(e *env) {
	e.named("b", 2)
	e.named("a", 1)
	order := []store.Partition{{Topic: "a"}, {Topic: "b"}, {Topic: "b", Number: 1}}
	for _, p := range order {
		e.stored(plain(p, "x"), 0)
	}
	taken, err := e.TakeSnapshots(e.ctx, store.SnapshotFilter{})
	if err != nil || len(taken) != 3 {
		e.t.Fatalf("take: %+v, %v", taken, err)
	}
	e.stored(plain(order[1], "y"), 1)
	if got, err := e.TakeSnapshots(e.ctx, store.SnapshotFilter{Topic: "b"}); err != nil || len(got) != 2 {
		e.t.Errorf("take of b: %+v, %v", got, err)
	}
	expect := func(f store.SnapshotFilter, want ...store.Partition) {
		e.t.Helper()
		var got []store.Partition
		for _, s := range e.snapshots(f) {
			got = append(got, s.Partition)
		}
		if len(got) != len(want) {
			e.t.Fatalf("snapshots %+v: %v, want %v", f, got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				e.t.Fatalf("snapshots %+v: %v, want %v", f, got, want)
			}
		}
	}
	expect(store.SnapshotFilter{}, order[0], order[1], order[1], order[2])
	expect(store.SnapshotFilter{Topic: "a"}, order[0])
	expect(store.SnapshotFilter{Topic: "b"}, order[1], order[1], order[2])
	expect(store.SnapshotFilter{Topic: "b", Partition: new(0)}, order[1], order[1])
	_, err = e.Snapshots(e.ctx, store.SnapshotFilter{Topic: "c"})
	e.coded("snapshots of no topic", err, store.CodeUnknownTopic)
	_, err = e.TakeSnapshots(e.ctx, store.SnapshotFilter{Topic: "a", Partition: new(1)})
	e.coded("snapshot of no partition", err, store.CodeUnknownPartition)
}

// snapshotDetail: the states as they were, tombstones left out, by id.
func snapshotDetail(e *env) {
	p := e.topic()
	a, b, c := e.pid(), e.pid(), e.pid()
	for i, pid := range []int64{c, a, b} {
		e.stored(seq(p, pid, int64(i), 0, 1), int64(i))
	}
	e.expire(p, b)
	wantA, wantC := e.state(p, a), e.state(p, c)
	s := e.take(p)
	e.stored(seq(p, a, 1, 1, 1), 3)
	e.expire(p, c)

	got, states, err := e.Snapshot(e.ctx, p, 3)
	if err != nil || !sameSnapshot(got, s) {
		e.t.Fatalf("snapshot: %+v, %v; want %+v", got, err, s)
	}
	if len(states) != 2 || states[0].ID != a || states[1].ID != c || states[0].State != wantA.State || states[1].State != wantC.State {
		e.t.Errorf("producers %+v, want %+v and %+v", states, wantA, wantC)
	}
	_, _, err = e.Snapshot(e.ctx, p, 2)
	e.coded("no snapshot", err, store.CodeUnknownSnapshot)
	e.verifyAll(p)
}

func snapshotDelete(e *env) {
	p := e.topic()
	pid := e.pid()
	e.stored(seq(p, pid, 0, 0, 1), 0)
	e.take(p)
	e.stored(seq(p, pid, 0, 1, 1), 1)
	e.take(p)
	if err := e.DeleteSnapshot(e.ctx, p, 1); err != nil {
		e.t.Fatal(err)
	}
	e.coded("delete again", e.DeleteSnapshot(e.ctx, p, 1), store.CodeUnknownSnapshot)
	_, _, err := e.Snapshot(e.ctx, p, 1)
	e.coded("a deleted snapshot", err, store.CodeUnknownSnapshot)
	_, err = e.VerifySnapshot(e.ctx, p, 1)
	e.coded("verify a deleted snapshot", err, store.CodeUnknownSnapshot)
	if all := e.snapshots(store.SnapshotFilter{}); len(all) != 1 || all[0].Offset != 2 {
		e.t.Errorf("snapshots %+v", all)
	}
	e.duplicate(seq(p, pid, 0, 0, 1), 0)
}

// snapshotVerify: what the log gives is what the snapshot holds, after traffic, trims
// and expiries, also when older snapshots are gone.
func snapshotVerify(e *env) {
	p := e.topic(func(c *store.Config) { c.SegmentBytes = store.MinSegmentBytes })
	var pids []int64
	next := map[int64]int64{}
	epochs := map[int64]int64{}
	for range 5 {
		pids = append(pids, e.pid())
	}
	offset := int64(0)
	for i := range 60 {
		pid := pids[(i*i)%len(pids)]
		n := 1 + i%3
		e.stored(seq(p, pid, epochs[pid], next[pid], n), offset)
		offset += int64(n)
		next[pid] += int64(n)
		switch i % 15 {
		case 4:
			e.take(p)
		case 8:
			e.expire(p, pid)
			epochs[pid]++
			next[pid] = 0
		case 12:
			e.trim(p, offset-int64(i%7), offset-int64(i%7))
			if e.f.Sweep != nil {
				e.sweep()
			}
		}
		if i%10 == 9 {
			e.verifyAll(p)
		}
	}
	all := e.snapshots(store.SnapshotFilter{Topic: p.Topic})
	if len(all) < 2 {
		e.t.Fatalf("snapshots %+v", all)
	}
	for _, s := range all[:len(all)-1] {
		if err := e.DeleteSnapshot(e.ctx, p, s.Offset); err != nil {
			e.t.Fatal(err)
		}
	}
	e.verifyAll(p)
	e.take(p)
	e.verifyAll(p)
}

// snapshotExpiryAtCut: a producer expires right after the snapshot at which the log is
// then cut. The snapshot must go on matching what is left of the log.
func snapshotExpiryAtCut(e *env) {
	p := e.topic()
	gone, quiet := e.pid(), e.pid()
	e.stored(seq(p, gone, 0, 0, 1), 0)
	e.stored(seq(p, quiet, 0, 0, 1), 1)
	e.roll(p)
	e.expire(p, gone)
	e.trim(p, 2, 2)
	if e.f.Sweep != nil {
		e.sweep()
	}
	if all := e.snapshots(store.SnapshotFilter{Topic: p.Topic}); len(all) != 1 || all[0].Offset != 2 || all[0].Producers != 2 {
		e.t.Errorf("snapshots %+v", all)
	}
	e.verifyAll(p)
	if e.f.Reopen != nil {
		e.restart(true)
		e.verifyAll(p)
	}
	e.expired(seq(p, gone, 0, 1, 1), 0, 0)
	e.duplicate(seq(p, quiet, 0, 0, 1), 1)
}
