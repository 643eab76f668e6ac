package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store/memory"
)

// These tests run in a bubble where time passes as soon as all wait, so requests go to
// the handler without a network.

const samples = time.Second // the time between two events

// eventStream is a client of GET /events.
type eventStream struct {
	status int
	header http.Header
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	text     strings.Builder
	deadline time.Time
	stuck    bool // takes nothing any more
}

func (e *eventStream) Header() http.Header { return e.header }

func (e *eventStream) WriteHeader(status int) { e.status = status }

func (e *eventStream) Write(b []byte) (int, error) {
	e.mu.Lock()
	stuck, left := e.stuck, time.Until(e.deadline)
	if !stuck {
		e.text.Write(b)
	}
	e.mu.Unlock()
	if stuck {
		time.Sleep(left)
		return 0, os.ErrDeadlineExceeded
	}
	return len(b), nil
}

func (e *eventStream) SetWriteDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deadline = t
	return nil
}

func (e *eventStream) Flush() {}

// listen opens a stream, which ends with the test.
func listen(t *testing.T, h http.Handler, query string, headers ...string) *eventStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	e := &eventStream{header: http.Header{}, cancel: cancel, done: make(chan struct{})}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/events"+query, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	go func() {
		defer close(e.done)
		defer func() { // as net/http does
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // it is passed as it is
				panic(p)
			}
		}()
		h.ServeHTTP(e, r)
	}()
	t.Cleanup(e.close)
	synctest.Wait()
	return e
}

func (e *eventStream) close() {
	e.cancel()
	<-e.done
}

// told is an event that has come.
type told struct{ id, name, data string }

// take gives the events that have come since the last time.
func (e *eventStream) take(t *testing.T) []told {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []told
	for block := range strings.SplitSeq(e.text.String(), "\n\n") {
		var ev told
		for line := range strings.SplitSeq(block, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "id":
				ev.id = value
			case "event":
				ev.name = value
			case "data":
				ev.data = value
			case "retry", "":
			default:
				t.Fatalf("line %q", line)
			}
		}
		if ev.data != "" {
			out = append(out, ev)
		}
	}
	e.text.Reset()
	return out
}

// samples gives the events without a name that have come.
func (e *eventStream) samples(t *testing.T) (ids []string, events []openapi.ServerEvent) {
	t.Helper()
	for _, ev := range e.take(t) {
		if ev.name != "" {
			continue
		}
		ids = append(ids, ev.id)
		events = append(events, decode[openapi.ServerEvent](t, ev.data))
	}
	return ids, events
}

func decode[T any](t *testing.T, data string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// bubble runs a test with a server over a store.
func bubble(t *testing.T, f func(t *testing.T, s *server.Server, st *memory.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		st := memory.Open(memory.Options{})
		s.Serve(st)
		defer s.Drain()
		time.Sleep(samples / 2) // so that nothing happens at the very time of an event
		if w := send(s, http.MethodPut, "/topics/t", `{"partitions":2}`); w.Code != http.StatusCreated {
			t.Fatal(w.Body)
		}
		f(t, s, st)
	})
}

func send(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Prefer", "wait=0")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// appendTo appends n records and expects a status.
func appendTo(t *testing.T, h http.Handler, partition int, pid, epoch, base int64, n, status int) {
	t.Helper()
	w := send(h, http.MethodPost, fmt.Sprintf("/topics/t/partitions/%d/batches", partition),
		fmt.Sprintf(`{"pid":%d,"epoch":%d,"baseSeq":%d,"records":[%s]}`, pid, epoch, base, records(n)))
	if w.Code != status {
		t.Fatalf("append: %d %s", w.Code, w.Body)
	}
}

func newPID(t *testing.T, h http.Handler) int64 {
	t.Helper()
	return decode[openapi.ProducerID](t, send(h, http.MethodPost, "/producers", "").Body.String()).PID
}

func TestEventsEachSecond(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, _ *memory.Store) {
		e := listen(t, s, "?history=0")
		if e.status != http.StatusOK || e.header.Get("Content-Type") != "text/event-stream" || e.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("status %d, %v", e.status, e.header)
		}
		pid := newPID(t, s)
		appendTo(t, s, 0, pid, 0, 0, 3, http.StatusOK)
		appendTo(t, s, 0, pid, 0, 0, 3, http.StatusOK)
		appendTo(t, s, 0, pid, 0, 9, 1, http.StatusConflict)
		time.Sleep(time.Second)
		appendTo(t, s, 0, pid, 0, 3, 1, http.StatusOK)
		time.Sleep(9 * time.Second)
		ids, events := e.samples(t)
		if len(events) != 10 {
			t.Fatalf("%d events in 10 s", len(events))
		}
		first, last := events[0], events[9]
		if first.Totals.Appends != 1 || first.Totals.Records != 3 || first.Totals.Duplicates != 1 || first.Totals.PassingGaps != 1 ||
			first.PerSecond.Appends != 1 || first.PerSecond.Records != 3 || first.IntervalMs != 1000 || first.Streams != 1 {
			t.Errorf("first event %+v", first)
		}
		if n := len(first.Incidents); n != 2 || first.Incidents[0].Outcome != "duplicate" || first.Incidents[1].Code != "out-of-order-sequence" ||
			*first.Incidents[1].ExpectedSeq != 3 || first.Incidents[1].BaseSeq != 9 || first.Incidents[1].PID != pid {
			t.Errorf("incidents of the first event: %+v", first.Incidents)
		}
		if last.Totals.Appends != 2 || last.PerSecond.Appends != 0 || len(last.Incidents) != 0 || last.Instance != first.Instance || last.StartedAt != first.StartedAt {
			t.Errorf("last event %+v", last)
		}
		for i, id := range ids {
			if want := fmt.Sprintf("%s-%d", first.Instance, i+2); id != want { // the first was taken at the start
				t.Errorf("id %q, want %q", id, want)
			}
		}
	})
}

