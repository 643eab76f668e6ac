package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory"
)

// env is a server over a store, on a port of its own. All traffic through do is checked
// against the OpenAPI document.
type env struct {
	t      testing.TB
	url    string
	client *http.Client
	server *server.Server
	store  store.Store
	log    *logLines
}

// with changes the options of a new env.
type with func(o *server.Options)

func newEnv(t testing.TB, options ...with) *env {
	t.Helper()
	return newEnvOver(t, memory.Open(memory.Options{}), options...)
}

func newEnvOver(t testing.TB, st store.Store, options ...with) *env {
	t.Helper()
	e := newEnvWithoutStore(t, options...)
	e.store = st
	e.server.Serve(st)
	return e
}

func newEnvWithoutStore(t testing.TB, options ...with) *env {
	t.Helper()
	e := &env{t: t, log: &logLines{}}
	o := server.Options{
		Logger:  slog.New(slog.NewJSONHandler(e.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Version: "0.0.0-test", Revision: "abc",
	}
	for _, f := range options {
		f(&o)
	}
	var err error
	if e.server, err = server.New(o); err != nil {
		t.Fatal(err)
	}
	e.url, e.client = newContractServer(t, e.server)
	return e
}

// answer is a response that has been read to its end.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do sends a request. Headers are "Name: value".
func (e *env) do(method, path, body string, headers ...string) *answer {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), method, e.url+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return &answer{e.t, resp.StatusCode, resp.Header, got}
}

// unchecked is the env with a client that does not look at the document, for traffic
// that the checks there cannot read.
func (e *env) unchecked() *env {
	c := *e
	c.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return &c
}

// json sends a JSON body, get none.
func (e *env) json(method, path, body string, headers ...string) *answer {
	e.t.Helper()
	return e.do(method, path, body, append(headers, "Content-Type: application/json")...)
}

func (e *env) get(path string, headers ...string) *answer {
	e.t.Helper()
	return e.do(http.MethodGet, path, "", headers...)
}

// is fails the test unless the answer has the status.
func (a *answer) is(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// problem fails the test unless the answer is a problem of the code, complete in the
// members that every problem has, and returns it.
func (a *answer) problem(code string) openapi.Problem {
	a.t.Helper()
	var p openapi.Problem
	if err := json.Unmarshal(a.body, &p); err != nil {
		a.t.Fatalf("status %d, no problem but %q", a.status, a.body)
	}
	if p.Code != code {
		a.t.Fatalf("code %q, want %q: %s", p.Code, code, a.body)
	}
	want, ok := openapi.LookupProblemType(code)
	if !ok {
		a.t.Fatalf("code %q is not in the table", code)
	}
	if a.status != want.Status || p.Status != want.Status || p.Type != "/problems/"+code || p.Title != want.Title ||
		p.Retryable != want.Retryable || p.Outcome != want.Outcome || p.Detail == "" || p.Instance == "" ||
		p.RequestID == "" || p.RequestID != a.header.Get("X-Request-Id") {
		a.t.Fatalf("status %d, the problem is incomplete or not as in the table: %s", a.status, a.body)
	}
	if got := a.header.Get("Content-Type"); got != openapi.ProblemContentType {
		a.t.Fatalf("Content-Type %q", got)
	}
	if hasAfter := a.header.Get("Retry-After") != ""; hasAfter != (want.RetryAfter > 0) {
		a.t.Fatalf("Retry-After %q", a.header.Get("Retry-After"))
	}
	return p
}

// pointers lists where the problem points to.
func pointers(p openapi.Problem) []string {
	var out []string
	for _, e := range p.Errors {
		out = append(out, e.Pointer)
	}
	return out
}

// as decodes the body, which must have no members that T has not.
func as[T any](a *answer) T {
	a.t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return v
}

// logLines are the lines that a JSON handler has written.
type logLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) lines(t testing.TB) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []map[string]any
	for line := range bytes.Lines(l.buf.Bytes()) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// topic creates a topic with a partition and returns the partition's path.
func (e *env) topic(name string) string {
	e.t.Helper()
	e.json(http.MethodPut, "/topics/"+name, `{}`).is(http.StatusCreated)
	return "/topics/" + name + "/partitions/0"
}

// records reads everything of a partition.
func (e *env) records(partition string) openapi.RecordList {
	e.t.Helper()
	return as[openapi.RecordList](e.get(partition + "/records?limit=10000").is(http.StatusOK))
}
