package server

import "github.com/go-chi/chi/v5"

// Routes gives the tests the route table.
func (s *Server) Routes() chi.Routes { return s.routes.(chi.Routes) }
