package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// TestMain makes the test binary a second oncelog: under that name it is the command itself.
func TestMain(m *testing.M) {
	serveFaults()
	hurryRace()
	testscript.Main(leakChecked{m}, map[string]func(){"oncelog": main})
}

// hurryRace lets processes that the tests start, which are this binary again, end without
// the second that the race detector waits for at each exit by default.
func hurryRace() {
	const name = "GORACE"
	if _, set := os.LookupEnv(name); !set {
		_ = os.Setenv(name, "atexit_sleep_ms=20") // without it tests take longer
	}
}

// leakChecked fails tests that passed but have left goroutines behind.
type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	if err := installPlain(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.M.Run()
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
