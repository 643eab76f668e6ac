// Package web holds the pages that people look at: the status page, the page about the
// API, and those about problem codes. They are static files in the binary, as they are
// written, or made of templates when the server starts: there is no build step. A page
// loads nothing from any other server.
//
// The files in static/uplot, static/swagger-ui and static/fonts are other people's
// work, unmodified, with their licenses beside them.
package web

import (
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var static embed.FS

// policy lets a page use what lies beside it and nothing else: no script and no style
// within the page, no request to another server, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// FilesPath is where the files that the pages are made of are served, by their names
// without folders.
const FilesPath = "/static/"

// Pages serves the status page at /, the page about the API at /docs, those about problem
// codes under /problems, and what they are made of under [FilesPath]. Make it with [Load].
type Pages struct {
	pages map[string]http.Handler // by path
	files map[string]*file        // by name
}

// Load makes the pages ready to be served.
func Load() (*Pages, error) {
	files, err := readFiles(static)
	if err != nil {
		return nil, err
	}
	problems, err := problemPages()
	if err != nil {
		return nil, err
	}
	p := &Pages{files: files, pages: map[string]http.Handler{
		"/":     page(files["index.html"], policy),
		"/docs": page(files["docs.html"], policy),
	}}
	for path, f := range problems {
		p.pages[path] = page(f, policy)
	}
	return p, nil
}

// ServeHTTP answers GET and HEAD. It routes by itself, for a router would leave its own
// pattern in the request.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := p.pages[r.URL.Path]; h != nil {
		h.ServeHTTP(w, r)
		return
	}
	if name, ok := strings.CutPrefix(r.URL.Path, FilesPath); ok && p.Has(name) {
		p.files[name].ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

// Has reports whether there is a file of this name under [FilesPath].
func (p *Pages) Has(name string) bool {
	f := p.files[name]
	return f != nil && f.media != mediaHTML // pages are served in their places only, under their policies
}

// HasProblem reports whether there is a page about a problem code.
func (p *Pages) HasProblem(code string) bool { return p.pages["/problems/"+code] != nil }

// page serves a file under a policy.
func page(f *file, policy string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		f.ServeHTTP(w, r)
	})
}

// readFiles takes in all files that have a media type, by name.
func readFiles(from fs.FS) (map[string]*file, error) {
	files := map[string]*file{}
	err := fs.WalkDir(from, ".", func(p string, d fs.DirEntry, err error) error {
		media, ok := mediaTypes[path.Ext(p)]
		if err != nil || d.IsDir() || !ok {
			return err
		}
		name := path.Base(p)
		if files[name] != nil {
			return fmt.Errorf("two files of the pages are called %s", name)
		}
		data, err := fs.ReadFile(from, p)
		if err != nil {
			return fmt.Errorf("file of a page: %w", err)
		}
		files[name] = newFile(media, data)
		return nil
	})
	return files, err
}
