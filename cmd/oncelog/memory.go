package main

import (
	"bytes"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
)

// requestMemory is what requests may hold, in bytes; set is what the flag says, 0: nothing.
func requestMemory(set int64) int64 {
	const least, most = 64 << 20, 512 << 20
	if set > 0 {
		return set
	}
	return min(max(memoryLimit()/8, least), most)
}

// maxConnections is how many connections there may be; set is what the flag says, 0: nothing.
// A connection takes about 20 KiB, so all of them take a twelfth of the memory.
func maxConnections(set int) int {
	const least, most, memoryEach = 256, 65536, 256 << 10
	if set > 0 {
		return set
	}
	return int(min(max(memoryLimit()/memoryEach, least), most, openFiles()/4*3))
}

// memoryLimit is how much memory the process may use: what GOMEMLIMIT or its cgroup allow,
// else what the machine has. Where none of it can be found out it is math.MaxInt64.
func memoryLimit() int64 {
	return min(debug.SetMemoryLimit(-1), cgroupMemory("/proc/self/cgroup", "/sys/fs/cgroup"), machineMemory())
}

// cgroupMemory is the least limit of the cgroup (version 2) that the file names, and of
// those above it. In a container the root is its own.
func cgroupMemory(self, root string) int64 {
	limit := int64(math.MaxInt64)
	text, err := os.ReadFile(self)
	if err != nil {
		return limit
	}
	for line := range bytes.Lines(text) {
		group, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("0::"))
		if !ok {
			continue
		}
		for at := path.Clean("/" + string(group)); ; at = path.Dir(at) {
			if text, err := os.ReadFile(path.Join(root, at, "memory.max")); err == nil {
				if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil { // or it is "max"
					limit = min(limit, n)
				}
			}
			if at == "/" {
				break
			}
		}
	}
	return limit
}
