package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
)

// fill appends n records with the values 0 … n−1 in batches of the size.
func fill(e *env, p string, n, size int) {
	e.t.Helper()
	for i := 0; i < n; i += size {
		var records []string
		for j := i; j < min(i+size, n); j++ {
			records = append(records, fmt.Sprintf(`{"value":%d}`, j))
		}
		e.json("POST", p+"/batches", `{"records":[`+strings.Join(records, ",")+`]}`).is(200)
	}
}

// values are the offsets and values of a list, which must agree.
func values(t testing.TB, list openapi.RecordList) (from, to int64) {
	t.Helper()
	if len(list.Records) == 0 {
		return list.NextOffset, list.NextOffset
	}
	for i, r := range list.Records {
		if string(r.Value) != fmt.Sprint(r.Offset) || r.Offset != list.Records[0].Offset+int64(i) {
			t.Errorf("record %d at offset %d holds %s", i, r.Offset, r.Value)
		}
	}
	return list.Records[0].Offset, list.Records[len(list.Records)-1].Offset + 1
}

func TestReadPositionsAndLimits(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	fill(e, p, 20, 7)
	e.do("DELETE", p+"/records?before=3", "").is(200)
	for _, c := range []struct {
		query    string
		from, to int64
	}{
		{"", 3, 20},
		{"?offset=earliest&limit=2", 3, 5},
		{"?offset=latest", 20, 20},
		{"?offset=20", 20, 20},
		{"?offset=-1", 19, 20},
		{"?offset=-17&limit=1", 3, 4},
		{"?offset=-9007199254740991", 3, 20},
		{"?offset=5&limit=1", 5, 6},
		{"?offset=6&limit=9", 6, 15},
		{"?offset=5&limit=10000", 5, 20},
		{"?offset=12&maxBytes=1", 12, 13}, // values of two bytes: one record all the same
		{"?offset=12&maxBytes=4", 12, 14},
		{"?offset=8&maxBytes=3", 8, 10},
	} {
		a := e.get(p + "/records" + c.query).is(200)
		list := as[openapi.RecordList](a)
		from, to := values(t, list)
		if from != c.from || to != c.to || list.NextOffset != c.to || list.HighWatermark != 20 || list.EarliestOffset != 3 {
			t.Errorf("%q: records %d to %d, next %d, high watermark %d, earliest %d; want %d to %d",
				c.query, from, to, list.NextOffset, list.HighWatermark, list.EarliestOffset, c.from, c.to)
		}
		if a.header.Get("Next-Offset") != fmt.Sprint(c.to) || a.header.Get("High-Watermark") != "20" || a.header.Get("Earliest-Offset") != "3" {
			t.Errorf("%q: headers %v", c.query, a.header)
		}
	}
	if got := e.get(p + "/records?offset=2").problem("records-trimmed"); *got.EarliestOffset != 3 {
		t.Errorf("%+v", got)
	}
	if got := e.get(p + "/records?offset=21").problem("offset-out-of-range"); *got.NextOffset != 20 {
		t.Errorf("%+v", got)
	}
}

func TestReadCaching(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	fill(e, p, 10, 5)
	below := e.get(p + "/records?offset=2&limit=3").is(200)
	tag := below.header.Get("Etag")
	if cc := below.header.Get("Cache-Control"); !strings.HasPrefix(tag, `"`) || cc != "private, immutable" || below.header.Get("Vary") != "Accept" {
		t.Fatalf("ETag %q, Cache-Control %q, Vary %q", tag, cc, below.header.Get("Vary"))
	}
	for _, query := range []string{"?offset=2", "?offset=10", "?limit=10"} {
		a := e.get(p + "/records" + query).is(200)
		if a.header.Get("Etag") != "" || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s touches the end: ETag %q, Cache-Control %q", query, a.header.Get("Etag"), a.header.Get("Cache-Control"))
		}
	}
	if a := e.get(p+"/records?offset=2&limit=3", "If-None-Match: "+tag); a.status != 304 || len(a.body) > 0 || a.header.Get("Etag") != tag {
		t.Errorf("status %d, body %q", a.status, a.body)
	}
	e.get(p+"/records?offset=2&limit=3", `If-None-Match: "x", W/`+tag).is(304)
	fill(e, p, 10, 10)
	e.get(p+"/records?offset=2&limit=3", "If-None-Match: "+tag).is(304)
	for what, other := range map[string]*answer{
		"other records": e.get(p+"/records?offset=2&limit=4", "If-None-Match: "+tag),
		"base64":        e.get(p+"/records?offset=2&limit=3&values=base64", "If-None-Match: "+tag),
		"NDJSON":        e.get(p+"/records?offset=2&limit=3", "If-None-Match: "+tag, "Accept: application/x-ndjson"),
	} {
		if other.is(200).header.Get("Etag") == tag {
			t.Errorf("%s have the same tag", what)
		}
	}
	e.do("DELETE", "/topics/t", "").is(204)
	fill(e, e.topic("t"), 10, 5)
	e.get(p+"/records?offset=2&limit=3", "If-None-Match: "+tag).is(200)
}

