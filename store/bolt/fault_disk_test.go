//go:build linux

package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
	"github.com/oncelog/oncelog/store/storetest/faultfs"
)

// TestFailedWrites lets each of the writes and fsyncs of a commit fail in turn. Whatever
// it is: the client is told that the outcome is not known, no further write is taken even
// when the disk works again, reads go on, and after a restart everything that was
// acknowledged is there and what was in doubt is stored once.
func TestFailedWrites(t *testing.T) {
	for _, kind := range []faultfs.Kind{faultfs.Write, faultfs.Sync} {
		for n := range 20 {
			r := newFaultRig(t, bolt.Options{})
			p, other := r.topic("t", nil), r.topic("other", nil)
			pid := r.pid()
			r.mustStore(app(p, pid, 0, 0, 2))
			r.mustStore(app(other, pid, 0, 0, 1))
			r.fs.Inject(faultfs.Fault{Kind: kind, After: n, Times: 1, Errno: syscall.EIO})
			err := r.store(app(p, pid, 0, 2, 1))
			if r.fs.Struck() == 0 {
				if n == 0 || err != nil {
					t.Fatalf("%s %d: %v", kind, n, err)
				}
				t.Logf("a commit has %d of %s", n, kind)
				r.fs.Inject()
				r.close()
				break
			}
			if store.CodeOf(err) != store.CodeStorageFailed {
				t.Errorf("%s %d failed: %v", kind, n, err)
			}
			r.refused(app(p, pid, 0, 3, 1), store.CodeStorageFailed)
			r.refused(app(other, pid, 0, 1, 1), store.CodeStorageFailed)
			if err := r.Ready(); store.CodeOf(err) != store.CodeStorageFailed {
				t.Errorf("ready: %v", err)
			}
			r.expect()
			r.bounds(p, 0, 2)
			r.again(app(p, pid, 0, 0, 2), 0)

			r.restart()
			r.mustStore(app(p, pid, 0, 2, 1)) // new or a duplicate
			r.mustStore(app(p, pid, 0, 3, 1))
			r.bounds(p, 0, 4)
			r.close()
			r.check()
		}
	}
}

// TestFsyncFailsForGood expects a store on a disk that syncs nothing to open, to be read,
// and to take nothing.
func TestFsyncFailsForGood(t *testing.T) {
	r := newFaultRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	r.mustStore(app(p, pid, 0, 0, 1))
	r.crash()
	r.fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Errno: syscall.EIO})
	r.open()
	r.expect()
	r.refused(app(p, pid, 0, 1, 1), store.CodeStorageFailed)
	if _, err := r.CreateTopic(context.Background(), "u", 1, store.DefaultConfig()); store.CodeOf(err) != store.CodeStorageFailed {
		t.Errorf("create topic: %v", err)
	}
	r.restart()
	r.mustStore(app(p, pid, 0, 1, 1))
	r.bounds(p, 0, 2)
}

// TestShortWrites expects writes that come short to be finished.
func TestShortWrites(t *testing.T) {
	r := newFaultRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	for i := range int64(20) {
		r.fs.Inject(faultfs.Fault{Kind: faultfs.Write, Times: 3, Short: 100 + int(i)*300})
		r.mustStore(app(p, pid, 0, i, 1))
	}
	r.restart()
	r.bounds(p, 0, 20)
}

// TestNoSpace expects a write that finds no room to be refused as such, to leave no
// trace, and not to stop the engine; but not an fsync that does.
func TestNoSpace(t *testing.T) {
	big := func(p store.Partition, pid, seq int64) store.Append {
		a := app(p, pid, 0, seq, 1)
		a.Batch = large(200 << 10)
		return a
	}
	for name, fault := range map[string]faultfs.Fault{
		"write":       {Kind: faultfs.Write, Times: 1, Errno: syscall.ENOSPC},
		"later write": {Kind: faultfs.Write, After: 2, Times: 1, Errno: syscall.ENOSPC},
		"quota":       {Kind: faultfs.Write, Times: 1, Errno: syscall.EDQUOT},
		"short write": {Kind: faultfs.Write, Times: 2, Short: 1000},
	} {
		r := newFaultRig(t, bolt.Options{})
		p := r.topic("t", nil)
		pid := r.pid()
		r.mustStore(big(p, pid, 0))
		r.fs.Inject(fault)
		if fault.Short > 0 { // the rest finds no room
			r.fs.Inject(fault, faultfs.Fault{Kind: faultfs.Write, Errno: syscall.ENOSPC})
		}
		r.refused(big(p, pid, 1), store.CodeStorageFull)
		if r.fs.Struck() == 0 {
			t.Errorf("%s: nothing has failed", name)
		}
		r.fs.Inject()
		r.bounds(p, 0, 1)
		r.mustStore(big(p, pid, 1))
		r.restart()
		r.again(big(p, pid, 1), 1)
		r.close()
	}
}

