package server

import "github.com/go-chi/chi/v5"

// Routes gives the tests the route table.
func (s *Server) Routes() chi.Routes { return s.routes.(chi.Routes) }

// RouteRule is what a route asks of its caller.
type RouteRule struct {
	Open   bool
	Stream bool     // a ticket will do as well
	Scopes []string // of which one will do
}

// RouteRules gives the tests what each route asks of its caller.
func RouteRules() map[string]RouteRule {
	all := map[string]RouteRule{}
	for route, u := range rules() {
		all[route] = RouteRule{Open: u.open, Stream: u.stream, Scopes: u.scopes.Names()}
	}
	return all
}
