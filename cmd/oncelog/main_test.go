package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// TestMain makes the test binary a second oncelog: under that name, which testscript
// puts into PATH, it is the command itself.
func TestMain(m *testing.M) {
	serveFaults()
	testscript.Main(leakChecked{m}, map[string]func(){"oncelog": main})
}

// leakChecked fails tests that passed but have left goroutines behind.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	code := m.M.Run()
	removePlain()
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
