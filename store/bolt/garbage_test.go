package bolt_test

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

const mebibyte = 1 << 20

// most is how many pages the reaper leaves free: it stops at enough, but ends the slice.
const most = bolt.EnoughFree + 16*mebibyte/4096 + 200

// refill trims or deletes what a topic of that size holds, and appends as much again: the
// file must not grow, and few pages be free at any time.
func refill(t *testing.T, r *rig, mebibytes int64, remove func(store.Partition)) {
	t.Helper()
	fill := func(p store.Partition) {
		t.Helper()
		for i := range mebibytes {
			r.must(store.Append{Partition: p, Batch: sized(t, mebibyte)}, i)
		}
	}
	old := r.topic("old", nil)
	fill(old)
	size := r.Stats().StoreBytes
	remove(old)
	r.sweep()
	free, listed := r.FreePages()
	if free < bolt.EnoughFree || free > most || !listed {
		t.Errorf("%d pages are free, listed: %v; want %d to %d", free, listed, bolt.EnoughFree, most)
	}
	// Of what is free but not yet deleted everybody who asks is told.
	if s := r.Stats(); s.FreeBytes < mebibytes*mebibyte*9/10 || s.FreeBytes > s.StoreBytes {
		t.Errorf("%d of %d bytes are free", s.FreeBytes, s.StoreBytes)
	}
	r.crash()
	r.check()
	r.open()
	if s := r.Stats(); s.FreeBytes < mebibytes*mebibyte*9/10 {
		t.Errorf("after a crash %d of %d bytes are free", s.FreeBytes, s.StoreBytes)
	}
	r.sweep() // as the first tick does
	fill(r.topic("new", nil))
	if s := r.Stats(); s.StoreBytes > size+20*mebibyte {
		t.Errorf("the file has grown from %d to %d bytes", size, s.StoreBytes)
	}
	if free, listed := r.FreePages(); free > most || !listed {
		t.Errorf("%d pages are free, listed: %v", free, listed)
	}
}

