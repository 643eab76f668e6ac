package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/memory"
)

// countingStore acknowledges appends without storing them, so that only the server is
// measured.
type countingStore struct{ store.Store }

func newCountingStore(t testing.TB) *countingStore {
	t.Helper()
	st := memory.Open(memory.Options{})
	if _, err := st.CreateTopic(context.Background(), "t", 1, store.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	return &countingStore{st}
}

func (s *countingStore) Append(_ context.Context, a store.Append) (store.Ack, error) {
	return store.Ack{LastOffset: int64(a.Batch.Count) - 1, NextSeq: int64(a.Batch.Count), AppendedAt: time.UnixMilli(1767323045678)}, nil
}

// benchBodies are 100 records of 200 bytes in each form, and one raw record of 1 KiB.
func benchBodies() map[string]struct {
	media, query string
	body         []byte
} {
	const n = 100
	value := strings.Repeat("v", 200)
	var records []string
	var b batch.Builder
	for range n {
		records = append(records, `{"valueText":"`+value+`"}`)
		b.Add(&batch.Record{Value: []byte(value), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
	}
	const query = "pid=0&epoch=0&baseSeq=0"
	type form = struct {
		media, query string
		body         []byte
	}
	return map[string]form{
		"json100":   {"application/json", "", fmt.Appendf(nil, `{"pid":0,"epoch":0,"baseSeq":0,"records":[%s]}`, strings.Join(records, ","))},
		"ndjson100": {"application/x-ndjson", query, []byte(strings.Join(records, "\n"))},
		"binary100": {batch.ContentType, query, b.Build().Bytes},
		"raw1KiB":   {"application/octet-stream", query, bytes.Repeat([]byte("v"), 1<<10)},
	}
}

// discardWriter is a response writer that keeps nothing.
type discardWriter struct {
	header http.Header
	status int
}

func (w *discardWriter) Header() http.Header         { return w.header }
func (w *discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *discardWriter) WriteHeader(status int)      { w.status = status }

func BenchmarkDecodeAppend(b *testing.B) {
	s := newServer(b)
	for name, form := range benchBodies() {
		b.Run(name, func(b *testing.B) {
			r := appendRequest(form.media, nil)
			r.URL.RawQuery = form.query
			body := bytes.NewReader(form.body)
			r.Body, r.ContentLength = io.NopCloser(body), int64(len(form.body))
			b.ReportAllocs()
			b.SetBytes(int64(len(form.body)))
			for b.Loop() {
				body.Reset(form.body)
				if _, err := s.DecodeAppend(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAppendHandler is the whole way through the router, without the network.
func BenchmarkAppendHandler(b *testing.B) {
	s := newServer(b)
	s.Serve(newCountingStore(b))
	for name, form := range benchBodies() {
		b.Run(name, func(b *testing.B) {
			r := appendRequest(form.media, nil)
			r.URL.RawQuery = form.query
			body := bytes.NewReader(form.body)
			r.Body, r.ContentLength = io.NopCloser(body), int64(len(form.body))
			w := &discardWriter{header: http.Header{}}
			b.ReportAllocs()
			b.SetBytes(int64(len(form.body)))
			for b.Loop() {
				body.Reset(form.body)
				clear(w.header)
				s.ServeHTTP(w, r)
				if w.status != http.StatusOK {
					b.Fatalf("status %d", w.status)
				}
			}
		})
	}
}

// TestAppendAllocations keeps the hot path from growing: the numbers are those measured,
// rounded up. A record in a JSON batch costs none, nor does a client's trace while no line
// is written and nobody collects spans.
func TestAppendAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector empties pools at random")
	}
	s := newServer(t)
	s.Serve(newCountingStore(t))
	limits := map[string]float64{"json100": 16, "ndjson100": 17, "binary100": 18, "raw1KiB": 18}
	for name, form := range benchBodies() {
		r := appendRequest(form.media, nil)
		r.URL.RawQuery = form.query
		r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		body := bytes.NewReader(form.body)
		r.Body, r.ContentLength = io.NopCloser(body), int64(len(form.body))
		w := &discardWriter{header: http.Header{}}
		got := testing.AllocsPerRun(100, func() {
			body.Reset(form.body)
			clear(w.header)
			s.ServeHTTP(w, r)
		})
		t.Logf("%s: %.0f allocations", name, got)
		if got > limits[name] {
			t.Errorf("%s: %.0f allocations, at most %.0f are meant", name, got, limits[name])
		}
	}
}
