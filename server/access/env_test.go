package access_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oncelog/oncelog/server/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is a Control over a file in a directory of its own, with a clock that moves when it
// is told to.
type env struct {
	*access.Control
	t     *testing.T
	file  access.File
	log   bytes.Buffer
	mu    sync.Mutex
	clock time.Time
}

func newEnv(t *testing.T, change ...func(*access.Options)) *env {
	t.Helper()
	e := newFile(t)
	e.start(change...)
	return e
}

// newFile is an env that has not been started.
func newFile(t *testing.T) *env {
	t.Helper()
	return &env{
		t: t, file: access.File{Path: filepath.Join(t.TempDir(), "data", access.FileName)},
		clock: time.Now().Truncate(time.Millisecond),
	}
}

func (e *env) start(change ...func(*access.Options)) {
	e.t.Helper()
	o := access.Options{File: e.file.Path, Logger: slog.New(slog.NewTextHandler(&e.log, nil)), Now: e.now}
	for _, f := range change {
		f(&o)
	}
	var err error
	if e.Control, err = access.New(o); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(e.Close)
}

func (e *env) now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clock
}

func (e *env) pass(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock = e.clock.Add(d)
}

// token makes a token and has it read, if the Control is running.
func (e *env) token(g access.Grant) string {
	e.t.Helper()
	token, _, err := e.file.CreateToken(g, e.now())
	if err != nil {
		e.t.Fatal(err)
	}
	e.reload()
	return token
}

func (e *env) reload() {
	e.t.Helper()
	if e.Control == nil {
		return
	}
	if err := e.Reload(); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) revoke(name string) {
	e.t.Helper()
	if _, err := e.file.Revoke(func(g access.Grant) bool { return g.Name == name }); err != nil {
		e.t.Fatal(err)
	}
	e.reload()
}

func request(headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/topics", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func bearer(token string) *http.Request { return request("Authorization", "Bearer "+token) }

// caller expects a request to be let in.
func (e *env) caller(r *http.Request) *access.Caller {
	e.t.Helper()
	c, err := e.Authenticate(r, true)
	if err != nil {
		e.t.Fatalf("refused: %v", err)
	}
	return c
}

// refused expects a request to be refused with a code.
func (e *env) refused(r *http.Request, code string) *access.Error {
	e.t.Helper()
	c, err := e.Authenticate(r, true)
	if err == nil {
		e.t.Fatalf("let in as %q", c.Name)
	}
	return isError(e.t, err, code)
}

func isError(t *testing.T, err error, code string) *access.Error {
	t.Helper()
	refusal, ok := errors.AsType[*access.Error](err)
	if !ok || refusal.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return refusal
}

func produce(name string, prefixes ...string) access.Grant {
	return access.Grant{Name: name, Scopes: []string{"produce"}, TopicPrefixes: prefixes}
}
