package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/openapi/spec"
	"github.com/oncelog/oncelog/web"
)

// pages are what says the same to everybody, made once.
type pages struct {
	index      []byte
	problems   map[string][]byte
	policy     string // Content-Security-Policy of a page
	json, yaml document
	web        http.Handler // the pages that are files
}

// document is a file with its entity tag.
type document struct {
	data []byte
	tag  string
}

func newDocument(data []byte) document {
	sum := sha256.Sum256(data)
	return document{data, `"` + base64.RawURLEncoding.EncodeToString(sum[:]) + `"`}
}

const pageStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}` +
	`dt{font-weight:600;margin-top:1rem}dd{margin:0}code{font-family:ui-monospace,monospace}td,th{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top}`

const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{{.Title}} – oncelog</title><style>` + pageStyle + `</style></head><body><main>
`

const indexPage = pageHead + `<h1>{{.Title}}</h1>
<p>Every error of this server is one of these (RFC 9457). No other code is ever sent.</p>
<table><thead><tr><th>Code</th><th>Status</th><th>Retryable</th><th>Outcome</th><th>Meaning</th></tr></thead><tbody>
{{range .Problems}}<tr><td><a href="{{.Path}}"><code>{{.Code}}</code></a></td><td>{{.Status}}</td><td>{{if .Retryable}}yes{{else}}no{{end}}</td><td>{{.Outcome}}</td><td>{{.Title}}</td></tr>
{{end}}</tbody></table></main></body></html>
`

const problemPage = pageHead + `<p><a href="/problems">All problems</a></p><h1>{{.Title}}</h1>
<p><code>{{.Problem.Code}}</code>, HTTP status {{.Problem.Status}}</p>
<dl><dt>What it means</dt><dd>{{.Problem.Meaning}}</dd>
<dt>What to do</dt><dd>{{.Problem.Do}}</dd>
<dt>Is a retry safe?</dt><dd>{{.Problem.RetrySafe}}</dd>
<dt>In the answer</dt><dd><code>"retryable": {{.Problem.Retryable}}, "outcome": "{{.Problem.Outcome}}"</code></dd></dl>
</main></body></html>
`

func newPages() (*pages, error) {
	style := sha256.Sum256([]byte(pageStyle))
	p := &pages{
		problems: map[string][]byte{},
		json:     newDocument(spec.JSON()),
		yaml:     newDocument(spec.YAML()),
		web:      web.Handler(),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(style[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
	index, err := template.New("problems").Parse(indexPage)
	if err != nil {
		return nil, err
	}
	one, err := template.New("problem").Parse(problemPage)
	if err != nil {
		return nil, err
	}
	all := openapi.ProblemTypes()
	pointers := make([]*openapi.ProblemType, len(all))
	for i := range all {
		pointers[i] = &all[i]
		var b bytes.Buffer
		if err := one.Execute(&b, map[string]any{"Title": all[i].Title, "Problem": pointers[i]}); err != nil {
			return nil, fmt.Errorf("page of %s: %w", all[i].Code, err)
		}
		p.problems[all[i].Code] = b.Bytes()
	}
	var b bytes.Buffer
	if err := index.Execute(&b, map[string]any{"Title": "Problems", "Problems": pointers}); err != nil {
		return nil, fmt.Errorf("page of problems: %w", err)
	}
	p.index = b.Bytes()
	return p, nil
}

// html writes a page under a policy that lets it load nothing.
func (p *pages) html(x *exchange, page []byte) error {
	h := x.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Type", "text/html; charset=utf-8")
	x.WriteHeader(http.StatusOK)
	_, err := x.Write(page)
	return gone(err)
}

// document writes a file that changes only with the program.
func (p *pages) document(x *exchange, r *http.Request, media string, d document) error {
	h := x.Header()
	h.Set("Etag", d.tag)
	h["Cache-Control"] = noCache
	if matchesTag(r.Header["If-None-Match"], d.tag) {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", media)
	x.WriteHeader(http.StatusOK)
	_, err := x.Write(d.data)
	return gone(err)
}

// listProblems lists the problem codes.
//
//	@Summary		List problem codes
//	@ID				listProblems
//	@Tags			service
//	@Description	A page that lists every problem code.
//	@Produce		html
//	@Success		200	{string}	string	"The page"
//	@Router			/problems [get]
func (s *Server) listProblems(x *exchange, _ *http.Request) error {
	return s.pages.html(x, s.pages.index)
}

// describeProblem explains a problem code.
//
//	@Summary		Explain a problem code
//	@ID				describeProblem
//	@Tags			service
//	@Description	A page about one problem code: what it means, what to do, whether a retry is safe. The member type of every problem is the path of its page.
//	@Produce		html
//	@Param			code	path		string	true	"Problem code"	example(out-of-order-sequence)
//	@Success		200		{string}	string	"The page"
//	@Failure	404	{object}	openapi.Problem	"not-found"
//	@Router			/problems/{code} [get]
func (s *Server) describeProblem(x *exchange, r *http.Request) error {
	page, ok := s.pages.problems[pathParam(r, "code")]
	if !ok {
		return s.notFound(x, r)
	}
	return s.pages.html(x, page)
}

// statusPage is where the status page is to be.
//
//	@Summary		Show the status page
//	@ID				statusPage
//	@Tags			service
//	@Description	The page for people who look after the server. Not built yet.
//	@Produce		html
//	@Success		200	{string}	string	"The page"
//	@Router			/ [get]
func (s *Server) statusPage(x *exchange, r *http.Request) error {
	s.pages.web.ServeHTTP(x, r)
	return nil
}

// docs is where the documentation is to be.
//
//	@Summary		Show the documentation
//	@ID				docs
//	@Tags			service
//	@Description	The page that documents the API. Not built yet.
//	@Produce		html
//	@Success		200	{string}	string	"The page"
//	@Router			/docs [get]
func (s *Server) docs(x *exchange, r *http.Request) error {
	s.pages.web.ServeHTTP(x, r)
	return nil
}

// events is where the event stream of the status page is to be.
//
//	@Summary		Follow the server's state
//	@ID				events
//	@Tags			service
//	@Description	The event stream behind the status page. Not built yet.
//	@Produce		plain
//	@Success		200	{string}	string	"A line that says so"
//	@Router			/events [get]
func (s *Server) events(x *exchange, _ *http.Request) error {
	x.Header().Set("Content-Type", "text/plain; charset=utf-8")
	x.WriteHeader(http.StatusOK)
	_, err := x.Write([]byte("The event stream is not built yet. See /metrics.\n"))
	return gone(err)
}
