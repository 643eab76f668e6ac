package access_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsAreTested: THREATS.md names tests that exist, one at least for each threat,
// and stays about as long as a page.
func TestThreatsAreTested(t *testing.T) {
	text, err := os.ReadFile("THREATS.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`(?:([a-z/]+)\\.)?(Test[A-Z]\\w*)`")
	tests := map[string]map[string]bool{} // by folder
	threats := 0
	for n, line := range strings.Split(string(text), "\n") {
		for _, m := range name.FindAllStringSubmatch(line, -1) {
			dir := m[1]
			if dir == "" {
				dir = "server/access"
			}
			if tests[dir] == nil {
				tests[dir] = testsIn(t, dir)
			}
			if !tests[dir][m[2]] {
				t.Errorf("line %d: there is no test %s in %s", n+1, m[2], dir)
			}
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| Threat |") || strings.HasPrefix(line, "|---") {
			continue
		}
		threats++
		if cells := strings.Split(strings.Trim(line, "|"), "|"); len(cells) != 3 || !name.MatchString(cells[2]) {
			t.Errorf("line %d names no test in its third cell: %s", n+1, line)
		}
	}
	if threats < 20 {
		t.Errorf("%d threats, there have been more", threats)
	}
	if words := len(strings.Fields(string(text))); words > 1300 {
		t.Errorf("%d words are no page", words)
	}
}

// testsIn lists the tests of a folder of the module.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	dir := filepath.Join("..", "..", filepath.FromSlash(path.Clean(folder)))
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}
