//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package access

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// lock waits until nobody else has the lock file. The file stays: a lock on a file that
// somebody removes is none.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := keepOwner(f, filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil //nolint:errcheck // nothing was written
}

// keepOwner gives a file that is to take another's place that one's owner, or for a new
// one that of its directory. A file that root writes would otherwise be out of reach for
// the server, which is somebody else.
func keepOwner(f *os.File, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		info, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return f.Chown(int(st.Uid), int(st.Gid))
	}
	return nil
}

func inodeOf(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino) //nolint:unconvert // Ino has another type on freebsd
	}
	return 0
}
