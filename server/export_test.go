package server

import (
	"errors"
	"net/http"

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
