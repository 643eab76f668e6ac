package bolt_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/bolt"
)

// queue sends appends while the committer is blocked, so that they form one group in
// this order, and returns their answers.
func (r *rig) queue(appends ...store.Append) []answer {
	r.t.Helper()
	release := r.Block()
	out := make([]answer, len(appends))
	var wg sync.WaitGroup
	for i, a := range appends {
		queued := r.QueueLen()
		wg.Go(func() { out[i].ack, out[i].err = r.Append(context.Background(), a) })
		for r.QueueLen() == queued {
		}
	}
	release()
	wg.Wait()
	return out
}

func TestGroupSharesOneCommitAndRefusalsDisturbNobody(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	a, b := r.pid(), r.pid()
	before := r.Stats().Commits
	got := r.queue(
		app(p, a, 0, 0, 2),
		app(p, b, 0, 7, 1), // out of order
		app(p, a, 0, 2, 1),
		app(p, a, 0, 0, 2), // a duplicate of a batch that is not durable yet
		store.Append{Partition: p, Batch: texts("plain", 1)},
		app(p, a, 0, 1, 1), // an overlap, seen from what is staged
		app(p, b, 0, 0, 1),
	)
	if n := r.Stats().Commits - before; n != 1 {
		t.Errorf("%d commits for one group", n)
	}
	want := []struct {
		code      store.Code
		offset    int64
		duplicate bool
	}{
		{"", 0, false},
		{store.CodeOutOfOrderSequence, 0, false},
		{"", 2, false},
		{"", 0, true},
		{"", 3, false},
		{store.CodeSequenceOverlap, 0, false},
		{"", 4, false},
	}
	for i, w := range want {
		g := got[i]
		if store.CodeOf(g.err) != w.code || (w.code == "" && (g.ack.BaseOffset != w.offset || g.ack.Duplicate != w.duplicate)) {
			t.Errorf("request %d: %+v, want %+v", i, g, w)
		}
	}
	r.bounds(p, 0, 5)
	r.crash()
	r.check()
	r.open()
	r.bounds(p, 0, 5)
}

func TestRefusalsAndDuplicatesWriteNothing(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	r.must(app(p, pid, 1, 0, 2), 0)
	before := r.Stats().Commits
	r.again(app(p, pid, 1, 0, 2), 0)
	r.refused(app(p, pid, 0, 2, 1), store.CodeProducerFenced)
	r.refused(app(p, pid, 1, 3, 1), store.CodeOutOfOrderSequence)
	reused := app(p, pid, 1, 0, 2)
	reused.Batch = texts("other", 2)
	r.refused(reused, store.CodeSequenceReused)
	if n := r.Stats().Commits - before; n != 0 {
		t.Errorf("%d commits without anything to store", n)
	}
	st, err := r.PartitionProducer(context.Background(), p, pid)
	want := store.Counters{Accepted: 1, Duplicate: 1, OutOfOrder: 1, Fenced: 1, Reused: 1}
	if err != nil || st.Counters != want {
		t.Errorf("counters %+v, %v, want %+v", st.Counters, err, want)
	}
}

// A failed write takes down everything whose answer rests on it, and the engine with it.
func TestFailedWriteStopsTheEngine(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	r.must(app(p, pid, 0, 0, 1), 0)
	if err := r.Break(); err != nil {
		t.Fatal(err)
	}
	for i, g := range r.queue(app(p, pid, 0, 1, 1), app(p, pid, 0, 1, 1), app(p, pid, 0, 2, 1)) {
		if store.CodeOf(g.err) != store.CodeStorageFailed {
			t.Errorf("request %d on a broken file: %+v", i, g)
		}
	}
	r.bounds(p, 0, 1)
	r.refused(app(p, pid, 0, 1, 1), store.CodeStorageFailed)
	if store.CodeOf(r.Ready()) != store.CodeStorageFailed {
		t.Errorf("ready: %v", r.Ready())
	}
	_ = r.Store.Close() // reports the failure
	r.open()
	r.bounds(p, 0, 1)
	r.must(app(p, pid, 0, 1, 1), 1)
}

