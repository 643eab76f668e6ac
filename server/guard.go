package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/oncelog/oncelog/server/access"
)

// guarded registers routes, each behind the rule that it has in the table.
type guarded struct {
	server  *Server
	routes  chi.Router
	rules   map[string]rule // that no route has used yet
	missing []string
}

func (g *guarded) Get(pattern string, h http.HandlerFunc)    { g.add(http.MethodGet, pattern, h) }
func (g *guarded) Post(pattern string, h http.HandlerFunc)   { g.add(http.MethodPost, pattern, h) }
func (g *guarded) Put(pattern string, h http.HandlerFunc)    { g.add(http.MethodPut, pattern, h) }
func (g *guarded) Patch(pattern string, h http.HandlerFunc)  { g.add(http.MethodPatch, pattern, h) }
func (g *guarded) Delete(pattern string, h http.HandlerFunc) { g.add(http.MethodDelete, pattern, h) }

func (g *guarded) add(method, pattern string, h http.HandlerFunc) {
	route := method + " " + pattern
	u, ok := g.rules[route]
	if !ok {
		g.missing = append(g.missing, route)
		return
	}
	delete(g.rules, route)
	g.routes.MethodFunc(method, pattern, g.server.guard(u, h))
}

// complete fails unless routes and rules are the same.
func (g *guarded) complete() error {
	if len(g.missing) > 0 {
		return fmt.Errorf("routes without a rule of access: %s", strings.Join(g.missing, ", "))
	}
	if len(g.rules) > 0 {
		return fmt.Errorf("rules of access without a route: %s", strings.Join(slices.Sorted(maps.Keys(g.rules)), ", "))
	}
	return nil
}

// guard lets those through to h whom the rule allows, before anything of the body is read.
func (s *Server) guard(u rule, h http.HandlerFunc) http.HandlerFunc {
	if u.open {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange) //nolint:errcheck // observe made it, and nothing wraps it
		if err := s.admit(x, r, u); err != nil {
			s.fail(x, r, err)
			return
		}
		if x.meter != nil {
			defer func() { x.meter.Used(x.body.taken) }()
		}
		if u.stream && mayWait(r) {
			waiting, done := access.Until(r, x.caller)
			defer done()
			r = waiting
		}
		h(w, r)
	}
}

// admit finds out who is calling and whether that one may, within its quota.
func (s *Server) admit(x *exchange, r *http.Request, u rule) error {
	caller, err := s.access.Authenticate(r, u.stream && r.Method == http.MethodGet)
	if err != nil {
		return err
	}
	x.caller = caller
	if err := u.allows(caller, r); err != nil {
		return err
	}
	if caller.Name != "" {
		x.Header()["Vary"] = []string{"Authorization"} // one browser may hold more than one token
	}
	if caller.Meter == nil {
		return nil
	}
	x.meter = caller.Meter
	err = x.meter.Request()
	policy, limit := x.meter.Fields()
	h := x.Header()
	h["RateLimit-Policy"], h["RateLimit"] = policy, limit // spelled as in the draft
	return err
}

// mayWait reports requests whose answer can take long: long polls and event streams.
func mayWait(r *http.Request) bool {
	return r.URL.Path == "/events" || strings.Contains(r.URL.RawQuery, "waitMs") ||
		slices.ContainsFunc(r.Header["Accept"], func(v string) bool { return strings.Contains(v, mediaEventStream) })
}

// ended reports that a request was cut short because its caller's right has ended.
func ended(r *http.Request, err error) bool {
	return isContext(err) && context.Cause(r.Context()) == access.ErrEnded //nolint:errorlint // it is set as it is
}

// checkHost refuses requests for a server of another name.
func (s *Server) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.access.CheckHost(r); err != nil {
			s.fail(w.(*exchange), r, err) //nolint:errcheck // observe made it, and nothing wraps it
			return
		}
		next.ServeHTTP(w, r)
	})
}
