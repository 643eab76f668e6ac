package bolt_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// manyProducers is more than a snapshot takes in one step.
const manyProducers = 3 * bolt.CaptureFrom

// crowd appends one record each of many producers and returns their ids, which follow on
// each other.
func (r *rig) crowd(p store.Partition, n int) (first int64) {
	r.t.Helper()
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = r.pid()
	}
	r.each(n, func(i int) store.Append { return app(p, ids[i], 0, 0, 1) })
	return ids[0]
}

// each makes n appends, many at a time, and expects that they succeed.
func (r *rig) each(n int, a func(i int) store.Append) {
	r.t.Helper()
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 256 {
		wg.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				if _, err := r.Append(context.Background(), a(i)); err != nil {
					r.t.Errorf("append %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func (r *rig) verified(p store.Partition, offset int64) {
	r.t.Helper()
	diff, err := r.VerifySnapshot(context.Background(), p, offset)
	if err != nil || len(diff.Differences) > 0 {
		r.t.Fatalf("the snapshot at %d: %v, %d differences, first %v", offset, err, len(diff.Differences), diff.Differences[:min(3, len(diff.Differences))])
	}
}

// A snapshot that is taken in steps holds the state at its offset, whatever happens to
// producers meanwhile: new ones, known ones that go on, expire, come back.
func TestCaptureWhileAppending(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	first := r.crowd(p, manyProducers)
	// Every third one is a tombstone from before.
	for i := int64(0); i < 300; i += 3 {
		if err := r.ExpireProducer(context.Background(), p, first+i); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // from both ends, so that some are encoded already and some are not
		for i := int64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			k := i % manyProducers
			low, high := first+k, first+manyProducers-1-k
			for _, pid := range []int64{low, high} {
				_, _ = r.Append(context.Background(), app(p, pid, 0, 1, 1)) // or refused, if done before
			}
			_ = r.ExpireProducer(context.Background(), p, first+(k*7)%manyProducers)
			_, _ = r.Append(context.Background(), app(p, first+(k*7)%manyProducers, 1, 0, 1))
			_, _ = r.Append(context.Background(), app(p, r.pid(), 0, 0, 1))
		}
	})
	for range 3 {
		snaps, err := r.TakeSnapshots(context.Background(), store.SnapshotFilter{Topic: "t"})
		if err != nil || len(snaps) != 1 {
			t.Fatalf("snapshots %v, %v", snaps, err)
		}
		r.verified(p, snaps[0].Offset)
		_, producers, err := r.Snapshot(context.Background(), p, snaps[0].Offset)
		if err != nil || len(producers) != snaps[0].Producers {
			t.Fatalf("%d producers are in the snapshot, its row says %d, %v", len(producers), snaps[0].Producers, err)
		}
	}
	close(stop)
	wg.Wait()
	if _, err := r.Roll(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	snaps, err := r.Snapshots(context.Background(), store.SnapshotFilter{})
	if err != nil || snaps[len(snaps)-1].Reason != store.SnapshotRoll {
		t.Fatalf("after a roll the snapshots are %+v, %v", snaps, err)
	}
	r.verified(p, snaps[len(snaps)-1].Offset)
	r.close()
	r.check()
}

// A crash in the middle leaves chunks without a row: the older snapshot counts, and the
// chunks go.
func TestCrashDuringCapture(t *testing.T) {
	r := newRig(t, bolt.Options{RetentionInterval: time.Hour})
	p := r.topic("t", nil)
	first := r.crowd(p, manyProducers)
	if _, err := r.TakeSnapshots(context.Background(), store.SnapshotFilter{}); err != nil {
		t.Fatal(err)
	}
	r.must(app(p, first, 0, 1, 1), manyProducers)
	r.BeginCapture(p)
	r.crash()

	r.open()
	snaps, err := r.Snapshots(context.Background(), store.SnapshotFilter{})
	if err != nil || len(snaps) == 0 || snaps[0].Offset != manyProducers {
		t.Fatalf("snapshots %+v, %v", snaps, err)
	}
	r.again(app(p, first, 0, 1, 1), manyProducers)
	if err := r.DeleteSnapshot(context.Background(), p, manyProducers); err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.close()
	rows, chunks := map[string]bool{}, map[string]int{}
	err = bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		if err := tx.Bucket(bolt.BucketSnapshots).ForEach(func(k, _ []byte) error {
			rows[string(k)] = true
			return nil
		}); err != nil {
			return err
		}
		return tx.Bucket(bolt.BucketChunks).ForEach(func(k, _ []byte) error {
			chunks[string(k[:len(k)-4])]++
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, n := range chunks {
		if !rows[key] {
			t.Errorf("%d chunks of %x belong to no snapshot", n, key)
		}
	}
	if len(chunks) == 0 {
		t.Error("no snapshot has any chunks")
	}
	r.check()
}
