package openapi_test

import (
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/oncelog/oncelog/openapi"
)

func TestProblemTypes(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	all := openapi.ProblemTypes()
	codes := make([]string, len(all))
	for i, p := range all {
		codes[i] = p.Code
		if !kebab.MatchString(p.Code) || p.Status < 400 || http.StatusText(p.Status) == "" || p.Title == "" || p.Meaning == "" || p.Do == "" || p.RetrySafe == "" {
			t.Errorf("incomplete: %+v", p)
		}
		if !slices.Contains([]openapi.Outcome{openapi.NotApplied, openapi.Applied, openapi.Unknown}, p.Outcome) {
			t.Errorf("%s: outcome %q", p.Code, p.Outcome)
		}
		if p.Path() != "/problems/"+p.Code {
			t.Errorf("path %q", p.Path())
		}
		// Retry-After tells when to send the same again, so it must make sense to.
		if p.RetryAfter > 0 && !p.Retryable {
			t.Errorf("%s says when to retry, and that there is no use in it", p.Code)
		}
		if got, ok := openapi.LookupProblemType(p.Code); !ok || got != p {
			t.Errorf("%s is not found", p.Code)
		}
	}
	if !slices.IsSorted(codes) || len(slices.Compact(slices.Clone(codes))) != len(codes) {
		t.Errorf("not sorted, or not unique: %v", codes)
	}
	if len(all) != 36 {
		t.Errorf("%d codes; the contract's list is closed at 36", len(all))
	}
	if _, ok := openapi.LookupProblemType("no-such-code"); ok {
		t.Error("found what is not there")
	}
}
