package bolt_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// history appends eight batches of two producers with a roll and two snapshots among
// them, so that recovery has something to choose from.
func history(r *rig, p store.Partition) (a, b int64) {
	r.t.Helper()
	ctx := context.Background()
	a, b = r.pid(), r.pid()
	r.must(app(p, a, 0, 0, 2), 0)
	r.must(app(p, a, 0, 2, 1), 2)
	if _, err := r.TakeSnapshots(ctx, store.SnapshotFilter{}); err != nil {
		r.t.Fatal(err)
	}
	r.must(app(p, b, 3, 0, 1), 3)
	if _, err := r.Roll(ctx, p); err != nil {
		r.t.Fatal(err)
	}
	r.must(app(p, a, 0, 3, 1), 4)
	r.must(app(p, a, 0, 4, 2), 5)
	if err := r.ExpireProducer(ctx, p, b); err != nil {
		r.t.Fatal(err)
	}
	r.must(app(p, b, 4, 0, 1), 7)
	return a, b
}

// expectHistory checks that everything which history did is remembered.
func expectHistory(r *rig, p store.Partition, a, b int64) {
	r.t.Helper()
	r.bounds(p, 0, 8)
	r.again(app(p, a, 0, 0, 2), 0)
	r.again(app(p, a, 0, 4, 2), 5)
	r.again(app(p, b, 4, 0, 1), 7)
	r.refused(app(p, b, 3, 0, 1), store.CodeProducerFenced)
	if e := r.refused(app(p, a, 0, 9, 1), store.CodeOutOfOrderSequence); e.Sequence.ExpectedSeq != 6 {
		r.t.Fatalf("expected sequence %d, want 6", e.Sequence.ExpectedSeq)
	}
}

