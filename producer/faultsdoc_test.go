package producer_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// FAULTS.md names tests that exist, one at least for each fault, and every test of a
// scenario is in it.
func TestFaultsAreTested(t *testing.T) {
	text, err := os.ReadFile("FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testFunctions(t, "producer", "server", "store", "cmd/oncelog")
	name := regexp.MustCompile("`(?:([a-z/]+)\\.)?((?:Test|Fuzz)[A-Z]\\w*)`")
	named := map[string]bool{}
	rows := 0
	for n, line := range strings.Split(string(text), "\n") {
		found := name.FindAllStringSubmatch(line, -1)
		for _, m := range found {
			dir := m[1]
			if dir == "" {
				dir = "producer"
			}
			test := dir + "." + m[2]
			named[test] = true
			if !tests[test] {
				t.Errorf("line %d: there is no test %s", n+1, test)
			}
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| Fault |") || strings.HasPrefix(line, "|---") {
			continue
		}
		rows++
		if cells := strings.Split(strings.Trim(line, "|"), "|"); len(cells) != 3 || !name.MatchString(cells[len(cells)-1]) {
			t.Errorf("line %d names no test in its third cell: %s", n+1, line)
		}
	}
	if rows < 50 {
		t.Errorf("%d faults, there have been more", rows)
	}
	for test := range tests {
		if scenario := regexp.MustCompile(`^producer\.TestC\d\d`); scenario.MatchString(test) && !named[test] {
			t.Errorf("%s is missing", test)
		}
	}
	for c := 1; c <= 51; c++ { // each is tested, or said not to apply
		if c >= 42 && c <= 47 || c == 37 || c == 10 {
			continue
		}
		id := fmt.Sprintf("C%02d", c)
		if !anyContains(named, id) {
			t.Errorf("scenario %s has no test in it", id)
		}
	}
}

func anyContains(names map[string]bool, part string) bool {
	for n := range names {
		if strings.Contains(n, part) {
			return true
		}
	}
	return false
}

// testFunctions lists the tests and fuzz tests below folders of the module, as
// folder.Name.
func testFunctions(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range folders {
		root := filepath.Join("..", folder)
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			dir, err := filepath.Rel("..", filepath.Dir(path))
			if err != nil {
				return err
			}
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
					found[filepath.ToSlash(dir)+"."+f.Name.Name] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