func TestFullStoreTakesReadsAndTrims(t *testing.T) {
	r := newRig(t, bolt.Options{MaxBytes: 6 << 20})
	p := r.topic("t", func(c *store.Config) { c.SegmentBytes = 1 << 20 })
	ctx := context.Background()
	a := store.Append{Partition: p, Batch: large(256 << 10)}
	stored := int64(0)
	var err error
	for range 100 {
		if _, err = r.Append(ctx, a); err != nil {
			break
		}
		stored++
	}
	if store.CodeOf(err) != store.CodeStorageFull || stored < 10 {
		t.Fatalf("after %d batches: %v", stored, err)
	}
	r.bounds(p, 0, stored)
	if got, err := r.Read(ctx, store.Read{Partition: p, MaxRecords: 1, MaxBytes: 1}); err != nil || len(got.Batches) != 1 {
		t.Fatalf("read from a full store: %v", err)
	}
	if store.CodeOf(r.Ready()) != store.CodeStorageFull {
		t.Errorf("ready: %v", r.Ready())
	}
	if _, err := r.Trim(ctx, p, stored); err != nil {
		t.Fatalf("trim of a full store: %v", err)
	}
	if err := r.Sweep(ctx); err != nil {
		t.Fatalf("sweep of a full store: %v", err)
	}
	r.must(a, stored)
	r.crash()
	r.check()
}

func large(n int) batch.Batch {
	var b batch.Builder
	b.Add(&batch.Record{Value: make([]byte, n), Timestamp: batch.NoTimestamp})
	return b.Build()
}

func TestGivenUpBeforeItsTurnIsNotStored(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	release := r.Block()
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := r.Append(ctx, app(p, pid, 0, 0, 1))
		gone <- err
	}()
	for r.QueueLen() < 1 {
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled append: %v", err)
	}
	release()
	r.bounds(p, 0, 0)
	r.must(app(p, pid, 0, 0, 1), 0)
	r.bounds(p, 0, 1)
}

func TestOverloadIsRefusedAtOnce(t *testing.T) {
	r := newRig(t, bolt.Options{QueueLength: 2, QueueBytes: 1 << 20})
	p := r.topic("t", nil)
	a := store.Append{Partition: p, Batch: texts("x", 1)}
	release := r.Block()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { _, _ = r.Append(context.Background(), a) })
	}
	for r.QueueLen() < 2 {
	}
	r.refused(a, store.CodeOverloaded)
	release()
	wg.Wait()
	release = r.Block()
	wg.Go(func() { _, _ = r.Append(context.Background(), store.Append{Partition: p, Batch: large(1 << 19)}) })
	for r.QueueLen() < 1 {
	}
	r.refused(store.Append{Partition: p, Batch: large(1<<19 + 1)}, store.CodeOverloaded)
	release()
	wg.Wait()
	r.bounds(p, 0, 3)
}

func TestDeletingTopicSaysSo(t *testing.T) {
	r := newRig(t, bolt.Options{})
	ctx := context.Background()
	p := r.topic("t", nil)
	old, _ := r.Bounds(ctx, p)
	release := r.Block()
	deleted := make(chan error, 1)
	go func() { deleted <- r.DeleteTopic(ctx, "t") }()
	for {
		if _, err := r.Topic(ctx, "t"); store.CodeOf(err) == store.CodeTopicDeleting {
			break
		}
	}
	r.refused(store.Append{Partition: p, Batch: texts("x", 1)}, store.CodeTopicDeleting)
	release()
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	r.refused(store.Append{Partition: p, Batch: texts("x", 1)}, store.CodeUnknownTopic)
	r.topic("t", nil)
	r.bounds(p, 0, 0)
	if now, _ := r.Bounds(ctx, p); now.TopicID == old.TopicID {
		t.Error("a topic created again has the id of the old one")
	}
	if err := r.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	r.crash()
	r.check()
}

// A lost answer must be recovered even when nothing new can be stored.
func TestFullDiskStillKnowsItsDuplicates(t *testing.T) {
	r := newRig(t, bolt.Options{RetentionInterval: time.Hour}) // nobody else looks at the disk
	p := r.topic("t", nil)
	pid := r.pid()
	r.must(app(p, pid, 0, 0, 2), 0)
	r.close()
	r.opts.DiskReserve = 1 << 62 // more than any disk has
	r.open()
	r.again(app(p, pid, 0, 0, 2), 0)
	r.refused(app(p, pid, 0, 9, 1), store.CodeOutOfOrderSequence)
	r.refused(app(p, pid, 0, 2, 1), store.CodeStorageFull)
	r.refused(store.Append{Partition: p, Batch: texts("plain", 1)}, store.CodeStorageFull)
	if store.CodeOf(r.Ready()) != store.CodeStorageFull {
		t.Errorf("ready: %v", r.Ready())
	}
	r.bounds(p, 0, 2)
	r.SetDisk(1<<62, 0)
	r.must(app(p, pid, 0, 2, 1), 2)
	r.SetDisk(1<<61, 1<<61) // what was freed in the file is as good
	r.must(app(p, pid, 0, 3, 1), 3)
}
