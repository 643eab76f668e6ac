package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/oncelog/oncelog/openapi/spec"
)

// TestDocumentIsCurrent fails when the committed document is not what go generate
// would write now.
func TestDocumentIsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs swag")
	}
	// swag reads the sources in a process of its own, where the test cache does not see
	// it. Reading them here makes a change to one of them run the test again.
	for _, pattern := range []string{"../*.go", "../../server/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources at %s: %v", pattern, err)
		}
		for _, f := range files {
			if _, err := os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := t.TempDir()
	if err := run(t.Context(), "../..", out); err != nil {
		t.Fatal(err)
	}
	for name, committed := range map[string][]byte{
		"openapi.json": spec.JSON(), "openapi.yaml": spec.YAML(), "openapi-3.0.json": spec.JSON30(),
	} {
		written, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(written, committed) {
			t.Errorf("%s is not current: run go generate ./openapi", name)
		}
	}
}
