package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// plain is the command as users have it. The test binary, which otherwise plays it, is
// slow to start and large, above all with the race detector: too slow to be killed 200
// times, and of no use to measure memory.
var plain struct {
	once sync.Once
	path string
	err  error
}

// plainBinary builds the command, once, and returns its path.
func plainBinary(tb testing.TB) string {
	tb.Helper()
	plain.once.Do(func() {
		dir, err := os.MkdirTemp("", "oncelog-plain-")
		if err != nil {
			plain.err = err
			return
		}
		plain.path = filepath.Join(dir, "oncelog")
		out, err := exec.Command("go", "build", "-o", plain.path, ".").CombinedOutput()
		if err != nil {
			plain.err = fmt.Errorf("go build: %w: %s", err, out)
		}
	})
	if plain.err != nil {
		tb.Fatal(plain.err)
	}
	return plain.path
}

// removePlain removes what plainBinary has built.
func removePlain() {
	if plain.path != "" {
		os.RemoveAll(filepath.Dir(plain.path))
	}
}
