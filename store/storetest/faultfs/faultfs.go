//go:build linux

package faultfs

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// FS is a mounted file system.
type FS struct {
	// Dir is where it is mounted, Below the directory that it shows.
	Dir, Below string

	tb   testing.TB
	call *rpc.Client
	cmd  *exec.Cmd
	err  *tail
}

// New mounts one that shows an empty directory, until the test ends. Where that is not
// possible the test is skipped, unless it runs in CI (the environment variable CI is set).
func New(tb testing.TB) *FS {
	tb.Helper()
	below := tb.TempDir()
	fs := &FS{Dir: filepath.Join(tb.TempDir(), "mount"), Below: below, tb: tb, err: &tail{}}
	if err := os.Mkdir(fs.Dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	fs.cmd = exec.CommandContext(context.Background(), self)
	fs.cmd.Env = append(os.Environ(), envBelow+"="+below, envMount+"="+fs.Dir)
	fs.cmd.Stderr = fs.err
	in, errIn := fs.cmd.StdinPipe()
	out, errOut := fs.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		tb.Fatal(err)
	}
	if err := fs.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	fs.call = rpc.NewClient(pipes{out, in})
	tb.Cleanup(fs.unmount)
	var n int
	if err := fs.call.Call("faultfs.Struck", struct{}{}, &n); err != nil {
		fs.unmount()
		if os.Getenv("CI") != "" {
			tb.Fatalf("no FUSE file system can be mounted: %v %s", err, fs.err)
		}
		tb.Skipf("no FUSE file system can be mounted (it takes /dev/fuse, and root or fusermount3): %v %s", err, fs.err)
	}
	return fs
}

// unmount ends the serving process. It may be called twice.
func (fs *FS) unmount() {
	fs.tb.Helper()
	if fs.call.Close() != nil { // it has been closed
		return
	}
	late := time.AfterFunc(time.Minute, func() {
		fs.tb.Error("the file system does not end")
		fs.cmd.Process.Kill() //nolint:errcheck // it may have ended just now
	})
	defer late.Stop()
	fs.cmd.Wait() //nolint:errcheck // a file system that could not be mounted has said so
}

func (fs *FS) do(name string, args, reply any) {
	fs.tb.Helper()
	if err := fs.call.Call("faultfs."+name, args, reply); err != nil {
		fs.tb.Fatalf("faultfs: %s: %v %s", name, err, fs.err)
	}
}

// Inject makes these things go wrong from now on, and no others.
func (fs *FS) Inject(faults ...Fault) {
	fs.tb.Helper()
	fs.do("Inject", faults, &struct{}{})
}

// Struck is how many of the faults have happened since they were injected.
func (fs *FS) Struck() (n int) {
	fs.tb.Helper()
	fs.do("Struck", struct{}{}, &n)
	return n
}

// Record begins to record events.
func (fs *FS) Record() {
	fs.tb.Helper()
	fs.do("Record", fs.recordFile(), &struct{}{})
}

func (fs *FS) recordFile() string { return filepath.Join(filepath.Dir(fs.Dir), "record") }

// Position is how many events have been recorded so far.
func (fs *FS) Position() (n int) {
	fs.tb.Helper()
	fs.do("Events", struct{}{}, &n)
	return n
}

// Events ends the record and gives what was recorded.
func (fs *FS) Events() []Event {
	fs.tb.Helper()
	fs.do("Stop", struct{}{}, &struct{}{})
	f, err := os.Open(fs.recordFile())
	if err != nil {
		fs.tb.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was read
	var out []Event
	for dec := gob.NewDecoder(f); ; {
		var e Event
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			fs.tb.Fatal(err)
		}
		out = append(out, e)
	}
}

// pipes is the connection to the serving process.
type pipes struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p pipes) Close() error                { return p.in.Close() }

// tail is what a process has said last.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps some of it.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(b), nil
}

// String gives what was said.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
