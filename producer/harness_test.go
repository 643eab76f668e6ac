package producer_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

func TestMain(m *testing.M) {
	if raceDetector {
		// A storm takes five times as long then. What the command line says comes later,
		// and counts.
		if err := flag.Set("rapid.checks", "30"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// request is one that a producer has made, as the network saw it.
type request struct {
	Op        string // append, ask, allocate, topic
	Topic     string
	Partition int
	PID       int64
	Epoch     int64
	BaseSeq   int64
	Try       int // 1 for the first with the same members above
	Body      []byte
	At        time.Time
	// Answer is the status that the producer saw, 0 for a lost answer.
	Answer int
}

// fate is what the network does to a request. The zero value delivers it.
type fate struct {
	lose       bool          // the request never arrives
	loseAnswer bool          // it arrives, its answer does not
	double     bool          // it arrives twice, one after the other; the second answer counts
	delay      time.Duration // it arrives so much later
	late       time.Duration // its answer arrives so much later
	swap       bool          // it gets the last answer that went to another request
	status     int           // answered by a proxy, in HTML, without arriving
	statusLate int           // answered by a proxy, in HTML, after arriving
	code       producer.Code // answered with this problem, without arriving
	limit      int64         // of that problem
	retryAfter string        // header of such answers
	then       func()        // called when it has been dealt with
}

var errReset = errors.New("connection reset by peer")

// network is the way from a producer to a server in the same process: an
// http.RoundTripper without sockets, so that it works under virtual time.
type network struct {
	mu       sync.Mutex
	handler  http.Handler
	rule     func(request) fate
	requests []request
	tries    map[string]int
	last     *httptest.ResponseRecorder
}

func (n *network) serve(h http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handler = h
}

func (n *network) decide(rule func(request) fate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rule = rule
}

// RoundTrip lets a request take its way. Requests that set out at the same moment
// arrive in the order of their sequences, a millisecond apart.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	at, x, f := n.note(r, body)
	res, err := n.fly(r, body, x, f)
	n.mu.Lock()
	if res != nil {
		n.requests[at].Answer = res.StatusCode
	}
	n.mu.Unlock()
	if f.then != nil {
		f.then()
	}
	return res, err
}

func (n *network) note(r *http.Request, body []byte) (int, request, fate) {
	x := parseRequest(r)
	x.Body, x.At = body, time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	key := fmt.Sprint(x.Op, x.Topic, x.Partition, x.PID, x.Epoch, x.BaseSeq)
	n.tries[key]++
	x.Try = n.tries[key]
	n.requests = append(n.requests, x)
	var f fate
	if n.rule != nil {
		f = n.rule(x)
	}
	return len(n.requests) - 1, x, f
}

func (n *network) fly(r *http.Request, body []byte, x request, f fate) (*http.Response, error) {
	if !pause(r.Context(), f.delay+time.Duration(1+x.BaseSeq%64)*time.Millisecond) {
		if f.delay > 0 { // it is on its way all the same
			go n.arriveLater(r, body, f.delay)
		}
		return nil, r.Context().Err()
	}
	switch {
	case f.lose:
		return nil, errReset
	case f.status != 0:
		return page(f.status, f.retryAfter), nil
	case f.code != "":
		return problemAnswer(f), nil
	}
	if f.swap {
		n.mu.Lock()
		defer n.mu.Unlock()
		again := httptest.NewRecorder()
		again.Header().Set("Content-Type", "application/json")
		_, _ = again.Write(n.last.Body.Bytes())
		return again.Result(), nil
	}
	res := n.arrive(r, body)
	if f.double {
		res = n.arrive(r, body)
	}
	if !pause(r.Context(), f.late) {
		return nil, r.Context().Err()
	}
	switch {
	case f.loseAnswer:
		return nil, errReset
	case f.statusLate != 0:
		return page(f.statusLate, f.retryAfter), nil
	}
	return res, nil
}

func (n *network) arriveLater(r *http.Request, body []byte, d time.Duration) {
	time.Sleep(d)
	n.arrive(r, body)
}

func (n *network) arrive(r *http.Request, body []byte) *http.Response {
	n.mu.Lock()
	h := n.handler
	n.mu.Unlock()
	in := httptest.NewRequest(r.Method, r.URL.RequestURI(), bytes.NewReader(body))
	in.Header = r.Header.Clone()
	out := httptest.NewRecorder()
	h.ServeHTTP(out, in)
	n.mu.Lock()
	n.last = out
	n.mu.Unlock()
	res := out.Result()
	res.Request = r
	return res
}

// pause waits for d unless ctx ends, which it reports by false.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func page(status int, retryAfter string) *http.Response {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "text/html")
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "<h1>%d</h1>", status)
	return w.Result()
}

func problemAnswer(f fate) *http.Response {
	t, ok := openapi.LookupProblemType(string(f.code))
	if !ok {
		panic("no problem " + f.code)
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", openapi.ProblemContentType)
	if f.retryAfter != "" {
		w.Header().Set("Retry-After", f.retryAfter)
	}
	w.WriteHeader(t.Status)
	limit := ""
	if f.limit > 0 {
		limit = fmt.Sprintf(`,"limit":%d,"actual":%d`, f.limit, f.limit+1)
	}
	fmt.Fprintf(w, `{"type":%q,"title":"t","status":%d,"detail":"d","instance":"/","code":%q,"retryable":%t,"outcome":%q,"requestId":"r"%s}`,
		t.Path(), t.Status, t.Code, t.Retryable, t.Outcome, limit)
	return w.Result()
}

func parseRequest(r *http.Request) request {
	var x request
	s := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	num := func(v string) int64 { n, _ := strconv.ParseInt(v, 10, 64); return n }
	switch {
	case s[0] == "producers":
		x.Op = "allocate"
	case len(s) == 2:
		x.Op, x.Topic = "topic", s[1]
	case len(s) > 4:
		x.Op, x.Topic, x.Partition = "append", s[1], int(num(s[3]))
		if s[4] == "producers" {
			x.Op, x.PID = "ask", num(s[5])
		}
	}
	if x.Op == "append" {
		x.PID, x.Epoch, x.BaseSeq = num(q.Get("pid")), num(q.Get("epoch")), num(q.Get("baseSeq"))
	}
	return x
}
