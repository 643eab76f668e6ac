package sequence_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The rule is pure because it cannot be otherwise: nothing that it imports knows a
// disk, a clock, a lock or a network.
func TestImports(t *testing.T) {
	allowed := map[string]bool{"encoding/binary": true, "errors": true}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil || !allowed[path] {
				t.Errorf("%s imports %s (%v)", name, spec.Path.Value, err)
			}
		}
	}
	if checked < 4 {
		t.Errorf("only %d files were checked", checked)
	}
}
