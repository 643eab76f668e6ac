package openapi_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
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
		if got, ok := openapi.LookupProblemType(p.Code); !ok || !reflect.DeepEqual(got, p) {
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

// TestSamples expects the sample of each type to say what the type says.
func TestSamples(t *testing.T) {
	for _, p := range openapi.ProblemTypes() {
		s := p.Sample()
		if s.Type != p.Path() || s.Title != p.Title || s.Status != p.Status || s.Code != p.Code || s.Retryable != p.Retryable || s.Outcome != p.Outcome {
			t.Errorf("%s: %+v", p.Code, s)
		}
		if s.Detail == "" || s.RequestID == "" || !strings.HasPrefix(s.Instance, "/") {
			t.Errorf("%s has no detail, instance or request id: %+v", p.Code, s)
		}
	}
}

// TestTexts holds the texts to their markup, and to naming the members that come with
// the code.
func TestTexts(t *testing.T) {
	for _, p := range openapi.ProblemTypes() {
		text := p.Meaning + "\n" + p.Do + "\n" + p.RetrySafe
		for line := range strings.SplitSeq(text, "\n") {
			if strings.Count(line, "`")%2 != 0 || strings.TrimSpace(line) != line || line == "" {
				t.Errorf("%s: %q", p.Code, line)
			}
		}
		body, err := json.Marshal(p.Example)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatal(err)
		}
		for _, known := range []string{"type", "title", "status", "detail", "instance", "code", "retryable", "outcome", "requestId"} {
			delete(members, known)
		}
		for name := range members {
			if !strings.Contains(text, name) {
				t.Errorf("%s says nothing of its member %s", p.Code, name)
			}
		}
	}
}
