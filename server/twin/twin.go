// Package twin holds a server to the executable model, through HTTP alone: it sends the same
// requests, drawn at random, to the server under test and to one of the same package over
// store/memory, restarts both, and expects the same answers to the byte, but for what may
// differ: ids of requests and topics, and words meant for people.
//
// It is for tests. The server under test may run in the same process, with a clock that the
// test turns, or be a process of its own that is killed.
package twin

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store/memory" //nolint:depguard // the model; nothing but tests has this package
	"github.com/oncelog/oncelog/store/storetest"
)

// Subject is the server under test. It must be empty at first, and must not hold batches
// for their predecessors.
type Subject struct {
	// Send sends a request and gives the answer, with its body read.
	Send func(r *http.Request) (*http.Response, error)
	// Restart ends the server, with kill as SIGKILL or loss of power would, and starts it
	// again on the same data.
	Restart func(kill bool)
	// Sweep applies retention now, which must not happen at any other time. Nil: it cannot
	// be made to, and so retention and expiry by time are left out.
	Sweep func()
	// End ends the server, of which nothing more will be asked.
	End func()
	// Clock is where the server takes its time from. Nil: it has its own, and times are not
	// compared.
	Clock *storetest.Clock
}

// Handler makes a [Subject.Send] of a handler that is given anew for each request.
func Handler(handler func() http.Handler) func(r *http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		handler().ServeHTTP(w, r)
		return w.Result(), nil
	}
}

// Check sends requests drawn by rapid to what open gives, anew for each run, and to the
// model. There are so many runs, but at most what rapid's flags say.
func Check(t *testing.T, runs int, open func() Subject) {
	t.Helper()
	counts, failed := map[string]int{}, false
	rapid.Check(t, func(rt *rapid.T) {
		if counts["runs"] >= runs && !failed { // a failed run is tried again, to make it smaller
			return
		}
		counts["runs"]++
		ended := false
		defer func() { failed = failed || !ended }()
		s := open()
		defer s.End()
		m := newMachine(rt, s, counts)
		for range 3 {
			rt.Repeat(m.actions())
			m.restart(rt)
			m.invariants(rt)
		}
		ended = true
	})
	t.Logf("requests by kind and outcome: %v", counts)
}

// model is the server over store/memory.
type model struct {
	store   *memory.Store
	handler http.Handler
}

func newModel(rt *rapid.T, st *memory.Store) *model {
	s, err := server.New(server.Options{})
	if err != nil {
		rt.Fatalf("the model: %v", err)
	}
	s.Serve(st)
	return &model{store: st, handler: s}
}

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func read(resp *http.Response) (answer, error) {
	body, err := io.ReadAll(resp.Body)
	if err := resp.Body.Close(); err != nil {
		return answer{}, err
	}
	return answer{resp.StatusCode, resp.Header, body}, err
}

// call is a request, as often as it is sent.
type call struct {
	kind, method, path string
	header             http.Header
	body               []byte
}

func (c *call) request(rt *rapid.T) *http.Request {
	r, err := http.NewRequest(c.method, "http://127.0.0.1:8080"+c.path, bytes.NewReader(c.body)) //nolint:noctx // the test's own
	if err != nil {
		rt.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	if c.header != nil {
		r.Header = c.header.Clone()
	}
	r.RemoteAddr = "127.0.0.1:1"
	return r
}
