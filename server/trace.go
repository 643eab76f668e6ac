package server

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncelog/oncelog/web"
)

// traces makes a span of each request: a child of the one that the client names in its
// traceparent (W3C Trace Context), called "METHOD route". chi sets the route on the very
// request that this hands on, so it has to be the router's first middleware: outside of
// the router it would never see a route.
func (s *Server) traces() func(http.Handler) http.Handler {
	return otelhttp.NewMiddleware("",
		otelhttp.WithTracerProvider(s.options.Traces),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithMeterProvider(noop.NewMeterProvider()), // /metrics has them
		otelhttp.WithFilter(worthTracing),
	)
}

// worthTracing leaves out what is asked for again and again and tells nothing.
func worthTracing(r *http.Request) bool {
	switch r.URL.Path {
	case "/livez", "/readyz", "/metrics":
		return false
	}
	return !strings.HasPrefix(r.URL.Path, web.FilesPath)
}

// trace adds to the request's span what only the server knows. The span's own status is
// otelhttp's: an error for each 5xx.
func (s *Server) trace(x *exchange, r *http.Request) {
	span := trace.SpanFromContext(r.Context())
	if !span.IsRecording() {
		return
	}
	attrs := append(make([]attribute.KeyValue, 0, 3), attribute.String("request.id", x.id))
	if r.Pattern != "" {
		attrs = append(attrs, attribute.String("http.route", r.Pattern))
	}
	if x.code != "" {
		attrs = append(attrs, attribute.String("problem.code", x.code))
	}
	span.SetAttributes(attrs...)
}

// traceOf is the span that a request belongs to: its own one, or that of the client when
// the server makes none. It is looked for only when a line is written, because that costs
// more than an append may.
func traceOf(r *http.Request) trace.SpanContext {
	ctx := r.Context()
	if own := trace.SpanContextFromContext(ctx); own.IsValid() || len(r.Header["Traceparent"]) == 0 {
		return own
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header)))
}
