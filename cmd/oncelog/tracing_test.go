package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spanReceiver is a collector: it takes spans over OTLP/HTTP and keeps them.
type spanReceiver struct {
	url string

	mu       sync.Mutex
	raw      bytes.Buffer // of all requests
	spans    []*spanpb.Span
	resource map[string]string
	headers  http.Header
}

func newSpanReceiver(t *testing.T) *spanReceiver {
	t.Helper()
	c := &spanReceiver{resource: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Errorf("%v: %q", err, body)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw.Write(body)
		c.headers = r.Header
		for _, of := range request.GetResourceSpans() {
			for _, a := range of.GetResource().GetAttributes() {
				c.resource[a.GetKey()] = a.GetValue().GetStringValue()
			}
			for _, s := range of.GetScopeSpans() {
				c.spans = append(c.spans, s.GetSpans()...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

// traced sends a request as part of a trace.
func traced(t *testing.T, g *gateway, method, path, body, id, traceparent string, headers ...string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Request-Id", id)
	if traceparent != "" {
		req.Header.Set("Traceparent", traceparent)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
}

// requestLine is the log line of a request of a server that has ended.
func requestLine(t *testing.T, g *gateway, id string) map[string]any {
	t.Helper()
	g.logs.mu.Lock()
	defer g.logs.mu.Unlock()
	for _, text := range g.logs.lines {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["request.id"] == id {
			return line
		}
	}
	t.Fatalf("request %s has no log line", id)
	return nil
}

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
	sampled     = "00-" + clientTrace + "-" + clientSpan + "-01"
	unsampled   = "00-" + clientTrace + "-" + clientSpan + "-00"
)

// TestTraces: a collector gets a span of each request, as a child of the client's, named
// by its route, the last ones when the server stops; the log lines name the same spans, and
// nothing that is secret goes along.
func TestTraces(t *testing.T) {
	c := newSpanReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.url)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=collectors-own")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000") // only the end of the process makes it send
	g := newGateway(t, "--log-successes", "-1")
	traced(t, g, "PUT", "/topics/orders", "{}", "put", "", "Content-Type: application/json")
	traced(t, g, "POST", "/topics/orders/partitions/0/batches", "secret-value", "append", sampled,
		"Content-Type: text/plain", "Authorization: Bearer secret-token", "Record-Key: secret-key")
	traced(t, g, "GET", "/topics/orders/partitions/7/records?ticket=secret-ticket", "", "missing", sampled)
	traced(t, g, "GET", "/nothing/secret-no-route", "", "nowhere", sampled)
	traced(t, g, "BREW", "/topics", "", "brew", sampled)
	traced(t, g, "GET", "/topics", "", "unsampled", unsampled)
	traced(t, g, "GET", "/readyz", "", "probe", sampled)
	g.stop()

	byID := map[string]*spanpb.Span{}
	for _, s := range c.spans {
		for _, a := range s.GetAttributes() {
			if a.GetKey() == "request.id" {
				byID[a.GetValue().GetStringValue()] = s
			}
		}
	}
	const appendName = "POST /topics/{topic}/partitions/{partition}/batches"
	for id, name := range map[string]string{
		"put": "PUT /topics/{topic}", "append": appendName,
		"missing": "GET /topics/{topic}/partitions/{partition}/records", "nowhere": "GET", "brew": "HTTP",
	} {
		s := byID[id]
		if s == nil {
			t.Errorf("%s: no span", id)
			continue
		}
		if s.GetName() != name || s.GetKind() != spanpb.Span_SPAN_KIND_SERVER {
			t.Errorf("%s: span %q of kind %v, want %q", id, s.GetName(), s.GetKind(), name)
		}
		line := requestLine(t, g, id)
		trace, span := hex.EncodeToString(s.GetTraceId()), hex.EncodeToString(s.GetSpanId())
		if line["trace.id"] != trace || line["span.id"] != span {
			t.Errorf("%s: the log line names %v and %v, the span is %s of %s", id, line["trace.id"], line["span.id"], span, trace)
		}
		if parent := hex.EncodeToString(s.GetParentSpanId()); id != "put" && (trace != clientTrace || parent != clientSpan) {
			t.Errorf("%s: a child of %s in trace %s", id, parent, trace)
		}
	}
	if len(c.spans) < 5 || byID["unsampled"] != nil || byID["probe"] != nil {
		t.Errorf("%d spans; unsampled: %v, probe: %v", len(c.spans), byID["unsampled"], byID["probe"])
	}
	if line := requestLine(t, g, "unsampled"); line["trace.id"] != clientTrace {
		t.Errorf("the log line of what is not sampled: %v", line)
	}
	if c.resource["service.name"] != "oncelog" || c.resource["deployment.environment.name"] != "test" || c.headers.Get("X-Key") != "collectors-own" {
		t.Errorf("resource %v, headers %v", c.resource, c.headers)
	}
	for _, secret := range []string{"secret-value", "secret-token", "secret-key", "secret-ticket"} {
		if bytes.Contains(c.raw.Bytes(), []byte(secret)) || strings.Contains(g.logs.tail(1000), secret) {
			t.Errorf("%s is in a span or in the log", secret)
		}
	}
	if strings.Contains(g.logs.tail(1000), "collectors-own") {
		t.Error("the collector's key is in the log")
	}
}

// TestTraceparentWithoutCollector: the log lines name the client's trace all the same, and
// nothing is sent to anybody.
func TestTraceparentWithoutCollector(t *testing.T) {
	c := newSpanReceiver(t)
	for name, env := range map[string][2]string{
		"no endpoint": {"OTEL_EXPORTER_OTLP_ENDPOINT", ""},
		"disabled":    {"OTEL_SDK_DISABLED", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.url)
			t.Setenv(env[0], env[1])
			g := newGateway(t)
			traced(t, g, "GET", "/topics", "", "with", sampled)
			traced(t, g, "GET", "/topics", "", "without", "")
			traced(t, g, "GET", "/topics", "", "nonsense", "00-zz-"+clientSpan+"-01")
			g.stop()
			if line := requestLine(t, g, "with"); line["trace.id"] != clientTrace || line["span.id"] != clientSpan {
				t.Errorf("%v", line)
			}
			for _, id := range []string{"without", "nonsense"} {
				if line := requestLine(t, g, id); line["trace.id"] != nil || line["span.id"] != nil {
					t.Errorf("%v", line)
				}
			}
		})
	}
	if len(c.spans) > 0 {
		t.Errorf("%d spans have come", len(c.spans))
	}
}

// TestTracesDoNotHoldUpTheEnd: a collector that is not there costs a line in the log and,
// at the end, a few seconds at most.
func TestTracesDoNotHoldUpTheEnd(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gone.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	g := newGateway(t)
	traced(t, g, "GET", "/topics", "", "one", "")
	g.stop()
	var line struct{ Level, Error string }
	if err := g.logs.find("spans were lost", &line); err != nil || line.Level != "WARN" || line.Error == "" {
		t.Errorf("%+v, %v", line, err)
	}
}

// TestLogSuccesses: of requests that succeed so many lines a second are written, and of
// others all.
func TestLogSuccesses(t *testing.T) {
	g := newGateway(t, "--log-successes", "1")
	start := time.Now()
	for i := range 30 {
		traced(t, g, "GET", "/topics", "", fmt.Sprintf("good %d", i), "")
		traced(t, g, "GET", "/topics/none", "", fmt.Sprintf("bad %d", i), "")
	}
	seconds := int(time.Since(start)/time.Second) + 2 // that have begun
	g.stop()
	text := g.logs.tail(1000)
	if good, bad := strings.Count(text, `"good `), strings.Count(text, `"bad `); good < 1 || good > seconds || bad != 30 {
		t.Errorf("%d lines in %d seconds for 30 successes, %d for 30 failures", good, seconds, bad)
	}
}

func TestTracesEndpoint(t *testing.T) {
	const prefix = "OTEL_EXPORTER_OTLP_"
	for name, c := range map[string]struct {
		env  map[string]string
		want string // "": off
		bad  string
	}{
		"nothing":         {},
		"all signals":     {env: map[string]string{prefix + "ENDPOINT": "http://h:1"}, want: "http://h:1"},
		"traces first":    {env: map[string]string{prefix + "ENDPOINT": "http://h:1", prefix + "TRACES_ENDPOINT": "https://t:2/x"}, want: "https://t:2/x"},
		"password":        {env: map[string]string{prefix + "ENDPOINT": "http://u:p@h:1"}, want: "http://u:xxxxx@h:1"},
		"disabled":        {env: map[string]string{prefix + "ENDPOINT": "http://h:1", "OTEL_SDK_DISABLED": "TRUE"}},
		"not disabled":    {env: map[string]string{prefix + "ENDPOINT": "http://h:1", "OTEL_SDK_DISABLED": "yes"}, want: "http://h:1"},
		"other signals":   {env: map[string]string{prefix + "ENDPOINT": "http://h:1", "OTEL_TRACES_EXPORTER": "none"}},
		"other exporter":  {env: map[string]string{prefix + "ENDPOINT": "http://h:1", "OTEL_TRACES_EXPORTER": "console"}, bad: "OTEL_TRACES_EXPORTER"},
		"json":            {env: map[string]string{prefix + "ENDPOINT": "http://h:1", prefix + "PROTOCOL": "http/json"}, want: "http://h:1"},
		"grpc":            {env: map[string]string{prefix + "ENDPOINT": "http://h:1", prefix + "TRACES_PROTOCOL": "grpc"}, bad: "PROTOCOL"},
		"no URL":          {env: map[string]string{prefix + "ENDPOINT": "h:4317"}, bad: "must be a URL"},
		"grpc, elsewhere": {env: map[string]string{prefix + "PROTOCOL": "grpc"}},
	} {
		got, err := tracesEndpoint(func(name string) string { return c.env[name] })
		if got != c.want || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
