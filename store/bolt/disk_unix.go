//go:build linux || darwin

package bolt

import (
	"os"
	"syscall"
)

// diskFree is what is free for this process on the file system of a path, in bytes, −1
// when that cannot be told.
func diskFree(path string) int64 {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return -1
	}
	return int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // Bsize has another type on darwin
}

// unlock gives back bbolt's lock on a file.
func unlock(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// keepOwner gives a file the owner that another one has.
func keepOwner(path string, of os.FileInfo) error {
	want, ok := of.Sys().(*syscall.Stat_t)
	if !ok || int(want.Uid) == os.Geteuid() && int(want.Gid) == os.Getegid() {
		return nil
	}
	return os.Chown(path, int(want.Uid), int(want.Gid))
}
