//go:build linux

package faultfs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oncelog/oncelog/store/storetest/faultfs"
)

func TestMain(m *testing.M) {
	faultfs.Serve()
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, fs *faultfs.FS, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(fs.Dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestMapped expects what is written to a file to be seen through a mapping of it, as
// bbolt relies on.
func TestMapped(t *testing.T) {
	fs := faultfs.New(t)
	f := open(t, fs, "f")
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, 1<<20, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(m) //nolint:errcheck // the test is over
	for i := range 200 {
		at := i * 4999
		data := bytes.Repeat([]byte{byte(i + 1)}, 4999)
		if _, err := f.WriteAt(data, int64(at)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m[at:at+len(data)], data) {
			t.Fatalf("what was written at %d is not in the mapping", at)
		}
	}
}

func TestFaults(t *testing.T) {
	fs := faultfs.New(t)
	f := open(t, fs, "f")
	write := func(s string) (int, error) { return f.WriteAt([]byte(s), 0) }
	expect := func(what string, err, want error, struck int) {
		t.Helper()
		if !errors.Is(err, want) || fs.Struck() != struck {
			t.Errorf("%s: %v, struck %d times; want %v, %d", what, err, fs.Struck(), want, struck)
		}
	}
	fs.Inject(faultfs.Fault{Kind: faultfs.Write, After: 1, Times: 1, Errno: syscall.EIO})
	_, err := write("one")
	expect("before the fault", err, nil, 0)
	_, err = write("two")
	expect("the fault", err, syscall.EIO, 1)
	_, err = write("three")
	expect("after the fault", err, nil, 1)

	fs.Inject(faultfs.Fault{Kind: faultfs.Write, Times: 2, Short: 2})
	_, err = write("a longer text")
	expect("short writes, which the caller goes on with", err, nil, 2)

	fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Errno: syscall.EIO})
	expect("fsync", f.Sync(), syscall.EIO, 1)
	expect("fsync again", f.Sync(), syscall.EIO, 2)
	fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Delay: 30 * time.Millisecond})
	start := time.Now()
	expect("slow fsync", f.Sync(), nil, 1)
	if took := time.Since(start); took < 30*time.Millisecond {
		t.Errorf("the slow fsync took %v", took)
	}
	fs.Inject(faultfs.Fault{Kind: faultfs.Truncate, Errno: syscall.ENOSPC})
	expect("truncate", f.Truncate(100), syscall.ENOSPC, 1)
	fs.Inject(faultfs.Fault{Kind: faultfs.Write, Path: "another", Errno: syscall.EIO})
	_, err = write("to this one")
	expect("a fault of another file", err, nil, 0)
}

// TestDelayEndsWithTheFault expects an operation that is held up to go on when the fault is
// taken away.
func TestDelayEndsWithTheFault(t *testing.T) {
	fs := faultfs.New(t)
	f := open(t, fs, "f")
	fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Delay: time.Hour})
	synced := make(chan error, 1)
	go func() { synced <- f.Sync() }()
	for fs.Struck() == 0 {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-synced:
		t.Errorf("it was not held up: %v", err)
	default:
	}
	fs.Inject()
	if err := <-synced; err != nil {
		t.Error(err)
	}
}

// TestReadError expects a page that the disk does not give to be a fault in memory that
// can be survived.
func TestReadError(t *testing.T) {
	fs := faultfs.New(t)
	if err := os.WriteFile(filepath.Join(fs.Below, "f"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	fs.Inject(faultfs.Fault{Kind: faultfs.Read, From: 512 << 10, To: 512<<10 + 1, Errno: syscall.EIO})
	f := open(t, fs, "f")
	m, err := syscall.Mmap(int(f.Fd()), 0, 1<<20, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(m) //nolint:errcheck // the test is over
	touch := func(at int) (fault bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { fault = recover() != nil }()
		return m[at] != 0
	}
	for page := range 256 {
		if at := page * 4096; touch(at) != (at == 512<<10) {
			t.Errorf("a fault at %d: %v", at, at != 512<<10)
		}
	}
}

func TestRecord(t *testing.T) {
	fs := faultfs.New(t)
	fs.Record()
	f := open(t, fs, "f")
	_, err := f.WriteAt([]byte("text"), 10)
	err = errors.Join(err, f.Truncate(100), f.Sync())
	d, errOpen := os.Open(fs.Dir)
	if err = errors.Join(err, errOpen); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(d.Sync(), d.Close())
	if fs.Position() != 5 || err != nil {
		t.Errorf("%d events, %v", fs.Position(), err)
	}
	want := []faultfs.Event{
		{Kind: faultfs.Create, Path: "f"},
		{Kind: faultfs.Write, Path: "f", Offset: 10, Data: []byte("text")},
		{Kind: faultfs.Truncate, Path: "f", Size: 100},
		{Kind: faultfs.Sync, Path: "f"},
		{Kind: faultfs.SyncDir},
	}
	got := fs.Events()
	if len(got) != len(want) {
		t.Fatalf("%d events: %+v", len(got), got)
	}
	for i, e := range got {
		w := want[i]
		if e.Kind != w.Kind || e.Path != w.Path || e.Offset != w.Offset || e.Size != w.Size || !bytes.Equal(e.Data, w.Data) {
			t.Errorf("event %d: %+v, want %+v", i, e, w)
		}
	}
}
