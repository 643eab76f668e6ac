package server

import (
	"log/slog"
	"net/http"

	"github.com/oncelog/oncelog/store"
)

// statusClientGone is what the log says when nobody was there to be answered. It never
// goes over the wire.
const statusClientGone = 499

// report writes the request's log line and counts it.
func (s *Server) report(x *exchange, r *http.Request) {
	took := s.options.Now().Sub(x.start)
	status := x.status
	switch {
	case x.gone:
		status = statusClientGone
	case status == 0:
		status = http.StatusOK // net/http sends that when nothing was written
	}
	s.metrics.observe(r.Pattern, r.Method, status, took)
	level := logLevel(status, x.code, r.Pattern)
	if x.cut {
		level = slog.LevelError
	}
	ctx := r.Context()
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 11),
		slog.String("method", r.Method),
		slog.String("path", r.URL.EscapedPath()),
		slog.String("route", r.Pattern),
		slog.Int("status", status),
		slog.Duration("duration", took),
		slog.Int64("bytes", x.bytes),
		slog.String("request.id", x.id),
		slog.String("remote", r.RemoteAddr),
	)
	if x.code != "" {
		attrs = append(attrs, slog.String("problem.code", x.code))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("error", x.cause.Error()))
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}

// logLevel is error for what an operator must look at, warn for what a client should
// not have sent or the server could not take just now, debug for probes, else info.
func logLevel(status int, code, route string) slog.Level {
	switch {
	case code == string(store.CodeOverloaded), code == string(store.CodeNotReady), code == string(store.CodeDraining):
		return slog.LevelWarn
	case status >= http.StatusInternalServerError:
		return slog.LevelError
	case status == statusClientGone:
		return slog.LevelInfo
	case status >= http.StatusBadRequest:
		return slog.LevelWarn
	case route == "/livez", route == "/readyz", route == "/metrics":
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
