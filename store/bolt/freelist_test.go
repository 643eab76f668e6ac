package bolt_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// manyFree deletes a topic that takes more pages than the list may be long.
func manyFree(r *rig) store.Partition {
	r.t.Helper()
	kept, gone := r.topic("kept", nil), r.topic("gone", nil)
	for i := range int64(64) {
		r.must(store.Append{Partition: gone, Batch: large(64 << 10)}, i)
	}
	r.must(app(kept, r.pid(), 0, 0, 1), 0)
	if err := r.DeleteTopic(context.Background(), "gone"); err != nil {
		r.t.Fatal(err)
	}
	if err := r.Sweep(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	return kept
}

// A list of free pages that is long is left out of commits, and written when the store
// falls quiet or closes.
func TestLongFreelist(t *testing.T) {
	r := newRig(t, bolt.Options{RetentionInterval: time.Hour})
	r.SetListedPages(100)
	if !r.FreelistOnDisk() {
		t.Error("a new store has no list")
	}
	p := manyFree(r)
	pid := r.pid()
	r.must(app(p, pid, 0, 0, 1), 1)
	if r.FreelistOnDisk() {
		t.Fatal("the list of more than 1000 pages was written with a commit")
	}
	save := func() {
		t.Helper()
		if err := r.SaveFreelist(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	save() // notes the number of commits
	r.must(app(p, pid, 0, 1, 1), 2)
	save()
	if r.FreelistOnDisk() {
		t.Error("the list was written while the store was in use")
	}
	save()
	if !r.FreelistOnDisk() {
		t.Error("the list was not written when the store had fallen quiet")
	}
	r.must(app(p, pid, 0, 2, 1), 3)
	if r.FreelistOnDisk() {
		t.Error("the list was written with the commit after that")
	}
	r.close()
	r.check()
	if !listInFile(t, r.dir) {
		t.Error("Close did not write the list")
	}
	r.open()
	r.again(app(p, pid, 0, 2, 1), 3)
}

// listInFile reports whether the newest of the two meta pages of bbolt's file names a
// page for the list.
func listInFile(t *testing.T, dir string) bool {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "oncelog.db"))
	if err != nil {
		t.Fatal(err)
	}
	const list, txid = 48, 64 // offsets in a page: header 16, magic to flags 16, root 16, list, pages, transaction
	var newest, page uint64
	for _, meta := range []int{0, os.Getpagesize()} {
		if id := binary.LittleEndian.Uint64(b[meta+txid:]); id >= newest {
			newest, page = id, binary.LittleEndian.Uint64(b[meta+list:])
		}
	}
	return page != math.MaxUint64
}

// After a crash without the list, the free pages are found and used again.
func TestCrashWithoutFreelist(t *testing.T) {
	r := newRig(t, bolt.Options{RetentionInterval: time.Hour})
	r.SetListedPages(100)
	p := manyFree(r)
	pid := r.pid()
	r.must(app(p, pid, 0, 0, 1), 1)
	free := r.Stats().FreeBytes
	r.crash()
	if listInFile(t, r.dir) {
		t.Error("the list is in the file")
	}
	r.open()
	if got := r.Stats().FreeBytes; got < free-64<<10 || free < 4<<20 {
		t.Errorf("%d bytes are free after the crash, %d were before", got, free)
	}
	r.again(app(p, pid, 0, 0, 1), 1)
	r.must(app(p, pid, 0, 1, 1), 2)
	r.close()
	r.check()
}
