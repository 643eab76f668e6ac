package server

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"

	"github.com/oncelog/oncelog/openapi/spec"
	"github.com/oncelog/oncelog/web"
)

// pages are what says the same to everybody, made once.
type pages struct {
	json, yaml, json30 document
	web                *web.Pages
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

func newPages() (*pages, error) {
	files, err := web.Load()
	if err != nil {
		return nil, err
	}
	return &pages{
		json: newDocument(spec.JSON()), yaml: newDocument(spec.YAML()), json30: newDocument(spec.JSON30()),
		web: files,
	}, nil
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
func (s *Server) listProblems(x *exchange, r *http.Request) error {
	s.pages.web.ServeHTTP(x, r)
	return nil
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
	if !s.pages.web.HasProblem(pathParam(r, "code")) {
		return s.notFound(x, r)
	}
	s.pages.web.ServeHTTP(x, r)
	return nil
}

// docs shows the document of the API, to be read and to be tried.
//
//	@Summary		Show the documentation
//	@ID				docs
//	@Tags			service
//	@Description	The page about the API: what each operation takes and answers, and a form to try it on this server.
//	@Produce		html
//	@Success		200	{string}	string	"The page"
//	@Router			/docs [get]
func (s *Server) docs(x *exchange, r *http.Request) error {
	s.pages.web.ServeHTTP(x, r)
	return nil
}
