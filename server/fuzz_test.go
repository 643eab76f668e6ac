package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

func newServer(t testing.TB) *server.Server {
	t.Helper()
	s, err := server.New(server.Options{MaxBodyBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func appendRequest(media string, body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/topics/t/partitions/0/batches", bytes.NewReader(body))
	r.Header.Set("Content-Type", media)
	return r
}

// FuzzJSONBatch: whatever comes, the decoder answers or refuses; what it takes is JSON
// to other readers too, and decodes to the same batch when it is written out again.
func FuzzJSONBatch(f *testing.F) {
	for _, in := range badJSON() {
		f.Add([]byte(in.body))
	}
	f.Add([]byte(oneAt("1", "2", "3")))
	f.Add([]byte(`{"records":[{"key":"k","value":{"a":[1,null]},"headers":[{"name":"h","value":"v"}],"timestamp":"2026-01-02T03:04:05.678Z"},{"keyBase64":"aw==","valueText":"\u00e9\ud83d\ude00"}]}`))
	s := newServer(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := s.DecodeAppend(appendRequest("application/json", body))
		if refused(t, err) {
			return
		}
		if !json.Valid(body) || !utf8.Valid(body) {
			t.Errorf("took what is not JSON: %q", body)
		}
		again, err := s.DecodeAppend(appendRequest("application/json", rendered(t, a, "[", ",", "]")))
		same(t, a, again, err)
	})
}

// FuzzNDJSON is FuzzJSONBatch for the other form.
func FuzzNDJSON(f *testing.F) {
	for _, in := range badOther() {
		if in.headers[0] == "Content-Type: application/x-ndjson" {
			f.Add([]byte(in.body))
		}
	}
	f.Add([]byte("{\"value\":1}\r\n{\"key\":\"k\",\"valueText\":\"v\"}\n\n"))
	s := newServer(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := s.DecodeAppend(appendRequest("application/x-ndjson", body))
		if refused(t, err) {
			return
		}
		if lines := strings.Count(string(body), "\n") + 1; int(a.Batch.Count) > lines {
			t.Errorf("%d records on %d lines", a.Batch.Count, lines)
		}
		again, err := s.DecodeAppend(appendRequest("application/json", rendered(t, a, "[", ",", "]")))
		same(t, a, again, err)
	})
}

// refused reports whether the decoder refused, which it may do in these ways only.
func refused(t *testing.T, err error) bool {
	if err == nil {
		return false
	}
	code, errs := server.ProblemCode(err)
	switch {
	case code == malformed && len(errs) > 0, code == invalid && len(errs) > 0, code == "too-large":
	default:
		t.Errorf("refused with code %q, places %v: %v", code, errs, err)
	}
	return true
}

func same(t *testing.T, a, again store.Append, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("written out again it is refused: %v", err)
	}
	if d := cmp.Diff(a, again); d != "" {
		t.Errorf("written out again it is another (-first +again):\n%s", d)
	}
	parsed, err := batch.Parse(a.Batch.Bytes)
	if err != nil {
		t.Fatalf("the decoder made a bad batch: %v", err)
	}
	if d := cmp.Diff(a.Batch, parsed); d != "" {
		t.Errorf("the batch says something else than its bytes (-batch +bytes):\n%s", d)
	}
}

// rendered writes a batch as a JSON body, without any code of the server.
func rendered(t *testing.T, a store.Append, open, between, end string) []byte {
	t.Helper()
	rd, err := batch.NewReader(a.Batch.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	body := map[string]json.RawMessage{}
	if p := a.Producer; p != nil {
		body["pid"], body["epoch"], body["baseSeq"] = marshal(t, p.ID), marshal(t, p.Epoch), marshal(t, p.BaseSeq)
	}
	var out []string
	var rec batch.Record
	for {
		ok, err := rd.Next(&rec)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		out = append(out, renderedRecord(t, &rec))
	}
	text := open + strings.Join(out, between) + end
	members := `"records":` + text
	for name, v := range body {
		members += `,"` + name + `":` + string(v)
	}
	return []byte("{" + members + "}")
}

func renderedRecord(t *testing.T, r *batch.Record) string {
	t.Helper()
	var members []string
	add := func(name string, v any) { members = append(members, `"`+name+`":`+string(marshal(t, v))) }
	if r.Timestamp >= 0 {
		add("timestamp", r.Timestamp)
	}
	switch {
	case r.Key == nil:
	case r.KeyForm == batch.FormText:
		add("key", string(r.Key))
	default:
		add("keyBase64", base64.StdEncoding.EncodeToString(r.Key))
	}
	switch {
	case r.Value == nil:
		members = append(members, `"value":null`)
	case r.ValueForm == batch.FormText:
		add("valueText", string(r.Value))
	case r.ValueForm == batch.FormBytes:
		add("valueBase64", base64.StdEncoding.EncodeToString(r.Value))
	default:
		members = append(members, `"value":`+string(r.Value))
	}
	if len(r.Headers) > 0 {
		type header struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		}
		var list []header
		for _, h := range r.Headers {
			list = append(list, header(h))
		}
		add("headers", list)
	}
	return "{" + strings.Join(members, ",") + "}"
}

func marshal(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzAppendHandler throws anything at the whole handler. It never panics, never
// answers 5xx, and what it refuses is a problem.
func FuzzAppendHandler(f *testing.F) {
	f.Add("application/json", "", "", []byte(one))
	f.Add("text/plain; charset=x", "gzip", "pid=0&epoch=0&baseSeq=0", []byte(gzipped(f, "v")))
	f.Add(batch.ContentType, "", "pid=0", []byte(encoded(batch.Record{Value: []byte("v")})))
	f.Add("application/x-ndjson", "zstd", "a=%zz&;", []byte(zstded(f, `{"value":1}`)))
	s := newServer(f)
	s.Serve(newCountingStore(f))
	f.Fuzz(func(t *testing.T, media, coding, query string, body []byte) {
		r := appendRequest(media, body)
		r.URL.RawQuery = query
		if coding != "" {
			r.Header.Set("Content-Encoding", coding)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError || (w.Code != http.StatusOK && w.Header().Get("Content-Type") != "application/problem+json") {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("not JSON: %s", w.Body)
		}
	})
}

// FuzzQuery: every path that takes parameters answers any query.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{"offset=-1&limit=1", "pageToken=cDox", "offset=%ff&x", "values=base64&&waitMs=0", "before=1", "a;b"} {
		f.Add(q)
	}
	s := newServer(f)
	s.Serve(newCountingStore(f))
	f.Fuzz(func(t *testing.T, query string) {
		if strings.Contains(query, "wait") {
			return
		}
		for _, path := range []string{"/topics", "/producers", "/snapshots", "/topics/t/partitions/0/records", "/topics/t/partitions/0/batches", "/topics/t/partitions/0/producers"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code >= http.StatusInternalServerError || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
			}
		}
	})
}
