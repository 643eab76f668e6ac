package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary a second oncelog: under that name, which testscript
// puts into PATH, it is the command itself.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"oncelog": main})
}
