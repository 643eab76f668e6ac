package server

import (
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
)

// Registry gives the tests the metrics to lint.
func (s *Server) Registry() *prometheus.Registry { return s.metrics.registry }

// DecodeAppend reads the body of an append.
func (s *Server) DecodeAppend(r *http.Request) (store.Append, error) { return s.decodeAppend(r) }

// ProblemCode returns the code and places of a problem that the server has found, ""
// for any other error.
func ProblemCode(err error) (string, []openapi.MemberError) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return "", nil
	}
	return p.code, p.errors
}

// CheckRules registers the routes that there are, and those that more adds, as a new
// server does.
func CheckRules(more func(routes chi.Router, guarded func(method, pattern string))) error {
	s, err := New(Options{})
	if err != nil {
		return err
	}
	if more == nil {
		return nil
	}
	r := chi.NewRouter()
	g := guarded{server: s, routes: r, rules: rules()}
	more(r, func(method, pattern string) { g.add(method, pattern, nil) })
	return g.complete()
}

// IsPlain tells whether text needs no escape between the quotes of JSON.
func IsPlain(text []byte) bool { return isPlain(text) }

// MemoryHeld returns what bodies and answers are counted to hold, and what they may.
func (s *Server) MemoryHeld() (bodies, bodiesLimit, answers, answersLimit int64) {
	b, a := s.bodyMemory.use(), s.readMemory.use()
	return b.used, b.size, a.used, a.size
}

// SetPatience changes for how long a client may keep others waiting with its body.
func (s *Server) SetPatience(d time.Duration) {
	s.bodyMemory.mu.Lock()
	defer s.bodyMemory.mu.Unlock()
	s.bodyMemory.patience = d
}
