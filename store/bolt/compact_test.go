package bolt_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// TestCompactGivesSpaceBack: what was deleted no longer takes up space, and everything else
// is as it was.
func TestCompactGivesSpaceBack(t *testing.T) {
	r := oldRig(t, "format1", "clean")
	r.open() // which brings it to the present format
	p := r.topic("large", func(c *store.Config) { c.SegmentBytes = 1 << 20 })
	for i := range int64(100) {
		r.must(store.Append{Partition: p, Batch: large(1 << 18)}, i)
	}
	if _, err := r.Trim(context.Background(), p, 100); err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := r.view()
	r.close()
	for _, left := range []string{"oncelog.db.compact", "backup-1.tmp"} { // by a crash
		if err := os.WriteFile(filepath.Join(r.dir, left), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := bolt.Compact(context.Background(), r.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Before < 64<<20 || c.After > 2<<20 || c.Rows < 250 {
		t.Errorf("%+v", c)
	}
	if info, err := os.Stat(filepath.Join(r.dir, "oncelog.db")); err != nil || info.Size() != c.After {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := os.ReadDir(r.dir); err != nil || len(left) != 1 {
		t.Errorf("in the directory are %v, %v", left, err)
	}
	r.check()
	r.open()
	if d := cmp.Diff(afterRestart(before), afterRestart(r.view())); d != "" {
		t.Errorf("before (-) and after (+):\n%s", d)
	}
	r.must(store.Append{Partition: p, Batch: texts("x", 1)}, 100)
}

func TestCompactRefuses(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	if _, err := bolt.Compact(context.Background(), r.dir, nil); !errors.Is(err, bolt.ErrInUse) {
		t.Errorf("of a store in use: %v", err)
	}
	r.must(store.Append{Partition: p, Batch: texts("x", 1)}, 0)
	if _, err := bolt.Compact(context.Background(), t.TempDir(), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	r.close()
	r.open()
	r.bounds(p, 0, 1)
}

// TestCompactInterrupted: at whatever step, the old file stays, and stays unlocked.
func TestCompactInterrupted(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	r.must(store.Append{Partition: p, Batch: texts("x", 1)}, 0)
	r.close()
	path := filepath.Join(r.dir, "oncelog.db")
	steps := 0
	if _, err := bolt.Compact(t.Context(), r.dir, func(int64, int64) { steps++ }); err != nil || steps < 8 {
		t.Fatalf("%d steps, %v", steps, err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for last := range steps + 1 { // 0: before the first one; the last: when all has been copied
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		step := func(int64, int64) {
			if n++; n == last {
				cancel()
			}
		}
		if last == 0 {
			cancel()
		}
		if _, err := bolt.Compact(ctx, r.dir, step); !errors.Is(err, context.Canceled) {
			t.Errorf("ended after %d steps: %v", last, err)
		}
		cancel()
		if got := names(t, r.dir); !slices.Equal(got, []string{"oncelog.db"}) {
			t.Errorf("in the directory are %v", got)
		}
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file is another one: %v", err)
	}
	r.open()
	r.bounds(p, 0, 1)
}

// TestCompactKeepsOwner: root may compact the store of a server that is not root.
func TestCompactKeepsOwner(t *testing.T) {
	r := newRig(t, bolt.Options{})
	r.close()
	path := filepath.Join(r.dir, "oncelog.db")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	const other = 12345
	owner := os.Geteuid() == 0
	if owner {
		if err := os.Chown(path, other, other); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bolt.Compact(t.Context(), r.dir, nil); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); owner && (!ok || st.Uid != other || st.Gid != other) {
		t.Errorf("it belongs to another user now")
	}
	r.open()
}

// TestOpenAfterCompactionTakesTheNewFile: whoever waited for the lock of the old file must
// not go on with it, for it is no longer in the directory.
func TestOpenAfterCompactionTakesTheNewFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the test looks for an open file where Linux shows it")
	}
	r := newRig(t, bolt.Options{})
	r.close()
	path := filepath.Join(r.dir, "oncelog.db")
	fresh := path + ".fresh"
	old, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.View(func(tx *bbolt.Tx) error { return tx.CopyFile(fresh, 0o600) }); err != nil {
		t.Fatal(err)
	}
	const mark = "of the new file"
	db, err := bbolt.Open(fresh, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bolt.BucketMeta).Put([]byte(mark), nil) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	type result struct {
		db  *bbolt.DB
		err error
	}
	opened := make(chan result)
	go func() {
		db, err := bolt.OpenLocked(path)
		opened <- result{db, err}
	}()
	for openFiles(t, path) < 2 { // until the other one waits
		runtime.Gosched()
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-opened
	if got.err != nil {
		t.Fatal(got.err)
	}
	err = got.db.View(func(tx *bbolt.Tx) error {
		if tx.Bucket(bolt.BucketMeta).Get([]byte(mark)) == nil {
			return errors.New("the old file is open")
		}
		return nil
	})
	if err := errors.Join(err, got.db.Close()); err != nil {
		t.Error(err)
	}
	r.open()
}

// openFiles is how many times this process has a file open.
func openFiles(t *testing.T, path string) int {
	t.Helper()
	const list = "/proc/self/fd"
	entries, err := os.ReadDir(list)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(list, e.Name())); err == nil && target == path {
			n++
		}
	}
	return n
}
