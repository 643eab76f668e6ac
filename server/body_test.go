package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/memory"
)

func gzipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstded(t testing.TB, s string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return string(w.EncodeAll([]byte(s), nil))
}

func TestCodedBodies(t *testing.T) {
	e := newEnv(t).unchecked()
	p := e.topic("t")
	const ct = "Content-Type: application/json"
	for i := range 3 { // again, with decompressors that were used before
		for coding, body := range map[string]string{
			"gzip": gzipped(t, one), "x-gzip": gzipped(t, one), "GZIP": gzipped(t, one), "zstd": zstded(t, one), "identity": one,
		} {
			e.do("POST", p+"/batches", body, ct, "Content-Encoding: "+coding).is(200)
		}
		if n := e.records(p).NextOffset; n != int64(5*(i+1)) {
			t.Fatalf("%d records", n)
		}
	}
	e.do("POST", "/topics", gzipped(t, `{"name":"coded"}`), ct, "Content-Encoding: gzip").is(201)
	e.do("POST", p+"/batches", gzipped(t, encoded(batch.Record{Value: []byte("v")})), "Content-Type: "+batch.ContentType, "Content-Encoding: gzip").is(200)
	for name, body := range map[string]string{
		"gzip, no gzip": "x", "gzip, cut": gzipped(t, one)[:20], "gzip, bad sum": damaged(gzipped(t, one)), "gzip, trailing": gzipped(t, one) + "x",
		"zstd, no zstd": "x", "zstd, cut": zstded(t, one)[:10], "zstd, bad": damaged(zstded(t, one)),
		"gzip, empty": "", "zstd, empty": "",
	} {
		coding, _, _ := strings.Cut(name, ",")
		e.do("POST", p+"/batches", body, "Content-Type: text/plain", "Content-Encoding: "+coding).problem(malformed)
	}
	if n := e.records(p).NextOffset; n != 16 {
		t.Errorf("%d records, want 16", n)
	}
}

// damaged flips a bit of the checksum at the end.
func damaged(s string) string {
	b := []byte(s)
	b[len(b)-5] ^= 1
	return string(b)
}

func TestBodyLimits(t *testing.T) {
	const limit = 4096
	e := newEnv(t, func(o *server.Options) { o.MaxBodyBytes = limit }).unchecked()
	p := e.topic("t")
	fits, over := strings.Repeat("x", limit), strings.Repeat("x", limit+1)
	bomb := strings.Repeat("\x00", 64<<20)
	text := []string{"Content-Type: text/plain"}
	gz, zs := append(text, "Content-Encoding: gzip"), append(text, "Content-Encoding: zstd")

	e.do("POST", p+"/batches", fits, text...).is(200)
	e.do("POST", p+"/batches", gzipped(t, fits), gz...).is(200)
	e.do("POST", p+"/batches", zstded(t, fits), zs...).is(200)
	for name, a := range map[string]*answer{
		"plain":                     e.do("POST", p+"/batches", over, text...),
		"gzip":                      e.do("POST", p+"/batches", gzipped(t, over), gz...),
		"zstd":                      e.do("POST", p+"/batches", zstded(t, over), zs...),
		"gzip bomb":                 e.do("POST", p+"/batches", gzipped(t, bomb), gz...),
		"zstd bomb":                 e.do("POST", p+"/batches", zstded(t, bomb), zs...),
		"gzip of nothing, for ever": e.do("POST", p+"/batches", strings.Repeat(gzipped(t, ""), 10_000), gz...),
		"JSON":                      e.json("POST", p+"/batches", over),
		"topics":                    e.json("POST", "/topics", over),
	} {
		got := a.problem("too-large")
		if *got.Limit != limit || *got.Actual <= limit || *got.Actual > 10*limit+128<<10 {
			t.Errorf("%s: limit %d, actual %d", name, *got.Limit, *got.Actual)
		}
	}
	// Topic and partition come before size.
	e.do("POST", "/topics/u/partitions/0/batches", over, text...).problem("unknown-topic")
	e.do("POST", "/topics/../partitions/0/batches", over, text...).problem("unknown-topic")
	e.do("POST", "/topics/t/partitions/1/batches", over, text...).problem("unknown-partition")
	// A length that is not announced.
	chunked := chunkedPost(t, e, p+"/batches", over)
	chunked.problem("too-large")
	if n := e.records(p).NextOffset; n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

func chunkedPost(t *testing.T, e *env, path, body string) *answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", e.url+path, io.MultiReader(strings.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/plain")
	resp, err := e.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &answer{t, resp.StatusCode, resp.Header, got}
}