func TestGarbageIsDeletedAsSpaceIsNeeded(t *testing.T) {
	o := bolt.WithEnoughFree(bolt.Options{RetentionInterval: time.Hour}) // so that only need wakes the reaper
	t.Run("trim", func(t *testing.T) {
		r := newRig(t, o)
		refill(t, r, 40, func(p store.Partition) {
			if _, err := r.Trim(context.Background(), p, 40); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("delete", func(t *testing.T) {
		r := newRig(t, o)
		refill(t, r, 40, func(p store.Partition) {
			if err := r.DeleteTopic(context.Background(), p.Topic); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// TestGarbageComesToAnEnd: nothing is left when space has been needed for long enough, and
// nothing is counted that is not there.
func TestGarbageComesToAnEnd(t *testing.T) {
	r := newRig(t, bolt.WithEnoughFree(bolt.Options{RetentionInterval: time.Hour}))
	p := r.topic("t", func(c *store.Config) { c.SegmentBytes = 4 * mebibyte })
	at := int64(0)
	add := func(n int) {
		for range n {
			r.must(store.Append{Partition: p, Batch: sized(t, mebibyte)}, at)
			at++
		}
	}
	add(30)
	if _, err := r.Trim(context.Background(), p, 20); err != nil {
		t.Fatal(err)
	}
	if n := r.Garbage(); n != 20*mebibyte {
		t.Errorf("%d bytes of garbage, want %d", n, 20*mebibyte)
	}
	r.sweep()
	add(10)
	if _, err := r.Trim(context.Background(), p, 28); err != nil {
		t.Fatal(err)
	}
	add(30)
	for range 3 { // the last pages may be reaped only when asked for
		r.sweep()
	}
	add(10)
	r.sweep()
	if n := r.Garbage(); n != 0 {
		t.Errorf("%d bytes of garbage are left", n)
	}
	r.crash()
	r.check()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket(bolt.BucketBatches).Cursor().First()
		if len(k) < 16 || k[15] != 28 {
			t.Errorf("the first row of a batch is %x", k)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.open()
	if n := r.Garbage(); n != 0 {
		t.Errorf("%d bytes of garbage after a restart", n)
	}
}

// TestRefusedSpaceReapsMore: where a transaction has found no room there is not enough,
// however much it is: one of appends may need more.
func TestRefusedSpaceReapsMore(t *testing.T) {
	r := newRig(t, bolt.WithEnoughFree(bolt.Options{RetentionInterval: time.Hour}))
	p := r.topic("t", nil)
	for i := range int64(60) {
		r.must(store.Append{Partition: p, Batch: sized(t, mebibyte)}, i)
	}
	if _, err := r.Trim(context.Background(), p, 60); err != nil {
		t.Fatal(err)
	}
	r.sweep()
	enough, _ := r.FreePages()
	r.sweep()
	if free, _ := r.FreePages(); free != enough {
		t.Errorf("%d pages are free, %d were enough", free, enough)
	}
	r.RefuseSpace()
	r.sweep()
	if free, _ := r.FreePages(); free < enough+14*mebibyte/4096 {
		t.Errorf("%d pages are free after a refusal, %d were before", free, enough)
	}
}

// TestCompactLeavesGarbageOut: what waits for the reaper is not copied.
func TestCompactLeavesGarbageOut(t *testing.T) {
	r := newRig(t, bolt.WithEnoughFree(bolt.Options{RetentionInterval: time.Hour}))
	gone, cut := r.topic("gone", nil), r.topic("cut", func(c *store.Config) { c.SegmentBytes = 4 * mebibyte })
	for i := range int64(30) {
		r.must(store.Append{Partition: gone, Batch: sized(t, mebibyte)}, i)
		r.must(store.Append{Partition: cut, Batch: sized(t, mebibyte)}, i)
	}
	if _, err := r.Trim(context.Background(), cut, 28); err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteTopic(context.Background(), gone.Topic); err != nil {
		t.Fatal(err)
	}
	r.close()
	c, err := bolt.Compact(context.Background(), r.dir, nil)
	if err != nil || c.After > 4*mebibyte {
		t.Errorf("%+v, %v", c, err)
	}
	r.check()
	r.open()
	if got := r.everything(cut, 28, math.MaxInt); len(got) != 2 {
		t.Errorf("%d batches are left, want 2", len(got))
	}
	r.sweep()
	if n := r.Garbage(); n != 0 {
		t.Errorf("%d bytes of garbage", n)
	}
	r.close()
	if rep := r.check(); strings.Contains(strings.Join(rep.Problems, ""), "trash") {
		t.Error(rep.Problems)
	}
}

// TestHeadersGoWithTheirBatches: where appends and retention never stop, there is garbage at
// any time, and yet nothing of what is old stays.
func TestHeadersGoWithTheirBatches(t *testing.T) {
	r := newRig(t, bolt.WithEnoughFree(bolt.Options{RetentionInterval: time.Hour}))
	p := r.topic("t", func(c *store.Config) { c.SegmentBytes = mebibyte })
	// At first more is deleted than is used again soon.
	const fill, rounds, each = 8000, 12, 1500
	b := sized(t, 3000)
	add := func(n int) {
		r.each(n, func(int) store.Append { return store.Append{Partition: p, Batch: b} })
	}
	add(fill)
	for round := range int64(rounds) {
		if _, err := r.Trim(context.Background(), p, fill+each*round); err != nil {
			t.Fatal(err)
		}
		r.sweep()
		add(each)
	}
	r.sweep()
	r.crash()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bolt.BucketBatches, bolt.BucketHeaders} {
			k, _ := tx.Bucket(name).Cursor().First()
			first := int64(binary.BigEndian.Uint64(k[8:]))
			if first < fill*9/10 {
				t.Errorf("bucket %q begins at offset %d of %d", name, first, fill+each*rounds)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