// damageSnapshots flips a bit in the newest n snapshots.
func damageSnapshots(t *testing.T, dir string, n int) {
	t.Helper()
	err := bolt.Edit(dir, func(tx *bbolt.Tx) error {
		c := tx.Bucket(bolt.BucketChunks).Cursor()
		for k, v := c.Last(); k != nil && n > 0; k, v = c.Prev() {
			bad := append([]byte(nil), v...)
			bad[len(bad)-1] ^= 0x10
			if err := tx.Bucket(bolt.BucketChunks).Put(append([]byte(nil), k...), bad); err != nil {
				return err
			}
			n--
			c.Seek(k)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecoveryFallsBackFromDamagedSnapshots(t *testing.T) {
	for _, damaged := range []int{0, 1, 2} {
		r := newRig(t, bolt.Options{})
		p := r.topic("t", nil)
		a, b := history(r, p)
		r.crash()
		r.check()
		damageSnapshots(t, r.dir, damaged)
		r.open()
		expectHistory(r, p, a, b)
		if got := strings.Count(r.log.String(), "a snapshot is damaged"); got != damaged {
			t.Errorf("%d warnings for %d damaged snapshots", got, damaged)
		}
	}
}

func TestRecoveryAfterCleanShutdownReplaysNothing(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	a, b := history(r, p)
	r.close()
	r.check()
	r.open()
	expectHistory(r, p, a, b)
	list, err := r.Snapshots(context.Background(), store.SnapshotFilter{})
	if err != nil || list[len(list)-1].Reason != store.SnapshotShutdown || list[len(list)-1].Offset != 8 {
		t.Fatalf("snapshots %+v, %v: want one of the shutdown at 8", list, err)
	}
}

func TestStateOutlivesRecords(t *testing.T) {
	r := newRig(t, bolt.Options{})
	ctx := context.Background()
	p := r.topic("t", nil)
	a, b := history(r, p)
	if _, err := r.Trim(ctx, p, 8); err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	err := r.Store.Crash()
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	err = bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		for _, b := range [][]byte{bolt.BucketBatches, bolt.BucketHeaders, bolt.BucketMarks} {
			left += tx.Bucket(b).Stats().KeyN
		}
		return nil
	})
	if err != nil || left != 0 {
		t.Fatalf("%d keys left of trimmed records, %v", left, err)
	}
	r.check()
	// The listed snapshot at 8 is damaged: the base must do.
	damageListed(t, r.dir)
	r.open()
	r.bounds(p, 8, 8)
	r.again(app(p, a, 0, 4, 2), 5)
	r.refused(app(p, b, 3, 0, 1), store.CodeProducerFenced)
	r.must(app(p, a, 0, 6, 1), 8)
}

// damageListed damages all snapshots but the base.
func damageListed(t *testing.T, dir string) {
	t.Helper()
	err := bolt.Edit(dir, func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bolt.BucketSnapshots)
		return bucket.ForEach(func(k, _ []byte) error {
			if k[8] == 0 {
				return nil
			}
			return bucket.Put(append([]byte(nil), k...), []byte("{"))
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	r := newRig(t, bolt.Options{})
	r.close()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		return tx.Bucket(bolt.BucketMeta).Put(bolt.KeyFormat, binary.BigEndian.AppendUint64(nil, bolt.Format+1))
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = bolt.Open(r.dir, bolt.Options{})
	newer := fmt.Sprintf("format %d", bolt.Format+1)
	if err == nil || !strings.Contains(err.Error(), newer) || !strings.Contains(err.Error(), "newer version") {
		t.Fatalf("opening a newer format: %v", err)
	}
	if _, err := bolt.Check(r.dir, nil); err == nil || !strings.Contains(err.Error(), newer) {
		t.Fatalf("checking a newer format: %v", err)
	}
}

func TestSecondProcessGetsAClearError(t *testing.T) {
	r := newRig(t, bolt.Options{})
	for name, open := range map[string]func() error{
		"open":  func() error { _, err := bolt.Open(r.dir, bolt.Options{}); return err },
		"check": func() error { _, err := bolt.Check(r.dir, nil); return err },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "in use by another") {
			t.Errorf("%s while open: %v", name, err)
		}
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "oncelog.db"), []byte("not a database, but long enough to be read as one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Open(dir, bolt.Options{}); err == nil {
		t.Fatal("a foreign file was opened")
	}
}

func TestForeignDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	db, err := bbolt.Open(filepath.Join(dir, "oncelog.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("of somebody else"))
		return err
	}), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Open(dir, bolt.Options{}); err == nil || !strings.Contains(err.Error(), "not an oncelog data file") {
		t.Fatalf("a bbolt file of another program: %v", err)
	}
}

func TestProducerIDs(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	if got := r.pid(); got != 0 {
		t.Fatalf("first id %d", got)
	}
	r.refused(app(p, 1, 0, 0, 1), store.CodeUnknownProducerID)
	r.close()
	r.open()
	if got := r.pid(); got != 1 {
		t.Fatalf("a clean restart went on with %d, want 1", got)
	}
	r.crash()
	r.open()
	if got := r.pid(); got != 1001 {
		t.Fatalf("a crash went on with %d, want 1001: the rest of the block of ids 1 to 1000 is lost", got)
	}
}

func TestProducerIDsExhausted(t *testing.T) {
	r := newRig(t, bolt.Options{})
	r.close()
	const last = 1<<53 - 1
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		return bolt.Reseal(tx.Bucket(bolt.BucketMeta), bolt.KeyPIDMark, binary.BigEndian.AppendUint64(nil, last-1))
	})
	if err != nil {
		t.Fatal(err)
	}
	r.open()
	for _, want := range []int64{last - 1, last} {
		if got := r.pid(); got != want {
			t.Fatalf("id %d, want %d", got, want)
		}
	}
	for range 2 {
		if _, err := r.AllocateProducer(context.Background(), ""); store.CodeOf(err) != store.CodeProducersExhausted {
			t.Fatalf("after the last id: %v", err)
		}
		r.close()
		r.open()
	}
}
