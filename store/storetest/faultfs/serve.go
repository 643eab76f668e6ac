//go:build linux

package faultfs

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Environment of the process that serves: the directory that is shown, and where.
const (
	envBelow = "ONCELOG_FAULTFS_BELOW"
	envMount = "ONCELOG_FAULTFS_MOUNT"
)

// Serve serves the file system and does not return, if that is what this process was
// started for by [New]; otherwise it does nothing.
func Serve() {
	if os.Getenv(envMount) == "" {
		return
	}
	if err := serve(os.Getenv(envBelow), os.Getenv(envMount)); err != nil {
		fmt.Fprintln(os.Stderr, "faultfs:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve mounts and answers calls until standard input ends.
func serve(below, mount string) error {
	s := &state{replaced: make(chan struct{})}
	var st syscall.Stat_t
	if err := syscall.Stat(below, &st); err != nil {
		return err
	}
	data := &fs.LoopbackRoot{Path: below, Dev: st.Dev}
	newNode := func() *node { return &node{LoopbackNode: fs.LoopbackNode{RootData: data}, state: s} }
	//nolint:staticcheck // what replaces it wraps nodes and does not make them
	data.NewNode = func(*fs.LoopbackRoot, *fs.Inode, string, *syscall.Stat_t) fs.InodeEmbedder { return newNode() }
	root := newNode()
	data.RootNode = root
	keep := time.Hour // nobody else changes anything
	server, err := fs.Mount(mount, root, &fs.Options{
		AttrTimeout: &keep, EntryTimeout: &keep,
		MountOptions: fuse.MountOptions{
			DirectMount: true, FsName: "faultfs", Name: "faultfs", DisableXAttrs: true,
			ExplicitDataCacheControl: true, MaxWrite: 1 << 20,
		},
	})
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	calls := rpc.NewServer()
	if err := calls.RegisterName("faultfs", &Calls{s}); err != nil {
		return errors.Join(err, server.Unmount())
	}
	calls.ServeConn(stdio{})
	s.inject(nil)
	err = errors.Join(s.stop(), server.Unmount())
	if err != nil { // somebody has a file open: it goes when they do
		err = syscall.Unmount(mount, syscall.MNT_DETACH)
	}
	return err
}

// stdio is the connection to the test.
type stdio struct{}

func (stdio) Read(p []byte) (int, error)  { return os.Stdin.Read(p) }
func (stdio) Write(p []byte) (int, error) { return os.Stdout.Write(p) }
func (stdio) Close() error                { return os.Stdin.Close() }

// state is what the serving process knows.
type state struct {
	// order is held while the file below is changed and the event recorded.
	order sync.Mutex

	mu       sync.Mutex
	faults   []Fault
	replaced chan struct{} // closed when the faults are replaced
	struck   int           // faults that have happened
	events   int
	out      *bufio.Writer
	to       io.Closer
	enc      *gob.Encoder
	err      error
}

// record notes an event if there is a record.
func (s *state) record(e *Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enc == nil {
		return
	}
	s.events++
	s.err = errors.Join(s.err, s.enc.Encode(e))
}

// stop ends the record.
func (s *state) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enc == nil {
		return nil
	}
	err := errors.Join(s.err, s.out.Flush(), s.to.Close())
	s.enc, s.out, s.to, s.err = nil, nil, nil, nil
	return err
}

// Calls is what the test asks the serving process for.
type Calls struct{ s *state }

// Inject replaces the faults.
func (c *Calls) Inject(faults []Fault, _ *struct{}) error {
	c.s.inject(faults)
	return nil
}

// inject replaces the faults, and ends the delays of those before.
func (s *state) inject(faults []Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.replaced)
	s.faults, s.struck, s.replaced = faults, 0, make(chan struct{})
}

// Struck tells how many faults have happened since they were injected.
func (c *Calls) Struck(_ struct{}, n *int) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	*n = c.s.struck
	return nil
}

// Record begins to record events into a file.
func (c *Calls) Record(path string, _ *struct{}) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.out, c.s.to, c.s.events = bufio.NewWriterSize(f, 1<<20), f, 0
	c.s.enc = gob.NewEncoder(c.s.out)
	return nil
}

// Events tells how many events have been recorded.
func (c *Calls) Events(_ struct{}, n *int) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	*n = c.s.events
	return nil
}

// Stop ends the record.
func (c *Calls) Stop(_ struct{}, _ *struct{}) error { return c.s.stop() }
