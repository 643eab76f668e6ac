package verify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/verify"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/memory"
)

// world is a server with something of everything in topic t: partition 0 whole, 1 trimmed,
// 2 empty, 3 with all records gone.
type world struct {
	t     *testing.T
	store *memory.Store
	url   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, store: memory.Open(memory.Options{})}
	s, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(w.store)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	w.url = web.URL
	c := store.DefaultConfig()
	c.SegmentBytes = store.MinSegmentBytes
	if _, err := w.store.CreateTopic(t.Context(), "t", 4, c); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := w.store.AllocateProducer(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 2 {
		for i := range int64(60) {
			w.append(n, 0, 0, 2*i, 2)
			if i < 3 {
				w.append(n, 1, i, 0, 1)
			}
			if i == 10 {
				w.plain(n)
			}
		}
		w.append(n, 2, 5, 0, 4)
		must(t, w.store.ExpireProducer(t.Context(), place(n), 2))
	}
	_, err = w.store.TakeSnapshots(t.Context(), store.SnapshotFilter{})
	must(t, err)
	_, err = w.store.Trim(t.Context(), place(1), 21) // within a batch
	must(t, err)
	w.append(3, 0, 0, 0, 3)
	_, err = w.store.Trim(t.Context(), place(3), 3)
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func place(n int) store.Partition { return store.Partition{Topic: "t", Number: n} }

func records(text string, n int) batch.Batch {
	var b batch.Builder
	for i := range n {
		b.Add(&batch.Record{Value: fmt.Appendf(nil, "%s-%d", text, i), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
	}
	return b.Build()
}

func (w *world) append(n int, pid, epoch, seq int64, count int) {
	w.t.Helper()
	_, err := w.store.Append(context.Background(), store.Append{
		Partition: place(n), Producer: &store.ProducerSeq{ID: pid, Epoch: epoch, BaseSeq: seq},
		Batch: records(fmt.Sprintf("%d/%d/%d", pid, epoch, seq), count),
	})
	must(w.t, err)
}

func (w *world) plain(n int) {
	w.t.Helper()
	_, err := w.store.Append(w.t.Context(), store.Append{Partition: place(n), Batch: records("plain", 3)})
	must(w.t, err)
}

func (w *world) verify(n int, options ...producer.ClientOption) *verify.Result {
	w.t.Helper()
	c, err := producer.NewClient(w.url, options...)
	must(w.t, err)
	r, err := verify.Partition(w.t.Context(), c, "t", n, nil)
	must(w.t, err)
	return r
}

func TestWhatIsWhole(t *testing.T) {
	w := newWorld(t)
	for n, want := range []verify.Result{
		{EarliestOffset: 0, NextOffset: 130, Batches: 65, Records: 130, Producers: 2, Expired: 1},
		{EarliestOffset: 21, NextOffset: 130, Records: 109, Producers: 1, Older: 1, Expired: 1},
		{},
		{EarliestOffset: 3, NextOffset: 3, Older: 1},
	} {
		got := *w.verify(n)
		if n < 2 && (got.Bytes == 0 || got.Segments == 0 || got.Snapshots < 2) {
			t.Errorf("partition %d: %+v", n, got)
		}
		want.Topic, want.Partition, want.Problems = "t", n, []string{}
		want.Bytes, want.Segments, want.Snapshots = got.Bytes, got.Segments, got.Snapshots
		if n == 1 {
			want.Batches = got.Batches
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("partition %d: want (-), got (+)\n%s", n, d)
		}
	}
}

// tamper changes answers on the way.
type tamper struct {
	path string // that of the answers to change ends so
	with func(body []byte) []byte
	done bool
}

func (c *tamper) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, c.path) {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if changed := c.with(body); !bytes.Equal(changed, body) {
		body, c.done = changed, true
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// bytesOf changes part of an answer.
func bytesOf(from, to string) func([]byte) []byte {
	return func(body []byte) []byte { return bytes.ReplaceAll(body, []byte(from), []byte(to)) }
}

// items changes the items of a list in JSON.
func items(change func(items []any) []any) func([]byte) []byte {
	return func(body []byte) []byte {
		var list map[string]any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if d.Decode(&list) != nil {
			return body
		}
		list["items"] = change(list["items"].([]any))
		out, err := json.Marshal(list)
		if err != nil {
			panic(err)
		}
		return out
	}
}

// set changes a member of the i-th item.
func set(i int, member string, value any) func([]byte) []byte {
	return items(func(items []any) []any {
		if i < len(items) {
			items[i].(map[string]any)[member] = value
		}
		return items
	})
}

// TestWhatIsNot: each thing that is proved is noticed when it does not hold.
func TestWhatIsNot(t *testing.T) {
	w := newWorld(t)
	const headers, bodies, producers = "/t/partitions/0/batches", "/t/partitions/0/records", "/t/partitions/0/producers"
	for name, tc := range map[string]struct {
		path, want string
		with       func([]byte) []byte
	}{
		"a batch is missing":           {headers, "is not the one that its header describes", items(func(l []any) []any { return append(l[:3:3], l[4:]...) })},
		"the end is missing":           {headers, "no batch at offset", items(func([]any) []any { return nil })},
		"a gap in the offsets":         {headers, "a batch begins at offset", set(4, "baseOffset", 9)},
		"another length":               {headers, "is not the one that its header describes", set(4, "bytes", 1)},
		"another checksum in a header": {headers, "is not the one that its header describes", set(4, "crc", "00000000")},
		"a sequence twice":             {headers, "does not follow what that producer sent before (reused)", set(6, "baseSeq", 0)},
		"a sequence left out":          {headers, "(out-of-order)", set(6, "baseSeq", 100)},
		"an epoch that comes back":     {headers, "(fenced)", set(5, "epoch", 0)},
		"a flipped bit":                {bodies, "fails its CRC32C", func(b []byte) []byte { b = bytes.Clone(b); b[40] ^= 4; return b }},
		"another sequence":             {producers, "is said to be at epoch 0, sequence 118", set(0, "lastSeq", 118)},
		"another offset":               {producers, "producer 0", set(0, "lastOffset", 3)},
		"an offset to come":            {producers, "where no batch of it ends", set(0, "lastOffset", 700)},
		"other batches remembered":     {producers, "the batches that the server remembers", set(1, "recent", []any{map[string]any{"baseSeq": 0, "lastSeq": 0, "baseOffset": 1}})},
		"a producer from nowhere":      {producers, "the log has no batch of it", set(0, "pid", 3)},
		"another first sequence":       {producers, "or their time, are not", set(0, "firstSeq", 0)},
		"another time":                 {producers, "or their time, are not", set(0, "lastTimestamp", "2026-01-02T03:04:05.678Z")},
		"a producer that is forgotten": {producers + "/2", "producer 2 is in the log, and the server knows nothing of it", bytesOf(`"expiredAt"`, `"x"`)},
		"expired in another epoch":     {producers + "/2", "producer 2 is said to have expired in epoch 4", bytesOf(`"lastEpoch":5`, `"lastEpoch":4`)},
		"expired earlier":              {producers + "/2", "by the log it has been at epoch 5, sequence 3", bytesOf(`"lastSeq":3`, `"lastSeq":2`)},
		"a segment that is too small": {"/t/partitions/0", "do not add up", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"batches":`), []byte(`"batches":1`), 1)
		}},
		"segments with a hole": {"/t/partitions/0", "the next one begins at", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"segments":[{"baseOffset":0,"nextOffset":`), []byte(`"segments":[{"baseOffset":0,"nextOffset":1`), 1)
		}},
		"a snapshot that differs": {"/verify", "snapshot at offset", func([]byte) []byte { return []byte(`{"match":false,"differences":["producer 7"]}`) }},
	} {
		t.Run(name, func(t *testing.T) {
			c := &tamper{path: tc.path, with: tc.with}
			r := w.verify(0, producer.WithTransport(c))
			if !c.done {
				t.Fatal("nothing was changed")
			}
			if len(r.Problems) == 0 || !strings.Contains(strings.Join(r.Problems, "\n"), tc.want) {
				t.Errorf("found %q, want %q", r.Problems, tc.want)
			}
		})
	}
}

// TestDamagedBatchIsNamed: what the server itself finds damaged is a problem, and the rest
// of the partition is looked at all the same.
func TestDamagedBatchIsNamed(t *testing.T) {
	w := newWorld(t)
	broken := roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/records") && r.URL.Query().Get("offset") == "0" {
			rec := httptest.NewRecorder()
			rec.Header().Set("Content-Type", "application/problem+json")
			rec.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(rec, `{"type":"/problems/records-damaged","title":"t","status":500,"detail":"the batch at offset 0 is damaged","instance":"/","code":"records-damaged","retryable":false,"outcome":"not-applied","requestId":"r"}`)
			resp := rec.Result()
			resp.Request = r
			return resp, nil
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	r := w.verify(0, producer.WithTransport(broken))
	if len(r.Problems) != 2 || !strings.Contains(r.Problems[0], "the batch at offset 0 is damaged") || r.NextOffset != 130 || r.Batches != 64 {
		t.Errorf("%+v", r)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWhileAppending: what moves on meanwhile is no fault. Before each request that a
// verification makes, something is stored, and once a producer expires.
func TestWhileAppending(t *testing.T) {
	w := newWorld(t)
	requests, expire := 0, -1 // before which request
	epoch, seq := [2]int64{10, 10}, [2]int64{}
	moving := roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "snapshots") { // of which the model has ever more
			return http.DefaultTransport.RoundTrip(r)
		}
		if requests == expire {
			must(t, w.store.ExpireProducer(context.Background(), place(0), 1))
			epoch[1], seq[1] = epoch[1]+1, 0
		}
		for pid := range 2 {
			if requests == expire && pid == 1 {
				continue // it comes back with the next request only
			}
			w.append(0, int64(pid), epoch[pid], seq[pid], 2)
			seq[pid] += 2
		}
		requests++
		return http.DefaultTransport.RoundTrip(r)
	})
	for ; expire <= requests; expire++ {
		requests = 0
		r := w.verify(0, producer.WithTransport(moving))
		if len(r.Problems) > 0 || r.Producers < 1 || r.Producers+r.Expired < 3 {
			t.Fatalf("producer 1 expired before request %d: %+v", expire, r)
		}
	}
	if requests < 6 {
		t.Errorf("only %d requests", requests)
	}
}