func TestNoSpaceAtFsync(t *testing.T) {
	r := newFaultRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	r.fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Times: 1, Errno: syscall.ENOSPC})
	r.refused(app(p, pid, 0, 0, 1), store.CodeStorageFailed)
	r.restart()
}

// TestNoSpaceToGrow lets the growth of the file fail.
func TestNoSpaceToGrow(t *testing.T) {
	r := newFaultRig(t, bolt.Options{})
	p := r.topic("t", nil)
	r.fs.Inject(faultfs.Fault{Kind: faultfs.Truncate, Errno: syscall.ENOSPC})
	a := store.Append{Partition: p, Batch: large(1 << 20)}
	err := r.store(a)
	for n := 0; err == nil && n < 200; n++ {
		err = r.store(a)
	}
	if store.CodeOf(err) != store.CodeStorageFull {
		t.Fatalf("the file cannot grow: %v", err)
	}
	r.expect()
	r.fs.Inject()
	r.mustStore(a)
	r.restart()
}

// TestSlowFsync expects nothing to be shown or acknowledged before it is on disk, and an
// append whose caller does not wait for that to be found when it is sent again.
func TestSlowFsync(t *testing.T) {
	r := newFaultRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	r.fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Delay: time.Hour})
	woken := make(chan error, 1)
	go func() { woken <- r.Wait(context.Background(), p, 0) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	given := make(chan error, 1)
	go func() {
		_, err := r.Append(ctx, app(p, pid, 0, 0, 1))
		given <- err
	}()
	r.untilSync()
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Fatalf("a commit that takes longer than its caller waits: %v", err)
	}
	again := make(chan error, 1)
	go func() {
		ack, err := r.Append(context.Background(), app(p, pid, 0, 0, 1))
		if err == nil && (!ack.Duplicate || ack.BaseOffset != 0) {
			err = fmt.Errorf("it is not found again: %+v", ack)
		}
		again <- err
	}()
	for r.QueueLen() == 0 && len(again) == 0 { // until it waits for the commit
		time.Sleep(time.Millisecond)
	}
	for sync := 1; sync <= 2; sync++ { // of the data, and of what makes it count
		r.bounds(p, 0, 0)
		select {
		case err := <-again:
			t.Fatalf("acknowledged during fsync %d: %v", sync, err)
		case err := <-woken:
			t.Fatalf("shown during fsync %d: %v", sync, err)
		default:
		}
		if sync == 1 {
			r.fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Delay: time.Hour})
			r.untilSync()
		}
	}
	r.fs.Inject()
	if err := errors.Join(<-again, <-woken); err != nil {
		t.Error(err)
	}
	r.bounds(p, 0, 1)
}

// untilSync waits until the disk has begun with an fsync that it is to take its time for.
func (r *faultRig) untilSync() {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); r.fs.Struck() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatal("nothing is synced")
		}
	}
}

