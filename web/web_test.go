package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/web"
)

func TestPages(t *testing.T) {
	for path, status := range map[string]int{"/": 200, "/docs": 200, "/static/index.html": 404, "/x": 404} {
		w := httptest.NewRecorder()
		web.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
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
		h := w.Header()
		if h.Get("Content-Security-Policy") == "" || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(h.Get("Content-Type"), "text/html") {
			t.Errorf("%s has headers %v", path, h)
		}
	}
}
