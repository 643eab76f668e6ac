package producer_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// CLAIMS.md names tests that exist, one at least for each claim, and a figure of a run.
func TestClaimsAreTested(t *testing.T) {
	text, err := os.ReadFile("../.github/CLAIMS.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testFunctions(t, "producer", "server", "store", "cmd/oncelog", "openapi", "web")
	name := regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)[A-Z]\\w*)`")
	loose := regexp.MustCompile("`(?:Test|Fuzz)[A-Z]\\w*`")
	rows := 0
	for n, line := range strings.Split(string(text), "\n") {
		for _, m := range name.FindAllStringSubmatch(line, -1) {
			if !tests[m[1]+"."+m[2]] {
				t.Errorf("line %d: there is no test %s.%s", n+1, m[1], m[2])
			}
		}
		if loose.MatchString(line) {
			t.Errorf("line %d names a test without its package: %s", n+1, line)
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| Claim |") || strings.HasPrefix(line, "|---") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 || !name.MatchString(cells[1]) || !strings.ContainsAny(cells[2], "0123456789") {
			t.Errorf("line %d is not a claim, its tests and a figure: %s", n+1, line)
		}
	}
	if rows < 50 {
		t.Errorf("%d claims, there have been more", rows)
	}
}