func TestReadNegotiation(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	fill(e, p, 3, 3)
	for accept, want := range map[string]string{
		"":              "application/json",
		"*/*":           "application/json",
		"application/*": "application/json",
		"application/json;q=0.5, application/x-ndjson": "application/x-ndjson",
		"text/html, */*;q=0.1":                         "application/json",
		"application/json;q=0, */*":                    "application/x-ndjson",
		"application/x-ndjson":                         "application/x-ndjson",
	} {
		headers := []string{}
		if accept != "" {
			headers = append(headers, "Accept: "+accept)
		}
		if got := e.get(p+"/records", headers...).is(200).header.Get("Content-Type"); got != want {
			t.Errorf("Accept %q: %q, want %q", accept, got, want)
		}
	}
	for _, accept := range []string{"text/html", "application/json;q=0", "image/*", "application/json;q=2"} {
		e.get(p+"/records", "Accept: "+accept).problem("not-acceptable")
	}
}

func TestReadNDJSON(t *testing.T) {
	e := newEnv(t).unchecked() // for time
	p := e.topic("t")
	fill(e, p, 5000, 1000)
	a := e.get(p+"/records?offset=10&limit=4000", "Accept: application/x-ndjson").is(200)
	offset := int64(10)
	for line := range strings.Lines(string(a.body)) {
		var r openapi.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Offset != offset || string(r.Value) != fmt.Sprint(offset) {
			t.Fatalf("offset %d: %v %s", offset, err, line)
		}
		offset++
	}
	if offset != 4010 {
		t.Errorf("ended at %d", offset)
	}
}

func TestHead(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	fill(e, p, 3, 3)
	for _, path := range []string{p + "/records", p, "/topics/t", "/limits", "/problems"} {
		if a := e.do("HEAD", path, ""); a.status != 200 || len(a.body) > 0 {
			t.Errorf("%s: status %d, %d bytes", path, a.status, len(a.body))
		}
	}
	if a := e.do("HEAD", "/topics/none", ""); a.status != 404 || len(a.body) > 0 {
		t.Errorf("status %d, %q", a.status, a.body)
	}
}

func TestLongPoll(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	if a := e.get(p + "/records?waitMs=1").is(200); len(as[openapi.RecordList](a).Records) != 0 || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("after a wait in vain: %s", a.body)
	}
	done := make(chan *answer, 1)
	waiting := e.waiting()
	go func() { done <- e.get(p + "/records?offset=latest&waitMs=60000") }()
	waiting(1)
	fill(e, p, 1, 1)
	if from, to := values(t, as[openapi.RecordList]((<-done).is(200))); from != 0 || to != 1 {
		t.Errorf("records %d to %d", from, to)
	}
	waiting = e.waiting()
	go func() { done <- e.get(p + "/records?offset=latest&waitMs=60000") }()
	waiting(1)
	e.do("DELETE", "/topics/t", "").is(204)
	(<-done).problem("unknown-topic")

	e.topic("t")
	waiting = e.waiting()
	go func() { done <- e.get(p + "/records?waitMs=60000") }()
	waiting(1)
	e.server.Drain()
	if list := as[openapi.RecordList]((<-done).is(200)); len(list.Records) != 0 {
		t.Errorf("%+v", list)
	}
}

