package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/web"
)

func handler(t *testing.T) http.Handler {
	t.Helper()
	h, err := web.Load()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPages(t *testing.T) {
	h := handler(t)
	for path, status := range map[string]int{"/": 200, "/docs": 200, "/static/index.html": 404, "/static/": 404, "/static/none.js": 404, "/x": 404} {
		w := get(h, path)
		if w.Code != status {
			t.Errorf("%s answers %d", path, w.Code)
		}
		if status != http.StatusOK {
			continue
		}
		for _, link := range []string{"/openapi.json", "/problems"} {
			if !strings.Contains(w.Body.String(), `href="`+link+`"`) {
				t.Errorf("%s does not link %s", path, link)
			}
		}
		if strings.Contains(w.Body.String(), "//") {
			t.Errorf("%s loads something from elsewhere", path)
		}
		header := w.Header()
		if header.Get("Content-Security-Policy") == "" || header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(header.Get("Content-Type"), "text/html") {
			t.Errorf("%s has headers %v", path, header)
		}
	}
}

// TestPolicies: nothing from elsewhere, nothing within the page.
func TestPolicies(t *testing.T) {
	for _, path := range []string{"/", "/docs", "/problems", "/problems/internal"} {
		checkPolicy(t, get(handler(t), path).Header().Get("Content-Security-Policy"))
	}
}

func checkPolicy(t *testing.T, policy string) {
	t.Helper()
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	for _, hole := range []string{"unsafe", "http:", "https:", "*"} {
		if strings.Contains(policy, hole) {
			t.Errorf("the policy has %s: %s", hole, policy)
		}
	}
}

// TestFilesOfPages: whatever a page names is there, with a type that a browser takes.
func TestFilesOfPages(t *testing.T) {
	h := handler(t)
	names := regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`)
	found := 0
	for _, page := range []string{"/", "/docs", "/problems", "/problems/internal"} {
		for _, m := range names.FindAllStringSubmatch(get(h, page).Body.String(), -1) {
			found++
			w := get(h, m[1])
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %s answers %d, %v", page, m[1], w.Code, w.Header())
			}
		}
	}
	if found == 0 {
		t.Error("the pages name no file")
	}
}

func TestFilesAreAskedForAgain(t *testing.T) {
	h := handler(t)
	first := get(h, "/static/base.css")
	tag := first.Header().Get("Etag")
	if first.Header().Get("Cache-Control") != "no-cache" || tag == "" {
		t.Fatalf("headers %v", first.Header())
	}
	for header, status := range map[string]int{
		tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, `"x"`: 200, strings.Trim(tag, `"`): 200,
	} {
		if w := get(h, "/static/base.css", "If-None-Match: "+header); w.Code != status || (status == 304) != (w.Body.Len() == 0) {
			t.Errorf("If-None-Match %s: %d with %d bytes", header, w.Code, w.Body.Len())
		}
	}
}

func TestFilesAreCompressed(t *testing.T) {
	h := handler(t)
	plain := get(h, "/static/base.css")
	for accept, coding := range map[string]string{
		"gzip": "gzip", "br, gzip;q=0.5": "gzip", "GZIP": "gzip", "gzip;q=0": "", "gzip; q=0.0": "", "br": "", "": "", "x-gzip": "",
	} {
		w := get(h, "/static/base.css", "Accept-Encoding: "+accept)
		if got := w.Header().Get("Content-Encoding"); got != coding || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: %q, headers %v", accept, got, w.Header())
			continue
		}
		if coding == "" {
			continue
		}
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(z); err != nil || string(b) != plain.Body.String() {
			t.Errorf("what is compressed differs: %v", err)
		}
		if w.Header().Get("Etag") == plain.Header().Get("Etag") {
			t.Error("two representations have one tag")
		}
	}
	if w := get(h, "/static/geist-latin-wght-normal.woff2", "Accept-Encoding: gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("a font is compressed twice")
	}
}