// TestReadErrors lets the disk refuse the page that holds a batch: reads of it fail with
// a code that says so, everything else goes on, and when the disk gives it again so does
// the engine.
func TestReadErrors(t *testing.T) {
	r := newFaultRig(t, bolt.Options{})
	p, other := r.topic("t", nil), r.topic("other", nil)
	pid := r.pid()
	const batches = 12 // of some pages each, so that an append touches none of the first
	for i := range int64(batches) {
		a := app(p, pid, 0, i, 1)
		a.Batch = texts(strings.Repeat(fmt.Sprintf("batch %02d ", i), 1500), 1)
		r.mustStore(a)
		r.mustStore(app(other, pid, 0, i, 1))
	}
	r.close()
	file, err := os.ReadFile(filepath.Join(r.fs.Below, "data", "oncelog.db"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(file, []byte("batch 02"))
	if at < 0 {
		t.Fatal("the batch is not in the file")
	}
	at -= 5000 // a page that holds nothing else
	r.fs.Inject(faultfs.Fault{Kind: faultfs.Read, From: int64(at), To: int64(at) + 1, Errno: syscall.EIO})
	r.open()
	ctx := context.Background()
	read := func(offset int64) (store.Records, error) {
		return r.Read(ctx, store.Read{Partition: p, Offset: offset, MaxRecords: 1, MaxBytes: 1})
	}
	for range 3 {
		if _, err := read(2); store.CodeOf(err) != store.CodeStorageFailed {
			t.Fatalf("the batch that the disk does not give: %v", err)
		}
	}
	for _, offset := range []int64{0, 1, 3, batches - 1} {
		if _, err := read(offset); err != nil {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	if got, err := readTexts(r.Store, other); err != nil || len(got) != batches {
		t.Errorf("the other partition: %q, %v", got, err)
	}
	r.mustStore(app(p, pid, 0, batches, 1))
	r.fs.Inject()
	r.expect()
	r.restart()
}

// TestUnreadableAtStart lets each page of a store in turn be one that the disk does not
// give when the engine starts. It says so or goes on without a partition, and never ends
// the process; what can be read is what was acknowledged.
func TestUnreadableAtStart(t *testing.T) {
	r := newFaultRig(t, bolt.Options{})
	p, other := r.topic("t", nil), r.topic("other", nil)
	history(r.rig, p)
	history(r.rig, other)
	r.close()
	pages := pagesOf(t, filepath.Join(r.fs.Below, "data", "oncelog.db"))
	refused, out := 0, 0
	for page := range pages {
		r.fs.Inject(faultfs.Fault{Kind: faultfs.Read, From: page * 4096, To: page*4096 + 1, Errno: syscall.EIO})
		s, err := bolt.Open(r.dir, r.opts)
		if err != nil {
			refused++
			continue
		}
		out += int(s.Stats().OutOfService)
		for _, p := range []store.Partition{p, other} {
			if got, err := readTexts(s, p); err == nil && len(got) != 6 && s.Stats().OutOfService == 0 {
				t.Errorf("page %d: %q", page, got)
			}
		}
		if err := s.Crash(); err != nil {
			t.Fatal(err)
		}
		r.fs.Inject()
		r.check()
	}
	t.Logf("of %d pages, %d kept the store from opening, the others put %d partitions out of service", pages, refused, out)
	r.fs.Inject()
	r.open()
	r.bounds(p, 0, 8)
}

// pagesOf is how many pages of a store are in use.
func pagesOf(t *testing.T, path string) int64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := bolt.PagesInUse(f)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFullFileSystem fills a real file system, small and in memory, to the last byte.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("mount: %v", err)
		}
		t.Skipf("a file system of 24 MiB cannot be mounted (it takes root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	r := &rig{t: t, dir: filepath.Join(dir, "data"), log: &logBuffer{}, opts: bolt.Options{DiskReserve: -1, RetentionInterval: time.Hour}}
	r.open()
	p := r.topic("t", func(c *store.Config) { c.SegmentBytes = 1 << 20 })
	doomed := r.topic("doomed", nil)
	ctx := context.Background()
	pid := r.pid()
	r.must(app(p, pid, 0, 0, 1), 0)
	for range 4 {
		r.must(store.Append{Partition: doomed, Batch: large(1 << 20)}, bounds(r, doomed).HighWatermark)
	}
	for round := range 4 {
		var err error
		stored := bounds(r, p).HighWatermark
		for err == nil {
			_, err = r.Append(ctx, store.Append{Partition: p, Batch: large(100 << 10)})
			if err == nil {
				stored++
			}
		}
		if store.CodeOf(err) != store.CodeStorageFull {
			t.Fatalf("round %d: the file system is full: %v", round, err)
		}
		if b := bounds(r, p); b.HighWatermark != stored {
			t.Fatalf("round %d: %+v, %d batches were acknowledged", round, b, stored)
		}
		if _, err := readTexts(r.Store, p); err != nil {
			t.Errorf("round %d: read: %v", round, err)
		}
		r.again(app(p, pid, 0, 0, 1), 0)
		t.Logf("round %d: full with %d batches", round, stored)
		if round%2 == 0 {
			if _, err := r.Trim(ctx, p, stored-10); err != nil {
				t.Fatalf("round %d: trim of a full store: %v", round, err)
			}
		} else if round == 1 {
			if err := r.DeleteTopic(ctx, doomed.Topic); err != nil {
				t.Fatalf("round %d: delete topic: %v", round, err)
			}
		}
		if err := r.Sweep(ctx); err != nil {
			t.Fatalf("round %d: sweep of a full store: %v", round, err)
		}
		r.crash()
		r.check()
		r.open()
	}
	r.crash()
}
