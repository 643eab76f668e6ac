//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package access

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// lock makes the lock file, which must not be there. One that a crash has left is in the
// way until somebody removes it.
func lock(path string) (unlock func(), err error) {
	const patience = 5 * time.Second
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err == nil {
			return func() { f.Close(); os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) || time.Since(start) > patience {
			return nil, err
		}
	}
}

// keepOwner has nothing to do where owners are not numbers.
func keepOwner(*os.File, string) error { return nil }

func inodeOf(os.FileInfo) uint64 { return 0 }
