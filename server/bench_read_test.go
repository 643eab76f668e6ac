package server_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/memory"
)

// pageStore answers every read with the same page of batches, so that only the server is
// measured.
type pageStore struct {
	store.Store
	page store.Records
}

func (s *pageStore) Read(context.Context, store.Read) (store.Records, error) { return s.page, nil }

// newPageStore has a page of about 1 MiB: batches of so many records like r.
func newPageStore(b *testing.B, records int, r *batch.Record) *pageStore {
	b.Helper()
	const page = 1 << 20
	ctx, p := context.Background(), store.Partition{Topic: "t"}
	st := memory.Open(memory.Options{})
	if _, err := st.CreateTopic(ctx, "t", 1, store.DefaultConfig()); err != nil {
		b.Fatal(err)
	}
	var builder batch.Builder
	for range records {
		builder.Add(r)
	}
	built := builder.Build()
	for range page / built.PayloadBytes {
		if _, err := st.Append(ctx, store.Append{Partition: p, Batch: built}); err != nil {
			b.Fatal(err)
		}
	}
	recs, err := st.Read(ctx, store.Read{Partition: p, MaxRecords: store.MaxReadRecords, MaxBytes: page})
	if err != nil {
		b.Fatal(err)
	}
	recs.HighWatermark++ // as if there were more
	return &pageStore{Store: st, page: recs}
}

// BenchmarkReadHandler is a page of a read the whole way through the router, without the
// network and without the engine. The bytes are those of the values.
func BenchmarkReadHandler(b *testing.B) {
	for _, shape := range []struct {
		name    string
		records int
		record  batch.Record
	}{
		{"text=100x1KiB", 100, batch.Record{Value: bytes.Repeat([]byte("v"), 1<<10), ValueForm: batch.FormText}},
		{"json=100x200B", 100, batch.Record{Value: []byte(`{"order":17,"items":["` + string(bytes.Repeat([]byte("v"), 168)) + `"],"ok":true}`), ValueForm: batch.FormJSON}},
		{"bytes=100x1KiB", 100, batch.Record{Value: bytes.Repeat([]byte{0xff}, 1<<10)}},
		{"raw=1x1KiB", 1, batch.Record{Value: bytes.Repeat([]byte("v"), 1<<10), ValueForm: batch.FormRaw, ContentType: "application/octet-stream"}},
	} {
		shape.record.Timestamp = batch.NoTimestamp
		st := newPageStore(b, shape.records, &shape.record)
		payload := int64(len(shape.record.Value)) * st.page.Batches[len(st.page.Batches)-1].LastOffset
		for _, form := range []struct{ name, media string }{
			{"json", "application/json"}, {"ndjson", "application/x-ndjson"}, {"binary", batch.ContentType},
		} {
			b.Run(shape.name+"/as="+form.name, func(b *testing.B) {
				s := newServer(b)
				s.Serve(st)
				r := httptest.NewRequest(http.MethodGet, "/topics/t/partitions/0/records?offset=0&limit=10000", http.NoBody)
				r.Header.Set("Accept", form.media)
				w := &discardWriter{header: http.Header{}}
				b.ReportAllocs()
				b.SetBytes(payload)
				for b.Loop() {
					clear(w.header)
					s.ServeHTTP(w, r)
					if w.status != http.StatusOK {
						b.Fatalf("status %d", w.status)
					}
				}
			})
		}
	}
}

// BenchmarkAckHandler is an append of which the body is next to nothing: routing, headers
// and the answer.
func BenchmarkAckHandler(b *testing.B) {
	s := newServer(b)
	s.Serve(newCountingStore(b))
	r := httptest.NewRequest(http.MethodPost, "/topics/t/partitions/0/batches?pid=0&epoch=0&baseSeq=0", http.NoBody)
	r.Header.Set("Content-Type", "application/octet-stream")
	w := &discardWriter{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatalf("status %d", w.status)
		}
	}
}

// BenchmarkDuplicateHandler is BenchmarkAckHandler for a batch that was stored before.
func BenchmarkDuplicateHandler(b *testing.B) {
	s := newServer(b)
	s.Serve(&duplicateStore{newCountingStore(b)})
	r := httptest.NewRequest(http.MethodPost, "/topics/t/partitions/0/batches?pid=0&epoch=0&baseSeq=0", http.NoBody)
	w := &discardWriter{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.ServeHTTP(w, r)
		if w.header.Get("Idempotent-Replayed") != "true" {
			b.Fatalf("status %d, %v", w.status, w.header)
		}
	}
}

// duplicateStore takes every batch for one that it has.
type duplicateStore struct{ *countingStore }

func (*duplicateStore) Append(context.Context, store.Append) (store.Ack, error) {
	return store.Ack{NextSeq: 1, Duplicate: true, AppendedAt: time.UnixMilli(1767323045678)}, nil
}
