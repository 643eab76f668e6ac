package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/oncelog/oncelog/openapi"
)

// createTicket gives a ticket for an event stream.
//
//	@Summary		Get a ticket for an event stream
//	@ID				createTicket
//	@Tags			service
//	@Description	Gives a ticket for one GET of the path, for browsers: their EventSource sends no headers, and a token does not belong into a URL. It goes into the query parameter ticket of that request, is good once, for 30 seconds, and for what the caller may do. A stream that breaks off needs a new one.
//	@Accept			json
//	@Produce		json
//	@Param			body	body		openapi.TicketRequest	true	"What the ticket is for"
//	@Success		201		{object}	openapi.Ticket			"The ticket"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	401	{object}	openapi.Problem	"unauthenticated"
//	@Failure	403	{object}	openapi.Problem	"forbidden, cross-origin"
//	@Failure	413	{object}	openapi.Problem	"too-large"
//	@Failure	415	{object}	openapi.Problem	"unsupported-media-type"
//	@Failure	422	{object}	openapi.Problem	"invalid-argument"
//	@Failure	429	{object}	openapi.Problem	"rate-limited"
//	@Security	bearer
//	@Router			/tickets [post]
func (s *Server) createTicket(x *exchange, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body openapi.TicketRequest
	if _, err := s.decode(r, &body, bodyRules{required: []string{"path"}}); err != nil {
		return err
	}
	if !s.streams(body.Path) {
		return invalid("/path", "must be the path of an event stream, without a query: /events or /topics/{topic}/partitions/{partition}/records")
	}
	text, until, err := s.access.Ticket(x.caller, body.Path)
	if err != nil {
		return err
	}
	x.Header()["Cache-Control"] = noStore
	return writeJSON(x, http.StatusCreated, openapi.Ticket{Ticket: text, ExpiresAt: formatTime(until)})
}

// streams reports whether a GET of the path may be a stream.
func (s *Server) streams(path string) bool {
	u, err := url.Parse(path)
	if err != nil || u.EscapedPath() != path || !strings.HasPrefix(path, "/") {
		return false
	}
	match := chi.NewRouteContext()
	routes, ok := s.routes.(chi.Routes)
	return ok && routes.Match(match, http.MethodGet, path) && rules()["GET "+match.RoutePattern()].stream
}
