package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestCgroupMemory: the least limit on the way from the process's cgroup to the root counts.
func TestCgroupMemory(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self := filepath.Join(root, "self")
	limit := func(cgroup string) int64 {
		t.Helper()
		write("self", cgroup)
		return cgroupMemory(self, filepath.Join(root, "fs"))
	}
	write("fs/memory.max", "max\n")
	write("fs/system.slice/memory.max", "1000\n")
	write("fs/system.slice/oncelog.service/memory.max", "2000\n")
	write("fs/other/memory.max", "500\n")
	write("fs/other/deep/memory.max", "broken")
	for cgroup, want := range map[string]int64{
		"0::/\n": math.MaxInt64, "0::/system.slice/oncelog.service\n": 1000, "0::/system.slice\n": 1000,
		"12:cpu:/x\n0::/other/deep\n": 500, "0::/../../other\n": 500, "1:memory:/other\n": math.MaxInt64, "": math.MaxInt64,
	} {
		if got := limit(cgroup); got != want {
			t.Errorf("%q: %d, want %d", cgroup, got, want)
		}
	}
	if got := cgroupMemory(filepath.Join(root, "none"), root); got != math.MaxInt64 {
		t.Errorf("without a file: %d", got)
	}
}

// TestMemoryDefaults: what a flag says counts, and without it there are bounds to what the
// machine decides.
func TestMemoryDefaults(t *testing.T) {
	if got := requestMemory(5); got != 5 {
		t.Errorf("request memory %d", got)
	}
	if got := requestMemory(0); got < 64<<20 || got > 512<<20 {
		t.Errorf("request memory %d", got)
	}
	if got := maxConnections(5); got != 5 {
		t.Errorf("%d connections", got)
	}
	if got := maxConnections(0); got < 1 || got > 65536 || int64(got) > openFiles() {
		t.Errorf("%d connections", got)
	}
}
