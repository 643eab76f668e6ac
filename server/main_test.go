package server_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if raceDetector {
		// The random test of the suite goes over HTTP, each call of which takes ten times as
		// long then. What the command line says comes later, and counts.
		if err := flag.Set("rapid.checks", "30"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
