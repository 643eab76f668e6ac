//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFiles is how many files the process may have open.
func openFiles() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt64
	}
	return int64(min(uint64(limit.Cur), math.MaxInt64)) //nolint:unconvert // it is signed on some systems
}
