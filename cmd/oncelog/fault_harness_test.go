package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests start the command many hundred times. As the test binary itself, which
// testscript puts into PATH, it is slow to start and large, above all with the race
// detector: it could not be killed 200 times, and of no use to measure memory. So the
// command as users have it takes its place. Tests that are to find races of the whole
// process use testedBinary.

// installPlain builds the command and puts it into PATH. It does nothing when no test is
// to run.
func installPlain() error {
	if slices.ContainsFunc(os.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "-test.list") || strings.HasPrefix(arg, "-test.fuzz")
	}) {
		return nil
	}
	tested, err := exec.LookPath("oncelog")
	if err != nil {
		return err
	}
	keep := filepath.Join(filepath.Dir(tested), testedFolder)
	if err := os.Mkdir(keep, 0o700); err != nil {
		return err
	}
	if err := os.Rename(tested, filepath.Join(keep, filepath.Base(tested))); err != nil {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", tested, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

const testedFolder = "tested"

// plainBinary is the path of the command as users have it.
func plainBinary(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("oncelog")
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// testedBinary is the path of the command that is the test binary, with the race detector
// if that has it.
func testedBinary(tb testing.TB) string {
	tb.Helper()
	path := plainBinary(tb)
	return filepath.Join(filepath.Dir(path), testedFolder, filepath.Base(path))
}
