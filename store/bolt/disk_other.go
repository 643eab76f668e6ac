//go:build !linux && !darwin

package bolt

import "os"

// diskFree is unknown on this system: only MaxBytes bounds the store.
func diskFree(string) int64 { return -1 }

// unlock does nothing: the lock goes with the process.
func unlock(*os.File) {}

// keepOwner does nothing: a new file has the owner that its directory says.
func keepOwner(string, os.FileInfo) error { return nil }
