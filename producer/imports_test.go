package producer_test

import (
	"os/exec"
	"strings"
	"testing"
)

// A program that links the client gets neither the server nor an engine with it.
func TestImports(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Skip("no go command:", err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		for _, allowed := range []string{
			"github.com/oncelog/oncelog/producer", "github.com/oncelog/oncelog/openapi",
			"github.com/oncelog/oncelog/store/sequence", "github.com/oncelog/oncelog/store/batch",
			"github.com/go-json-experiment/json", "github.com/klauspost/compress",
		} {
			if dep == allowed || strings.HasPrefix(dep, allowed+"/") {
				dep = ""
				break
			}
		}
		if dep != "" {
			t.Errorf("it links %s", dep)
		}
	}
}
