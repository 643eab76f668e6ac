package bolt_test

import (
	"context"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

func (r *rig) sweep() {
	r.t.Helper()
	if err := r.Sweep(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

func TestRetentionByAge(t *testing.T) {
	clock := newTicker()
	r := newRig(t, bolt.Options{Now: clock.Now, RetentionInterval: time.Hour})
	p := r.topic("t", func(c *store.Config) { c.RetentionMs = 60_000; c.SegmentMs = 10_000 })
	pid := r.pid()
	for i := range int64(5) {
		r.must(app(p, pid, 0, i, 1), i)
		clock.add(20 * time.Second) // each batch finds its segment too old
	}
	r.sweep() // the batches are 100, 80, 60, 40 and 20 seconds old
	r.bounds(p, 2, 5)
	clock.add(time.Hour)
	r.sweep() // even the active segment has had its time
	r.bounds(p, 5, 5)
	r.again(app(p, pid, 0, 4, 1), 4)
	r.crash()
	r.check()
	r.open()
	r.bounds(p, 5, 5)
	r.again(app(p, pid, 0, 4, 1), 4)
	r.must(app(p, pid, 0, 5, 1), 5)
}

func TestRetentionBySize(t *testing.T) {
	r := newRig(t, bolt.Options{RetentionInterval: time.Hour})
	p := r.topic("t", func(c *store.Config) { c.RetentionBytes = 5000; c.SegmentBytes = 1024 })
	ctx := context.Background()
	for i := range int64(40) {
		r.must(store.Append{Partition: p, Batch: large(400)}, i)
	}
	r.sweep()
	info, err := r.Partition(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if info.Bytes < 5000 || info.Bytes-info.Segments[0].Bytes >= 5000 {
		t.Errorf("%d bytes in %d segments are kept, want the fewest segments with 5000", info.Bytes, len(info.Segments))
	}
	if info.Earliest != info.Segments[0].BaseOffset || info.Earliest == 0 {
		t.Errorf("earliest %d, first segment %d", info.Earliest, info.Segments[0].BaseOffset)
	}
	if _, err := r.Read(ctx, store.Read{Partition: p, Offset: 0, MaxRecords: 1, MaxBytes: 1}); store.CodeOf(err) != store.CodeRecordsTrimmed {
		t.Errorf("reading what is gone: %v", err)
	}
	r.crash()
	r.check()
}

func TestDeletedTopicLeavesNothing(t *testing.T) {
	r := newRig(t, bolt.Options{RetentionInterval: time.Hour})
	ctx := context.Background()
	p := r.topic("t", nil)
	a, _ := history(r, p)
	for i := range int64(1200) { // more than one slice
		r.must(app(p, a, 0, 6+i, 1), 8+i)
	}
	if err := r.DeleteTopic(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	r.sweep()
	r.close()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{
			bolt.BucketBatches, bolt.BucketHeaders, bolt.BucketMarks, bolt.BucketSegments,
			bolt.BucketSnapshots, bolt.BucketChunks, bolt.BucketTrash,
		} {
			if n := tx.Bucket(name).Stats().KeyN; n != 0 {
				t.Errorf("bucket %s keeps %d keys", name, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.check()
}

func TestExpiryIsByArrivalAndSurvivesAClockSetBack(t *testing.T) {
	clock := newTicker()
	r := newRig(t, bolt.Options{Now: clock.Now, RetentionInterval: time.Hour})
	p := r.topic("t", func(c *store.Config) { c.ProducerExpiryMs = 60_000 })
	a, b := r.pid(), r.pid()
	r.must(app(p, a, 2, 0, 3), 0)
	clock.add(50 * time.Second)
	r.must(app(p, b, 0, 0, 1), 3)
	r.again(app(p, a, 2, 0, 3), 0) // a duplicate keeps nobody alive
	clock.add(10 * time.Second)
	e := r.refused(app(p, a, 2, 3, 1), store.CodeProducerExpired)
	if e.Sequence.LastEpoch != 2 || *e.Sequence.LastSeq != 2 || !e.Sequence.ExpiredAt.Equal(clock.Now()) {
		t.Errorf("expired: %+v", e.Sequence)
	}
	if _, err := r.PartitionProducer(context.Background(), p, a); store.CodeOf(err) != store.CodeUnknownProducerID {
		t.Errorf("an expired producer is shown: %v", err)
	}
	r.crash()
	r.check()
	clock.add(-24 * time.Hour)
	r.open()
	ack, err := r.Append(context.Background(), store.Append{Partition: r.topic("new", nil), Batch: texts("x", 1)})
	if err != nil || ack.AppendedAt.Before(clock.Now().Add(23*time.Hour)) {
		t.Errorf("time went back over the restart: %+v, %v", ack, err)
	}
	r.refused(app(p, a, 2, 3, 1), store.CodeProducerExpired)
	r.must(app(p, b, 0, 1, 1), 4) // the day must not count against it either
	r.must(app(p, a, 3, 0, 1), 5)
	r.crash()
	r.check()
}

func TestListingMakesExpiryDurable(t *testing.T) {
	clock := newTicker()
	r := newRig(t, bolt.Options{Now: clock.Now, RetentionInterval: time.Hour})
	p := r.topic("t", func(c *store.Config) { c.ProducerExpiryMs = 60_000 })
	pid := r.pid()
	r.must(app(p, pid, 0, 0, 1), 0)
	clock.add(time.Minute)
	if list, err := r.PartitionProducers(context.Background(), p, -1, 10); err != nil || len(list) != 0 {
		t.Fatalf("list %+v, %v", list, err)
	}
	r.crash()
	clock.add(-time.Hour)
	r.open()
	r.refused(app(p, pid, 0, 1, 1), store.CodeProducerExpired)
}

// Two expiries between the same two batches are two marks.
func TestExpiriesAtOneOffsetAllSurvive(t *testing.T) {
	clock := newTicker()
	r := newRig(t, bolt.Options{Now: clock.Now, RetentionInterval: time.Hour})
	p := r.topic("t", func(c *store.Config) { c.ProducerExpiryMs = 60_000 })
	a, b := r.pid(), r.pid()
	r.must(app(p, a, 0, 0, 1), 0)
	r.must(app(p, b, 0, 0, 1), 1)
	clock.add(time.Minute)
	r.refused(app(p, a, 0, 1, 1), store.CodeProducerExpired)
	r.refused(app(p, b, 0, 1, 1), store.CodeProducerExpired)
	r.crash()
	r.check()
	clock.add(-time.Minute)
	r.open()
	r.refused(app(p, a, 0, 1, 1), store.CodeProducerExpired)
	r.refused(app(p, b, 0, 1, 1), store.CodeProducerExpired)
}

func TestOnlyTheNewestSnapshotsAreKept(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	ctx := context.Background()
	for i := range int64(10) {
		r.must(app(p, pid, 0, i, 1), i)
		if _, err := r.TakeSnapshots(ctx, store.SnapshotFilter{Topic: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := r.Snapshots(ctx, store.SnapshotFilter{Topic: "t"})
	if err != nil || len(list) != 8 || list[0].Offset != 3 || list[7].Offset != 10 {
		t.Fatalf("%d snapshots %+v, %v, want the newest eight", len(list), list, err)
	}
	r.crash()
	r.check()
}