// waiting returns a function that waits until so many requests have called Store.Wait.
func (e *env) waiting() func(n int) {
	w := &waitSpy{Store: e.store, called: make(chan struct{}, 100)}
	e.server.Serve(w)
	return func(n int) {
		for range n {
			select {
			case <-w.called:
			case <-e.t.Context().Done():
			}
		}
	}
}

// event is one of an event stream; a comment has no id.
type event struct{ id, data, comment string }

// follow opens an event stream.
func (e *env) follow(ctx context.Context, path string, headers ...string) (next func() (event, error), resp *http.Response) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", e.url+path, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err = e.client.Do(req)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewReader(resp.Body)
	return func() (ev event, err error) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return ev, err
			}
			switch field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); field {
			case "id":
				ev.id = value
			case "data":
				ev.data = value
			case "":
				if value == "" {
					return ev, nil
				}
				ev.comment = value
			}
		}
	}, resp
}

// record skips comments.
func record(t testing.TB, next func() (event, error)) event {
	t.Helper()
	for {
		ev, err := next()
		if err != nil {
			t.Fatal(err)
		}
		if ev.id != "" {
			return ev
		}
	}
}

func TestEventStream(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	fill(e, p, 3, 3)
	ctx, cancel := context.WithCancel(t.Context())
	next, resp := e.follow(ctx, p+"/records?offset=1")
	if ct, cc := resp.Header.Get("Content-Type"), resp.Header.Get("Cache-Control"); ct != "text/event-stream" || cc != "no-store" {
		t.Errorf("Content-Type %q, Cache-Control %q", ct, cc)
	}
	for want := 1; want < 10; want++ {
		if want == 3 {
			e.json("POST", p+"/batches", `{"records":[{"value":3},{"value":4}]}`).is(200)
		}
		if want == 5 {
			e.json("POST", p+"/batches", `{"records":[{"value":5},{"value":6},{"value":7},{"value":8},{"value":9}]}`).is(200)
		}
		ev := record(t, next)
		var r openapi.Record
		if err := json.Unmarshal([]byte(ev.data), &r); err != nil {
			t.Fatal(err)
		}
		if ev.id != fmt.Sprint(want) || r.Offset != int64(want) || string(r.Value) != ev.id {
			t.Errorf("event %+v, want offset %d", ev, want)
		}
	}
	cancel()
	if _, err := next(); err == nil {
		t.Error("the stream goes on")
	}

	next, _ = e.follow(t.Context(), p+"/records?offset=0", "Last-Event-ID: 7")
	if ev := record(t, next); ev.id != "8" {
		t.Errorf("resumed at %s behind 7", ev.id)
	}
	e.get(p+"/records", "Accept: text/event-stream", "Last-Event-ID: x").problem(malformed)
	e.get(p+"/records", "Accept: text/event-stream", "Last-Event-ID: 10").problem("offset-out-of-range")
	e.get("/topics/u/partitions/0/records", "Accept: text/event-stream").problem("unknown-topic")
}

func TestEventStreamHeartbeat(t *testing.T) {
	e := newEnv(t, func(o *server.Options) { o.Heartbeat = time.Millisecond })
	next, _ := e.follow(t.Context(), e.topic("t")+"/records?offset=latest")
	for range 3 {
		if ev, err := next(); err != nil || ev.comment == "" {
			t.Fatalf("%+v, %v", ev, err)
		}
	}
}

func TestEventStreamEnds(t *testing.T) {
	for name, end := range map[string]func(e *env){
		"drain":  func(e *env) { e.server.Drain() },
		"delete": func(e *env) { e.do("DELETE", "/topics/t", "").is(204) },
		"recreate": func(e *env) {
			e.do("DELETE", "/topics/t", "").is(204)
			fill(e, e.topic("t"), 5, 5)
		},
		"close": func(e *env) {
			if err := e.store.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			p := e.topic("t")
			fill(e, p, 1, 1)
			next, _ := e.follow(t.Context(), p+"/records")
			if ev := record(t, next); ev.id != "0" {
				t.Fatalf("%+v", ev)
			}
			end(e)
			for {
				ev, err := next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil || ev.id != "" {
					t.Fatalf("%+v, %v", ev, err)
				}
			}
		})
	}
}
