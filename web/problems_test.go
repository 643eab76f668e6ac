package web_test

import (
	"encoding/json"
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/web"
)

// TestProblemPages expects the page of each code to say all that is known of it, and to
// show the very answer that a server sends.
func TestProblemPages(t *testing.T) {
	h := handler(t)
	index := get(h, "/problems").Body.String()
	for _, p := range openapi.ProblemTypes() {
		if !strings.Contains(index, `<a href="`+p.Path()+`"><code>`+p.Code+`</code></a>`) {
			t.Errorf("%s is not on the list", p.Code)
		}
		w := get(h, p.Path())
		page := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(page, "<h1>"+html.EscapeString(p.Title)+"</h1>") {
			t.Errorf("%s answers %d: %s", p.Path(), w.Code, page)
		}
		for _, text := range []string{p.Meaning, p.Do, p.RetrySafe} {
			for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '`' }) {
				if part = strings.TrimPrefix(part, "- "); !strings.Contains(page, template(part)) {
					t.Errorf("%s does not say %q", p.Path(), part)
				}
			}
		}
		if strings.Contains(page, "`") {
			t.Errorf("%s shows markup", p.Path())
		}
		if got := strings.Count(page, "<li>") - strings.Count(page, `<li><a href="/problems/`); got != strings.Count("\n"+p.Meaning+"\n"+p.Do, "\n- ") {
			t.Errorf("%s has %d items in its lists", p.Path(), got)
		}
		checkSample(t, &p, page)
	}
}

// template is how html/template writes a text.
func template(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "+", "&#43;").Replace(text)
}

func checkSample(t *testing.T, p *openapi.ProblemType, page string) {
	t.Helper()
	_, rest, _ := strings.Cut(page, "<pre>")
	answer, _, _ := strings.Cut(rest, "</pre>")
	head, body, _ := strings.Cut(html.UnescapeString(answer), "\n\n")
	if strings.Contains(head, "Retry-After: ") != (p.RetryAfter > 0) || !strings.Contains(head, openapi.ProblemContentType) {
		t.Errorf("%s: %s", p.Path(), head)
	}
	var got openapi.Problem
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%s: %v in %s", p.Path(), err, body)
	}
	if d := cmp.Diff(p.Sample(), got); d != "" {
		t.Errorf("%s shows another answer:\n%s", p.Path(), d)
	}
}

func TestNoSuchProblem(t *testing.T) {
	p, err := web.Load()
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]bool{"internal": true, "none": false, "": false, "../problems": false, "internal/": false} {
		if p.HasProblem(code) != want {
			t.Errorf("HasProblem(%q) is %v", code, !want)
		}
	}
	for _, path := range []string{"/problems/", "/problems/none", "/problems/internal/"} {
		if w := get(p, path); w.Code != http.StatusNotFound {
			t.Errorf("%s answers %d", path, w.Code)
		}
	}
}
