package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushTimeout is how long spans that nobody has fetched yet may hold up the end of the
// process. By then everything that counts is on disk.
const flushTimeout = 5 * time.Second

// openTraces makes what sends spans to a collector over OTLP/HTTP, as OpenTelemetry's own
// environment variables say. provider is nil when no endpoint is named in them: then
// nothing of this is on any request's path. What is wrong with them is logged and leaves
// tracing off, for it is no reason not to serve. flush sends what is left.
//
// The SDK reads OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES, the exporter OTEL_EXPORTER_OTLP_*.
func openTraces(ctx context.Context, log *slog.Logger) (provider trace.TracerProvider, flush func(context.Context)) {
	off := func(context.Context) {}
	endpoint, err := tracesEndpoint(os.Getenv)
	if err != nil {
		log.WarnContext(ctx, "no traces", slog.Any("error", err))
		return nil, off
	}
	if endpoint == "" {
		return nil, off
	}
	// The SDK has no other place for what goes wrong later.
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.WarnContext(ctx, "spans were lost", slog.Any("error", err))
	}))
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		log.WarnContext(ctx, "no traces", slog.Any("error", err))
		return nil, off
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(describe(ctx, log)))
	log.InfoContext(ctx, "traces", slog.String("endpoint", endpoint))
	return p, func(ctx context.Context) {
		limited, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		if err := p.Shutdown(limited); err != nil {
			log.WarnContext(ctx, "spans were lost", slog.Any("error", err))
		}
	}
}

// tracesEndpoint is the collector that the environment names, "" if it wants no traces.
func tracesEndpoint(getenv func(string) string) (string, error) {
	const prefix = "OTEL_EXPORTER_OTLP_"
	endpoint := cmp.Or(getenv(prefix+"TRACES_ENDPOINT"), getenv(prefix+"ENDPOINT"))
	if endpoint == "" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return "", nil
	case "", "otlp":
	default:
		return "", fmt.Errorf("OTEL_TRACES_EXPORTER is %q: only otlp and none are known", exporter)
	}
	protocol := cmp.Or(getenv(prefix+"TRACES_PROTOCOL"), getenv(prefix+"PROTOCOL"), "http/protobuf")
	if protocol != "http/protobuf" && protocol != "http/json" {
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: only http/protobuf and http/json are known", protocol)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT must be a URL such as http://127.0.0.1:4318")
	}
	return u.Redacted(), nil
}

// describe says whose the spans are. The environment has the last word.
func describe(ctx context.Context, log *slog.Logger) *resource.Resource {
	r, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "oncelog"), attribute.String("service.version", readBuild().version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv(),
	)
	if err != nil { // and r has what could be found out
		log.WarnContext(ctx, "traces tell less of the server than they should", slog.Any("error", err))
	}
	return r
}
