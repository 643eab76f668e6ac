package server

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

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
	if s.options.Traces != nil {
		s.trace(x, r)
	}
	level := logLevel(status, x.code, r.Pattern)
	if x.cut {
		level = slog.LevelError
	}
	ctx := r.Context()
	if !s.log.Enabled(ctx, level) {
		return
	}
	var unlogged int64
	if lines := s.sampled(x, status); lines != nil {
		var ok bool
		if ok, unlogged = lines.take(x.start); !ok {
			return
		}
	}
	attrs := append(make([]slog.Attr, 0, 16),
		slog.String("method", r.Method),
		slog.String("path", r.URL.EscapedPath()),
		slog.String("route", r.Pattern),
		slog.Int("status", status),
		slog.Duration("duration", took),
		slog.Int64("bytes", x.bytes),
		slog.String("request.id", x.id),
		slog.String("remote", r.RemoteAddr),
	)
	if span := traceOf(r); span.IsValid() {
		attrs = append(attrs, slog.String("trace.id", span.TraceID().String()), slog.String("span.id", span.SpanID().String()))
	}
	if x.caller != nil && x.caller.Name != "" {
		attrs = append(attrs, slog.String("principal", x.caller.Name), slog.String("grant", x.caller.Grant))
	}
	if unlogged > 0 {
		attrs = append(attrs, slog.Int64("unlogged", unlogged))
	}
	if x.code != "" {
		attrs = append(attrs, slog.String("problem.code", x.code))
	}
	if x.cause != nil {
		attrs = append(attrs, slog.String("error", x.cause.Error()))
	}
	s.log.LogAttrs(ctx, level, "request", attrs...)
}

// sampled is what bounds the lines of requests like this one, nil: each has one. When the
// server has too much to do, a line for each request that it refuses for that would give it
// more.
func (s *Server) sampled(x *exchange, status int) *lineLimiter {
	switch {
	case x.cut:
		return nil
	case status < http.StatusBadRequest:
		return &s.successes
	case comeLater(x.code):
		return &s.refusals
	}
	return nil
}

// lineLimiter lets so many lines a second through and counts the others. At full load a line
// for each success would cost a sixth of the server's time, and bury the failures.
type lineLimiter struct {
	limit   int64 // negative: none is held back
	second  atomic.Int64
	taken   atomic.Int64 // in that second
	skipped atomic.Int64 // since the last line that was let through
}

// take reports whether a line may be written, and how many were not before it.
func (s *lineLimiter) take(now time.Time) (ok bool, skipped int64) {
	if s.limit < 0 {
		return true, 0
	}
	if second := now.Unix(); s.second.Swap(second) != second {
		s.taken.Store(0)
	}
	if s.taken.Add(1) > s.limit {
		s.skipped.Add(1)
		return false, 0
	}
	return true, s.skipped.Swap(0)
}

// logLevel is error for what an operator must look at, warn for what a client should
// not have sent or the server could not take just now, debug for probes and for what pages are made of, else info.
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
	case route == "/livez", route == "/readyz", route == "/metrics", route == "/static/{file}":
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
