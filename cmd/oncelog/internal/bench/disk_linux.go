package bench

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData puts written data on disk.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// forget drops a file's pages, which must be on disk, from memory.
func forget(f *os.File) error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