// TestEventsTellTheWorst: in a flood of duplicates, what was refused is not lost.
func TestEventsTellTheWorst(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, _ *memory.Store) {
		e := listen(t, s, "?history=0")
		pid := newPID(t, s)
		appendTo(t, s, 0, pid, 1, 0, 1, http.StatusOK)
		appendTo(t, s, 0, pid, 0, 0, 1, http.StatusConflict)
		for range 50 {
			appendTo(t, s, 0, pid, 1, 0, 1, http.StatusOK)
		}
		time.Sleep(time.Second)
		_, events := e.samples(t)
		told := events[0].Incidents
		if len(told) != 8 || told[0].Code != "producer-fenced" || told[7].Outcome != "duplicate" {
			t.Errorf("told: %+v", told)
		}
	})
}

// TestEventsResume: a client gets what it has missed, once, if it is still known.
func TestEventsResume(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, _ *memory.Store) {
		e := listen(t, s, "")
		time.Sleep(20 * time.Second)
		ids, _ := e.samples(t)
		e.close()
		time.Sleep(30 * time.Second)
		again := listen(t, s, "?history=5", "Last-Event-ID: "+ids[len(ids)-1])
		missed, events := again.samples(t)
		if len(missed) != 30 || missed[0] == ids[len(ids)-1] {
			t.Fatalf("%d events after %s: %v", len(missed), ids[len(ids)-1], missed)
		}
		for i := range events[1:] {
			if d := instant(events[i+1].At).Sub(instant(events[i].At)); d != time.Second {
				t.Errorf("%v between two events", d)
			}
		}
		for id, want := range map[string]int{
			"0123456789abcdef-3": 5, "x": 5, "": 5, strings.Split(ids[0], "-")[0] + "-999": 5, ids[0] + "x": 5, ids[0]: 50,
		} {
			o := listen(t, s, "?history=5", "Last-Event-ID: "+id)
			if got, _ := o.samples(t); len(got) != want {
				t.Errorf("Last-Event-ID %q: %d events, want %d", id, len(got), want)
			}
			o.close()
		}
		time.Sleep(time.Hour)
		o := listen(t, s, "", "Last-Event-ID: "+ids[0])
		if got, _ := o.samples(t); len(got) != 300 {
			t.Errorf("%d events after an hour", len(got))
		}
	})
}

func TestEventsSlowReaderIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, _ *memory.Store) {
		e, other := listen(t, s, "?history=0"), listen(t, s, "?history=0")
		e.mu.Lock()
		e.stuck = true
		e.mu.Unlock()
		time.Sleep(60 * time.Second)
		select {
		case <-e.done:
		default:
			t.Fatal("the stream still waits for its reader")
		}
		_, events := other.samples(t)
		if n := len(events); n != 60 || events[n-1].Streams != 1 {
			t.Errorf("%d events to the other stream, the last one %+v", n, events[n-1])
		}
	})
}

func TestEventsEndWithTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, _ *memory.Store) {
		e := listen(t, s, "?history=0")
		s.Drain()
		<-e.done
		_, events := e.samples(t)
		if n := len(events); n != 1 || events[0].Diagnosis.Findings[0].Code != "draining" {
			t.Errorf("last words: %+v", events)
		}
		if w := send(s, http.MethodGet, "/events", ""); w.Code != http.StatusServiceUnavailable {
			t.Errorf("after that: %d", w.Code)
		}
	})
}

func TestEventsBeforeTheStoreIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Drain()
		e := listen(t, s, "")
		time.Sleep(samples / 2)
		s.Serve(memory.Open(memory.Options{}))
		time.Sleep(samples)
		_, events := e.samples(t)
		if n := len(events); n != 2 || events[0].Diagnosis.Findings[0].Code != "not-ready" || events[1].Diagnosis.Level != "ok" {
			t.Errorf("events: %+v", events)
		}
	})
}

func TestEventsRefuse(t *testing.T) {
	e := newEnv(t)
	e.topic("t")
	for query, pointer := range map[string]string{
		"history=301": "/history", "history=x": "/history", "topic=t": "/partition", "partition=0": "/partition", "topic=t&partition=1024": "/partition",
		"pid=x": "/pid", "topic=t&partition=0&pid=1": "/pid", "topic=a%2Fb&partition=0": "/topic", "x=1": "/x",
	} {
		if got := pointers(e.get("/events?" + query).is(http.StatusBadRequest).problem("malformed-request")); got[0] != pointer {
			t.Errorf("%s: %v, want %s", query, got, pointer)
		}
	}
}

