package main

import (
	"math"
	"syscall"
)

// machineMemory is the memory of the machine.
func machineMemory() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return math.MaxInt64
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // not everywhere are they of 64 bits
}
