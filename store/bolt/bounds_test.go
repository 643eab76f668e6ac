package bolt_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// TestCutoffDuringCapture: tombstones that are dropped while a large snapshot is taken in
// steps are in it, and those that were dropped before are not.
func TestCutoffDuringCapture(t *testing.T) {
	const bound = 40
	r := newRig(t, bolt.Options{MaxTombstones: bound})
	p := r.topic("t", nil)
	first := r.crowd(p, manyProducers)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	// Upwards from the last third on: what is dropped is what the snapshot comes to last.
	from := first + 2*manyProducers/3
	wg.Go(func() {
		for i := range int64(manyProducers / 3) {
			select {
			case <-stop:
				return
			default:
			}
			_ = r.ExpireProducer(context.Background(), p, from+i)
			if i%3 == 0 {
				_, _ = r.Append(context.Background(), app(p, from+i, 1, 0, 1))
			}
		}
	})
	for r.Stats().CutOffProducers < 5*bound {
		snaps, err := r.TakeSnapshots(context.Background(), store.SnapshotFilter{Topic: "t"})
		if err != nil || len(snaps) != 1 {
			t.Fatalf("snapshots %v, %v", snaps, err)
		}
		r.verified(p, snaps[0].Offset)
	}
	close(stop)
	wg.Wait()
	r.crash()
	r.check()
	r.open()
	if n := r.Stats().Tombstones; n > bound {
		t.Errorf("%d tombstones, at most %d are kept", n, bound)
	}
	r.refused(app(p, from, 0, 0, 1), store.CodeProducerFenced)
	if e := r.refused(app(p, from+1, 0, 0, 1), store.CodeProducerExpired); e.Sequence.LastSeq != nil {
		t.Errorf("%+v", e.Sequence)
	}
}

// TestManyExpireWithFewMarks: that thousands expire at once costs a few marks, not one
// each, beyond those of the expiries, and no more than the bound is kept.
func TestManyExpireWithFewMarks(t *testing.T) {
	const bound, many = 1600, 5000
	clock := newTicker()
	r := newRig(t, bolt.Options{MaxTombstones: bound, Now: clock.Now, RetentionInterval: time.Hour})
	p := r.topic("t", func(c *store.Config) { c.ProducerExpiryMs = 1000 })
	first := r.crowd(p, many)
	clock.add(time.Minute)
	before := r.Stats().Commits
	if err := r.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := r.Stats()
	if s.Producers != 0 || s.Tombstones > bound || s.Tombstones < bound*9/10 || s.ExpiredProducers != many || s.Tombstones+s.CutOffProducers != many {
		t.Errorf("%+v", s)
	}
	if n := s.Commits - before; n > 8 {
		t.Errorf("%d transactions", n)
	}
	// The next ones find room that was made in advance.
	other := r.crowd(p, 50)
	before = r.Stats().Commits
	for i := range int64(50) {
		if err := r.ExpireProducer(context.Background(), p, other+i); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Stats().Commits - before; n > 51 {
		t.Errorf("%d transactions for 50 expiries", n)
	}
	r.crash()
	r.check()
	r.open()
	for i := int64(0); i < many; i += 97 {
		r.refused(app(p, first+i, 0, 0, 1), store.CodeProducerExpired)
	}
}

// TestLimitOfTheStoreUnderLoad: many newcomers at once never take the store beyond its
// limit, and each of them is let in.
func TestLimitOfTheStoreUnderLoad(t *testing.T) {
	const limit, many = 500, 4000
	r := newRig(t, bolt.Options{MaxProducers: limit})
	var parts []store.Partition
	for _, name := range []string{"a", "b", "c"} {
		parts = append(parts, r.topic(name, nil))
	}
	ids := make([]int64, many)
	for i := range ids {
		ids[i] = r.pid()
	}
	r.each(many, func(i int) store.Append { return app(parts[i%len(parts)], ids[i], 0, 0, 1) })
	s := r.Stats()
	if s.Producers != limit || s.EvictedProducers != many-limit || s.Tombstones != many-limit {
		t.Errorf("%d producers, %d evicted, %d tombstones", s.Producers, s.EvictedProducers, s.Tombstones)
	}
	if n := strings.Count(r.log.String(), "the store is near its limit of producers"); n != 1 {
		t.Errorf("%d warnings that the limit is near", n)
	}
	if n := strings.Count(r.log.String(), "the store has reached its limit of producers"); n != 1 {
		t.Errorf("%d warnings that the limit is reached", n)
	}
	r.crash()
	r.check()
	r.open()
	if s := r.Stats(); s.Producers != limit || s.Tombstones != many-limit {
		t.Errorf("after a restart %d producers, %d tombstones", s.Producers, s.Tombstones)
	}
}

// TestNearMaxProducers: somebody is told before producers are evicted.
func TestNearMaxProducers(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", func(c *store.Config) { c.MaxProducers = 10 })
	first := r.crowd(p, 8)
	expect := func(near, evicted int64, warnings int) {
		t.Helper()
		r.Block()() // the answers come first
		s := r.Stats()
		n := strings.Count(r.log.String(), "a partition is near maxProducers")
		if s.NearMaxProducers != near || s.EvictedProducers != evicted || n != warnings {
			t.Errorf("%d near, %d evicted, %d warnings; want %d, %d, %d", s.NearMaxProducers, s.EvictedProducers, n, near, evicted, warnings)
		}
	}
	expect(0, 0, 0)
	last := r.crowd(p, 1)
	expect(1, 0, 1)
	r.close()
	r.open()
	expect(1, 0, 2) // a restart says it again
	if err := r.ExpireProducer(context.Background(), p, last); err != nil {
		t.Fatal(err)
	}
	expect(1, 0, 2) // 8 of 10: not far enough below to warn anew at 9
	r.crowd(p, 4)
	expect(1, 2, 2)
	if !strings.Contains(r.log.String(), "a partition has reached maxProducers") {
		t.Error("nothing says that producers are evicted")
	}
	for i := range int64(6) {
		_ = r.ExpireProducer(context.Background(), p, first+i) // two are evicted already
	}
	expect(0, 2, 2)
	_, err := r.UpdateTopic(context.Background(), "t", func(t store.Topic) (store.Topic, error) {
		t.Config.MaxProducers = 6
		return t, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(1, 2, 3)
	if err := r.DeleteTopic(context.Background(), "t"); err != nil {
		t.Fatal(err)
	}
	expect(0, 2, 3)
	if s := r.Stats(); s.Producers != 0 || s.Tombstones != 0 {
		t.Errorf("%d producers and %d tombstones are in no topic", s.Producers, s.Tombstones)
	}
}
