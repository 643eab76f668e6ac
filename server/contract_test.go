package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/openapi/spec"
)

// contract checks traffic against the document: every response, and every request
// that the server did not refuse for its shape.
type contract struct {
	doc    *openapi3.T
	router routers.Router
}

// theContract loads the document once for all tests of the package.
var theContract = sync.OnceValues(func() (*contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(spec.JSON())
	if err != nil {
		return nil, err
	}
	doc.Servers = nil // any host
	allowNull(doc)
	allowMillis(doc)
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	// Streams are strings in the document; what is in them is checked apart.
	for _, media := range []string{"application/x-ndjson", "text/event-stream", "text/html", "application/openmetrics-text", "application/vnd.oncelog.batch"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.PlainBodyDecoder)
	}
	return &contract{doc: doc, router: router}, nil
})

// allowNull spells out the types of members that may be anything: where a schema has
// references, the validator falls back to 3.0, which has null only where it is named.
func allowNull(doc *openapi3.T) {
	for _, s := range doc.Components.Schemas {
		for _, p := range s.Value.Properties {
			if v := p.Value; v.Type == nil && v.OneOf == nil && v.AllOf == nil {
				v.Type = &openapi3.Types{"object", "array", "string", "number", "boolean", "null"}
			}
		}
	}
}

// allowMillis adds what the document says in words only, to have one type for generators:
// timestamps in integer milliseconds.
func allowMillis(doc *openapi3.T) {
	timestamp := doc.Components.Schemas["AppendRecord"].Value.Properties["timestamp"].Value
	timestamp.Type = &openapi3.Types{"string", "integer"}
	timestamp.Min = new(0.0)
}

func loadContract(t testing.TB) *contract {
	t.Helper()
	c, err := theContract()
	if err != nil {
		t.Fatalf("the document cannot be loaded: %v", err)
	}
	return c
}

// newContractServer serves h on a port of its own, and returns its URL and a client
// that fails the test when a request or a response is not what the document says.
func newContractServer(t testing.TB, h http.Handler) (string, *http.Client) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	transport, ok := srv.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatalf("the test server's transport is a %T", srv.Client().Transport)
	}
	return srv.URL, &http.Client{Transport: newContractTransport(t, transport)}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newContractTransport checks what passes through next.
func newContractTransport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	t.Helper()
	c := loadContract(t)
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		sent := &tee{}
		out := r.Clone(r.Context())
		if r.Body != nil && r.Body != http.NoBody {
			sent.body = r.Body
			out.Body = sent
			out.GetBody = nil // the copy would not be seen
		}
		resp, err := next.RoundTrip(out)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols || r.Method == http.MethodHead {
			return resp, nil
		}
		check := func(body []byte, whole bool) {
			t.Helper()
			for _, err := range c.check(r, sent.bytes(), resp, body, whole) {
				t.Errorf("contract: %s %s -> %d: %v", r.Method, r.URL.RequestURI(), resp.StatusCode, err)
			}
		}
		if isStream(resp) {
			resp.Body = &tee{body: resp.Body, done: func(b []byte) { check(b, false) }}
			return resp, nil
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), &failing{err}))
		if err == nil { // a body that was cut is for the test to judge
			check(body, true)
		}
		return resp, nil
	})
}

// isStream tells a response that may never end.
func isStream(r *http.Response) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")
}

// failing gives err, or the end for none.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// tee keeps what is read through it. A transport may still be reading a request's body
// when the response is there.
type tee struct {
	body io.ReadCloser
	done func([]byte) // called once, when it is closed

	mu   sync.Mutex
	seen bytes.Buffer
}

func (b *tee) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen.Write(p[:n])
	return n, err
}

func (b *tee) Close() error {
	if b.done != nil {
		b.done(b.bytes())
		b.done = nil
	}
	return b.body.Close()
}

func (b *tee) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.seen.Bytes())
}

// check returns everything in an exchange that the document does not allow. A body
// that is not whole is the beginning of a stream.
func (c *contract) check(r *http.Request, sent []byte, resp *http.Response, got []byte, whole bool) []error {
	got, err := decoded(resp.Header, got)
	if err != nil {
		return []error{err}
	}
	route, params, err := c.router.FindRoute(r)
	if err != nil {
		return c.checkUnrouted(resp, got)
	}
	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		MultiError:            true,
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		ExcludeResponseBody:   !whole,
		SkipSettingDefaults:   true,
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
	var errs []error
	if !refusedForItsShape(resp, got) {
		if err := c.checkRequest(in, sent); err != nil {
			errs = append(errs, err)
		}
	}
	err = openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in,
		Status:                 resp.StatusCode,
		Header:                 resp.Header,
		Body:                   io.NopCloser(bytes.NewReader(got)),
		Options:                options,
	})
	if err != nil {
		errs = append(errs, err)
	}
	if resp.StatusCode >= http.StatusBadRequest && in.Request.Method != http.MethodHead {
		errs = append(errs, checkProblem(route.Operation, resp.StatusCode, got))
	}
	if resp.StatusCode == http.StatusOK && route.Operation.OperationID == "readRecords" {
		errs = append(errs, c.checkItems("StoredRecord", recordsOf(resp, got)))
	}
	return compact(errs)
}

