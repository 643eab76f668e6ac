//go:build linux

package faultfs

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is a file or a directory.
type node struct {
	fs.LoopbackNode
	state *state
}

var (
	_ fs.NodeOpener         = (*node)(nil)
	_ fs.NodeCreater        = (*node)(nil)
	_ fs.NodeSetattrer      = (*node)(nil)
	_ fs.NodeOpendirHandler = (*node)(nil)
)

func (n *node) name() string { return n.Path(n.Root()) }

func (n *node) below(name string) string { return filepath.Join(n.RootData.Path, n.name(), name) }

// Open opens a file.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, err := os.OpenFile(n.below(""), int(flags)&^syscall.O_APPEND, 0)
	if err != nil {
		return nil, 0, fs.ToErrno(err)
	}
	return &file{state: n.state, path: n.name(), f: f}, 0, fs.OK
}

// Create makes and opens a file.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	path := filepath.Join(n.name(), name)
	if f, ok := n.state.fault(Create, path, 0, 0); ok {
		if f.Errno != 0 {
			return nil, nil, 0, f.Errno
		}
	}
	f, err := os.OpenFile(n.below(name), int(flags)&^syscall.O_APPEND|os.O_CREATE, os.FileMode(mode))
	if err != nil {
		return nil, nil, 0, fs.ToErrno(err)
	}
	child, errno := n.Lookup(ctx, name, out)
	if errno != fs.OK {
		f.Close() //nolint:errcheck // the first error is what counts
		return nil, nil, 0, errno
	}
	n.state.record(&Event{Kind: Create, Path: path})
	return child, &file{state: n.state, path: path, f: f}, 0, fs.OK
}

// Setattr truncates, among other things.
func (n *node) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	size, truncates := in.GetSize()
	if !truncates {
		return n.LoopbackNode.Setattr(ctx, nil, in, out)
	}
	if f, ok := n.state.fault(Truncate, n.name(), int64(size), int64(size)); ok {
		if f.Errno != 0 {
			return f.Errno
		}
	}
	n.state.order.Lock()
	defer n.state.order.Unlock()
	errno := n.LoopbackNode.Setattr(ctx, nil, in, out)
	if errno == fs.OK {
		n.state.record(&Event{Kind: Truncate, Path: n.name(), Size: int64(size)})
	}
	return errno
}

// OpendirHandle opens a directory.
func (n *node) OpendirHandle(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	list, errno := fs.NewLoopbackDirStream(n.below(""))
	return &dir{state: n.state, path: n.name(), list: list}, 0, errno
}

// dir is an open directory.
type dir struct {
	state *state
	path  string
	list  fs.DirStream
}

// Readdirent gives the next entry.
func (d *dir) Readdirent(context.Context) (*fuse.DirEntry, syscall.Errno) {
	if !d.list.HasNext() {
		return nil, fs.OK
	}
	e, errno := d.list.Next()
	return &e, errno
}

// Releasedir closes the directory.
func (d *dir) Releasedir(context.Context, uint32) { d.list.Close() }

// Fsyncdir makes the names in the directory durable.
func (d *dir) Fsyncdir(context.Context, uint32) syscall.Errno {
	return d.state.sync(SyncDir, d.path)
}

// file is an open file.
type file struct {
	state *state
	path  string
	f     *os.File
}

// Read reads.
func (f *file) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if fault, ok := f.state.fault(Read, f.path, off, off+int64(len(dest))); ok {
		if fault.Errno != 0 {
			return nil, fault.Errno
		}
	}
	n, err := syscall.Pread(int(f.f.Fd()), dest, off)
	if err != nil {
		return nil, fs.ToErrno(err)
	}
	return fuse.ReadResultData(dest[:n]), fs.OK
}

// Write writes.
func (f *file) Write(_ context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if fault, ok := f.state.fault(Write, f.path, off, off+int64(len(data))); ok {
		switch {
		case fault.Errno != 0:
			return 0, fault.Errno
		case fault.Short > 0:
			data = data[:min(fault.Short, len(data))]
		}
	}
	f.state.order.Lock()
	defer f.state.order.Unlock()
	n, err := f.f.WriteAt(data, off)
	if n > 0 {
		f.state.record(&Event{Kind: Write, Path: f.path, Offset: off, Data: data[:n]})
	}
	return uint32(n), fs.ToErrno(err)
}

// Fsync makes what was written durable, as far as the record says.
func (f *file) Fsync(context.Context, uint32) syscall.Errno { return f.state.sync(Sync, f.path) }

// Flush is called when a descriptor is closed.
func (f *file) Flush(context.Context) syscall.Errno { return fs.OK }

// Release closes the file.
func (f *file) Release(context.Context) syscall.Errno { return fs.ToErrno(f.f.Close()) }

// sync is fsync of a file or of a directory.
func (s *state) sync(k Kind, path string) syscall.Errno {
	if f, ok := s.fault(k, path, 0, 0); ok {
		if f.Errno != 0 {
			return f.Errno
		}
	}
	s.order.Lock()
	defer s.order.Unlock()
	s.record(&Event{Kind: k, Path: path})
	return fs.OK
}