func TestRecordAndBatchLimits(t *testing.T) {
	e := newEnv(t).unchecked() // so many records take the checks minutes
	p := e.topic("t")
	e.json("PUT", "/topics/wide", `{"maxBatchBytes":8388608}`).is(201)
	wide := "/topics/wide/partitions/0"
	value := func(n int) string { return `{"valueText":"` + strings.Repeat("v", n) + `"}` }
	got := e.json("POST", wide+"/batches", `{"records":[`+value(1<<20+1)+`]}`).problem("too-large")
	if *got.Limit != store.MaxRecordBytes || *got.Actual != 1<<20+1 {
		t.Errorf("record: %+v", got)
	}
	half := value(1 << 19)
	e.json("POST", p+"/batches", `{"records":[`+half+`,`+half+`]}`).is(200)
	got = e.json("POST", p+"/batches", `{"records":[`+half+`,`+half+`,`+value(1)+`]}`).problem("too-large")
	if *got.Limit != 1<<20 || *got.Actual != 1<<20+1 {
		t.Errorf("batch: %+v", got)
	}
	many := strings.Repeat(`{"value":1}`+"\n", store.MaxBatchRecords)
	e.do("POST", wide+"/batches", many, "Content-Type: application/x-ndjson").is(200)
	got = e.do("POST", wide+"/batches", many+`{"value":1}`, "Content-Type: application/x-ndjson").problem("too-large")
	if *got.Limit != store.MaxBatchRecords || *got.Actual != store.MaxBatchRecords+1 {
		t.Errorf("records: %+v", got)
	}
}

// dial opens a connection of its own to the server.
func dial(t *testing.T, e *env) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestBodyCutInTheMiddle(t *testing.T) {
	e := newEnv(t).unchecked()
	p := e.topic("t")
	for _, head := range []string{
		"Content-Type: text/plain\r\nContent-Length: 10",
		"Content-Type: application/json\r\nContent-Length: 100",
		"Content-Type: text/plain\r\nTransfer-Encoding: chunked",
		"Content-Type: text/broken\r\nTransfer-Encoding: chunked",
	} {
		conn := dial(t, e)
		body := one
		switch {
		case strings.Contains(head, "broken"):
			body = "no number\r\nab\r\n"
		case strings.Contains(head, "chunked"):
			body = "5\r\nab"
		case strings.Contains(head, "plain"):
			body = "abc"
		}
		fmt.Fprintf(conn, "POST %s/batches HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n%s", p, head, body)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		(&answer{t, resp.StatusCode, resp.Header, got}).problem(malformed)
	}
	if n := e.records(p).NextOffset; n != 0 {
		t.Errorf("%d records of bodies that were cut", n)
	}
}

// TestClientGone: the client leaves while its batch is being committed. It is stored or
// not, nothing is answered, the log says 499, and the retry finds out.
func TestClientGone(t *testing.T) {
	st := memory.Open(memory.Options{})
	began, ended := make(chan struct{}), make(chan error, 1)
	e := newEnvOver(t, &failingStore{Store: st, append: func(ctx context.Context, a store.Append) (store.Ack, error) {
		if a.Producer.BaseSeq > 0 || a.NoHold {
			return st.Append(ctx, a)
		}
		close(began)
		<-ctx.Done()
		ack, err := st.Append(context.WithoutCancel(ctx), a)
		ended <- ctx.Err()
		return ack, err
	}}).unchecked()
	p := e.topic("t")
	e.json("POST", "/producers", "").is(201)
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-began; leave() }()
	req, err := http.NewRequestWithContext(ctx, "POST", e.url+p+"/batches", strings.NewReader(oneAt("0", "0", "0")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if resp, err := e.client.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("a client that had left was answered")
	}
	<-ended
	got := as[openapi.AppendResponse](e.json("POST", p+"/batches", oneAt("0", "0", "0"), "Prefer: wait=0").is(200))
	if !got.Duplicate || *got.BaseOffset != 0 {
		t.Errorf("the retry: %+v", got)
	}
}

func TestClientGoneIsLoggedAs499AndNotAnswered(t *testing.T) {
	st := memory.Open(memory.Options{})
	began := make(chan struct{})
	e := newEnvOver(t, &failingStore{Store: st, append: func(ctx context.Context, _ store.Append) (store.Ack, error) {
		close(began)
		<-ctx.Done()
		return store.Ack{}, ctx.Err()
	}}).unchecked()
	p := e.topic("t")
	conn := dial(t, e)
	fmt.Fprintf(conn, "POST %s/batches HTTP/1.1\r\nHost: x\r\nX-Request-Id: leaver\r\nContent-Length: 1\r\n\r\nx", p)
	<-began
	// Half a close is a departure to net/http, but this client still listens: it must
	// not be told 200.
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
		t.Errorf("answered %q, %v", got, err)
	}
	for _, line := range e.log.lines(t) {
		if line["request.id"] == "leaver" && line["status"] == 499.0 && line["level"] == "INFO" {
			return
		}
	}
	t.Errorf("no line with status 499: %v", e.log.lines(t))
}

// A client that sends all of a body before it looks for an answer gets the answer, also
// when the body was refused at its first byte.
func TestRefusedBodyIsReadToItsEnd(t *testing.T) {
	e := newEnv(t).unchecked()
	p := e.topic("t")
	body := strings.Repeat("x", 17<<20)
	for _, c := range []struct{ path, code string }{
		{p + "/batches", "too-large"},
		{p + "/batches?none=1", malformed},
		{"/nothing/here", "not-found"},
	} {
		conn := dial(t, e)
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: a/b\r\nContent-Length: %d\r\n\r\n", c.path, len(body))
		if _, err := io.WriteString(conn, body); err != nil {
			t.Errorf("%s: the body was not taken: %v", c.path, err)
			continue
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: no answer: %v", c.path, err)
			continue
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		(&answer{t, resp.StatusCode, resp.Header, got}).problem(c.code)
	}
}