// TestEventsOfAPartition: what is looked at is told when it changes, within a second.
func TestEventsOfAPartition(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, _ *memory.Store) {
		e := listen(t, s, "?history=0&topic=t&partition=1")
		views := func() (out []openapi.PartitionEvent) {
			time.Sleep(time.Second)
			for _, ev := range e.take(t) {
				if ev.name == "partition" {
					out = append(out, decode[openapi.PartitionEvent](t, ev.data))
				}
			}
			return out
		}
		if got := views(); len(got) != 1 || got[0].Topic != "t" || got[0].Partition != 1 || got[0].NextOffset != 0 || len(got[0].Lines) != 0 {
			t.Fatalf("at first: %+v", got)
		}
		if got := views(); len(got) != 0 {
			t.Errorf("nothing has changed: %+v", got)
		}
		pid := newPID(t, s)
		appendTo(t, s, 1, pid, 0, 0, 3, http.StatusOK)
		appendTo(t, s, 1, pid, 0, 0, 3, http.StatusOK)
		appendTo(t, s, 1, pid, 0, 5, 1, http.StatusConflict)
		appendTo(t, s, 0, pid, 0, 7, 1, http.StatusConflict) // elsewhere
		got := views()
		if len(got) != 1 || got[0].NextOffset != 3 || got[0].Producers != 1 || got[0].Segments != 1 || len(got[0].Lines) != 1 {
			t.Fatalf("after appends: %+v", got)
		}
		line := got[0].Lines[0]
		if line.PID != pid || line.LastSeq != 2 || len(line.Recent) != 1 || line.Counters.Duplicate != 1 || len(line.Incidents) != 2 ||
			line.Incidents[0].Code != "out-of-order-sequence" || line.Incidents[1].Outcome != "duplicate" || *line.Incidents[1].Offset != 0 {
			t.Errorf("line: %+v", line)
		}
		if w := send(s, http.MethodDelete, "/topics/t", ""); w.Code != http.StatusNoContent {
			t.Fatal(w.Body)
		}
		if got := views(); len(got) != 0 {
			t.Errorf("of a topic that is gone: %+v", got)
		}
	})
}

// TestEventsOfABusyPartition: of many producers those that wrote last are shown, and they
// stay while they are among the latest.
func TestEventsOfABusyPartition(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, _ *memory.Store) {
		var pids []int64
		for range 200 {
			pids = append(pids, newPID(t, s))
		}
		refused := newPID(t, s)
		appendTo(t, s, 0, refused, 1, 0, 1, http.StatusOK)
		appendTo(t, s, 0, refused, 0, 0, 1, http.StatusConflict)
		for _, pid := range pids {
			appendTo(t, s, 0, pid, 0, 0, 1, http.StatusOK)
		}
		e := listen(t, s, "?history=0&topic=t&partition=0")
		shown := func() (out []int64) {
			time.Sleep(time.Second)
			for _, ev := range e.take(t) {
				if ev.name != "partition" {
					continue
				}
				out = nil
				for _, l := range decode[openapi.PartitionEvent](t, ev.data).Lines {
					out = append(out, l.PID)
				}
			}
			return out
		}
		want := fmt.Sprint(append(append([]int64{}, pids[188:]...), refused))
		if got := fmt.Sprint(shown()); got != want {
			t.Fatalf("shown: %v, want %v", got, want)
		}
		for _, pid := range pids[:40] {
			appendTo(t, s, 0, pid, 0, 1, 1, http.StatusOK)
		}
		if got := fmt.Sprint(shown()); got != want {
			t.Errorf("after appends of others: %v, want %v", got, want)
		}
		for _, pid := range pids[:80] {
			appendTo(t, s, 0, pid, 0, 2, 1, []int{http.StatusOK, http.StatusConflict}[min(1, pid/40)])
		}
		_ = shown()
	})
}

func TestEventsOfAProducer(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server, _ *memory.Store) {
		pid := newPID(t, s)
		e := listen(t, s, fmt.Sprintf("?history=0&pid=%d", pid))
		appendTo(t, s, 1, pid, 3, 0, 1, http.StatusOK)
		appendTo(t, s, 0, pid, 4, 0, 1, http.StatusOK)
		appendTo(t, s, 0, pid, 3, 1, 1, http.StatusConflict)
		time.Sleep(time.Second)
		var last openapi.ProducerEvent
		for _, ev := range e.take(t) {
			if ev.name == "producer" {
				last = decode[openapi.ProducerEvent](t, ev.data)
			}
		}
		if last.PID != pid || last.Partitions != 2 || len(last.Lines) != 2 || last.Lines[0].Partition != 0 || len(last.Lines[0].Incidents) != 1 ||
			len(last.Lines[1].Incidents) != 0 || len(last.Rejected) != 1 || last.Rejected[0].Code != "producer-fenced" || *last.Rejected[0].CurrentEpoch != 4 {
			t.Errorf("producer: %+v", last)
		}
	})
}