// checkProblem: an operation answers no code but those that the document names for it,
// and says of each what the table says.
func checkProblem(op *openapi3.Operation, status int, body []byte) error {
	var p openapi.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	known, ok := openapi.LookupProblemType(p.Code)
	if !ok {
		return fmt.Errorf("code %q is not on the list", p.Code)
	}
	if p.Type != known.Path() || p.Title != known.Title || p.Status != known.Status || status != known.Status || p.Retryable != known.Retryable || p.Outcome != known.Outcome {
		return fmt.Errorf("%s is not as the table has it: %s", p.Code, body)
	}
	r := op.Responses.Status(p.Status)
	if r == nil || r.Value.Content[openapi.ProblemContentType].Examples[p.Code] == nil {
		return fmt.Errorf("%s does not document %s", op.OperationID, p.Code)
	}
	return nil
}

// checkRequest looks at a request as it was before any content coding.
func (c *contract) checkRequest(in *openapi3filter.RequestValidationInput, sent []byte) error {
	r := in.Request.Clone(in.Request.Context())
	body, err := decoded(r.Header, sent)
	if err != nil {
		return err
	}
	r.Header.Del("Content-Encoding")
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	} else {
		r.Body = http.NoBody
	}
	r.ContentLength = int64(len(body))
	with := *in
	with.Request = r
	if err := openapi3filter.ValidateRequest(r.Context(), &with); err != nil {
		return err
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-ndjson") {
		return c.checkItems("AppendRecord", slices.Collect(bytes.Lines(body)))
	}
	return nil
}

// refusedForItsShape tells answers to requests that need not be what the document says.
func refusedForItsShape(resp *http.Response, body []byte) bool {
	var p openapi.Problem
	if resp.StatusCode < http.StatusBadRequest || json.Unmarshal(body, &p) != nil {
		return false
	}
	switch p.Code {
	case "malformed-request", "invalid-argument", "unsupported-media-type", "not-acceptable", "not-found", "method-not-allowed", "too-large", "headers-too-large":
		return true
	// Topic names that break the rule are unknown topics, and partitions that no topic
	// can have are unknown partitions. A server that cannot serve does not look first.
	case "unknown-topic", "unknown-partition", "not-ready", "draining", "cross-origin":
		return true
	}
	return false
}

// checkUnrouted: what no operation answers is a problem of one of two codes.
func (c *contract) checkUnrouted(resp *http.Response, body []byte) []error {
	if resp.Request.Method == http.MethodOptions && resp.StatusCode < 300 && len(body) == 0 {
		return nil // a preflight
	}
	if media := resp.Header.Get("Content-Type"); media != openapi.ProblemContentType {
		return []error{fmt.Errorf("no operation, and the answer is no problem but %q", media)}
	}
	return compact([]error{c.checkItems("Problem", [][]byte{body})})
}

func compact(errs []error) []error {
	var some []error
	for _, err := range errs {
		if err != nil {
			some = append(some, err)
		}
	}
	return some
}

// recordsOf takes the records out of the streaming forms of a read, which are strings
// to the document.
func recordsOf(resp *http.Response, body []byte) [][]byte {
	var records [][]byte
	media := resp.Header.Get("Content-Type")
	for line := range bytes.Lines(body) {
		switch {
		case strings.HasPrefix(media, "application/x-ndjson"):
			records = append(records, line)
		case strings.HasPrefix(media, "text/event-stream"):
			// The last line may have been cut where the client left.
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && bytes.HasSuffix(data, []byte("\n")) {
				records = append(records, data)
			}
		}
	}
	return records
}

// checkItems holds JSON values against a schema of the document. They go through as
// one array because the validator compiles the schema each time that it is asked.
func (c *contract) checkItems(schema string, items [][]byte) error {
	values := make([]any, 0, len(items))
	for _, item := range items {
		var v any
		if err := json.Unmarshal(item, &v); err != nil {
			return fmt.Errorf("%s: %w", schema, err)
		}
		values = append(values, v)
	}
	list := openapi3.NewArraySchema()
	list.Items = c.doc.Components.Schemas[schema]
	return list.VisitJSON(values, openapi3.MultiErrors(), openapi3.EnableJSONSchema2020())
}

// decoded undoes the content coding of a body.
func decoded(h http.Header, body []byte) ([]byte, error) {
	if len(body) == 0 {
		return body, nil
	}
	switch h.Get("Content-Encoding") {
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	case "zstd":
		z, err := zstd.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return io.ReadAll(z)
	}
	return body, nil
}
