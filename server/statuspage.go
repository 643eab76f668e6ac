package server

import "net/http"

// statusPage shows how the server is doing.
//
//	@Summary		Show the status page
//	@ID				statusPage
//	@Tags			service
//	@Description	The page for people who look after the server: whether anything was lost or doubled, live. It is made of GET /events and of the rest of this API.
//	@Produce		html
//	@Success		200	{string}	string	"The page"
//	@Router			/ [get]
func (s *Server) statusPage(x *exchange, r *http.Request) error {
	s.pages.web.ServeHTTP(x, r)
	return nil
}

// pageFile gives a file that the pages are made of.
//
//	@Summary		Get a file of the pages
//	@ID				pageFile
//	@Tags			service
//	@Description	A script, style sheet or font that the status page and the page about the API load.
//	@Produce		text/javascript,text/css,image/svg+xml,font/woff2
//	@Param			file			path		string	true	"Name of the file"	example(base.css)
//	@Param			If-None-Match	header		string	false	"ETag that the client has"
//	@Success		200				{string}	string	"The file"
//	@Header			200				{string}	ETag	"For If-None-Match"
//	@Success		304				"Still as the client has it"
//	@Failure	404	{object}	openapi.Problem	"not-found"
//	@Router			/static/{file} [get]
func (s *Server) pageFile(x *exchange, r *http.Request) error {
	if !s.pages.web.Has(pathParam(r, "file")) {
		return s.notFound(x, r)
	}
	s.pages.web.ServeHTTP(x, r)
	return nil
}
