// Package web holds the pages that people look at. They are static files in the binary
// and load nothing from elsewhere.
package web

import (
	"embed"
	"net/http"
)

//go:embed static
var static embed.FS

// policy lets a page load from its own server only, and nobody frame it.
const policy = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// Handler serves the status page at / and the page about the API at /docs.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page("static/index.html"))
	mux.HandleFunc("GET /docs", page("static/docs.html"))
	return mux
}

func page(file string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, static, file)
	}
}
