//go:build !linux

package bench

import (
	"errors"
	"os"
)

// syncData puts written data on disk.
func syncData(f *os.File) error { return f.Sync() }

// forget drops a file's pages from memory, which only Linux is known to do.
func forget(*os.File) error { return errors.ErrUnsupported }
