//go:build !linux && !darwin

package bolt

// diskFree is unknown on this system: only MaxBytes bounds the store.
func diskFree(string) int64 { return -1 }
