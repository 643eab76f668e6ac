package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store/batch"
)

// FuzzCodedBody: a body that is compressed is taken exactly when another decoder takes it,
// and means the same.
func FuzzCodedBody(f *testing.F) {
	for _, text := range []string{"", "v", strings.Repeat("long ", 5000)} {
		f.Add(true, []byte(gzipped(f, text)))
		f.Add(false, []byte(zstded(f, text)))
	}
	f.Add(true, []byte(gzipped(f, "one")+gzipped(f, "two")))
	f.Add(true, []byte(gzipped(f, "one")+"x"))
	f.Add(false, []byte(zstded(f, "one")+zstded(f, "two")))
	f.Add(false, []byte("\x50\x2a\x4d\x18\x01\x00\x00\x00x")) // a frame to be skipped
	s := newServer(f)
	f.Fuzz(func(t *testing.T, isGzip bool, body []byte) {
		r := appendRequest("text/plain", body)
		coding, decode := "zstd", plainZstd
		if isGzip {
			coding, decode = "gzip", plainGzip
		}
		want, errWant := decode(body)
		r.Header.Set("Content-Encoding", coding)
		a, err := s.DecodeAppend(r)
		if code, _ := server.ProblemCode(err); code == "too-large" || len(want) > 1<<20 {
			return // what the other decoder makes of it is not known in full
		}
		if refused(t, err) != (errWant != nil) {
			t.Fatalf("%s of %x: %v, another decoder says %v", coding, body, err, errWant)
		}
		if err == nil && !bytes.Equal(onlyValue(t, a.Batch.Bytes), want) {
			t.Fatalf("%s of %x is taken for something else", coding, body)
		}
	})
}

func plainGzip(body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, 2<<20))
}

func plainZstd(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderMaxMemory(8<<20)) // as the server says
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(body, nil)
}

// onlyValue is the value of the one record of a batch.
func onlyValue(t *testing.T, b []byte) []byte {
	t.Helper()
	rd, err := batch.NewReader(b)
	if err != nil {
		t.Fatal(err)
	}
	var rec batch.Record
	if ok, err := rd.Next(&rec); !ok || err != nil {
		t.Fatalf("no record: %v", err)
	}
	return bytes.Clone(rec.Value)
}

// FuzzAppendHeaders: what headers say of the producer is taken as it stands or refused.
// Numbers have one spelling.
func FuzzAppendHeaders(f *testing.F) {
	f.Add("7", "0", "12", "key", "wait=0", "text/plain")
	f.Add("", "", "", "", "respond-async, WAIT=\"0\"", "")
	f.Add("9007199254740991", "9007199254740991", "9007199254740991", "ü", "", "application/octet-stream; a=b")
	f.Add("9007199254740992", "-1", "01", "", "wait", "a/b;")
	f.Add("1e3", "+1", " 1", "\x00", "=;,", "text/\xff")
	s := newServer(f)
	f.Fuzz(func(t *testing.T, pid, epoch, seq, key, prefer, media string) {
		r := appendRequest(media, []byte("v"))
		given := 0
		for name, v := range map[string]string{"Producer-Id": pid, "Producer-Epoch": epoch, "Producer-Seq": seq, "Record-Key": key, "Prefer": prefer} {
			if v == "" {
				continue
			}
			r.Header[name] = []string{v}
			if strings.HasPrefix(name, "Producer-") {
				given++
			}
		}
		a, err := s.DecodeAppend(r)
		if err != nil {
			code, places := server.ProblemCode(err)
			if code != "unsupported-media-type" && len(places) == 0 {
				t.Errorf("refused without a place: %v", err)
			}
			return
		}
		if (a.Producer != nil) != (given == 3) {
			t.Fatalf("%d headers make the producer %+v", given, a.Producer)
		}
		if p := a.Producer; p != nil && (decimal(p.ID) != pid || decimal(p.Epoch) != epoch || decimal(p.BaseSeq) != seq) {
			t.Errorf("%q, %q and %q are taken for %+v", pid, epoch, seq, *p)
		}
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r.Clone(t.Context())); !json.Valid(w.Body.Bytes()) { // not ready, and still whole
			t.Errorf("not JSON: %s", w.Body)
		}
	})
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// FuzzControlBodies: the other requests that have a body answer any, and nothing but a 2xx
// changes anything.
func FuzzControlBodies(f *testing.F) {
	for _, body := range []string{
		`{"name":"t","partitions":2}`, `{"name":"..","retentionMs":-1}`, `{"partitions":null,"segmentBytes":1024}`,
		`{"maxProducers":9007199254740991,"requireIdempotence":true}`, `{"topic":"t","partition":0}`, `{"topic":null}`,
		`{"partitions":1e3}`, `{"name":"t","name":"u"}`, `{"x":1}`, `[]`, ``, `{"name":"\ud800"}`,
	} {
		f.Add([]byte(body))
	}
	s := newServer(f)
	s.Serve(newCountingStore(f))
	topics := func() string {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/topics?limit=1000", nil))
		return w.Body.String()
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, to := range [][2]string{{"POST", "/topics"}, {"PUT", "/topics/fuzz"}, {"PATCH", "/topics/fuzz"}, {"POST", "/snapshots"}, {"POST", "/tickets"}, {"DELETE", "/topics/fuzz"}} {
			before := topics()
			r := httptest.NewRequest(to[0], to[1], bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code >= http.StatusInternalServerError || w.Body.Len() > 0 && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %s: status %d: %s", to[0], to[1], w.Code, w.Body)
			}
			if w.Code >= http.StatusMultipleChoices && topics() != before {
				t.Errorf("%s %s: answered with %d and has changed something", to[0], to[1], w.Code)
			}
			if w.Code == http.StatusCreated && to[0] == "POST" && to[1] == "/topics" {
				r := httptest.NewRequest(http.MethodDelete, w.Header().Get("Location"), nil)
				s.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
	})
}
