package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/bolt"
	"github.com/oncelog/oncelog/store/memory"
)

// memoryOf is what bodies or answers hold, and other numbers of theirs.
func memoryOf(t *testing.T, e *env, name, of string) float64 {
	t.Helper()
	families, err := e.server.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == of {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s of %s", name, of)
	return 0
}

// givenBack fails unless requests hold nothing any more, soon.
func givenBack(t *testing.T, e *env) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		bodies, _, answers, _ := e.server.MemoryHeld()
		if bodies == 0 && answers == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("bodies hold %d bytes, answers %d", bodies, answers)
		}
	}
}

// answerOn reads one answer from a connection.
func answerOn(t *testing.T, conn net.Conn, r *bufio.Reader) *answer {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &answer{t, resp.StatusCode, resp.Header, body}
}

// TestRefusedBeforeItIsSent: what there is no room for is refused before any of its body has
// come, the connection is good for the next request, and what was refused is not stored. A
// client that takes its time has to go when others wait.
func TestRefusedBeforeItIsSent(t *testing.T) {
	e := newEnv(t, func(o *server.Options) { o.MaxBodies, o.Patience = 2, time.Hour }).unchecked()
	p := e.topic("t")
	head := func(length int) string {
		return fmt.Sprintf("POST %s/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: a/b\r\nContent-Length: %d\r\n\r\n", p, length)
	}
	var slow []net.Conn
	for n := range int64(2) {
		conn := dial(t, e)
		fmt.Fprint(conn, head(10), "half ")
		slow = append(slow, conn)
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) { // so that the first is the slowest
			if used, limit, _, _ := e.server.MemoryHeld(); used >= limit*(n+1)/2 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the slow ones are not there")
			}
		}
	}
	conn := dial(t, e)
	r := bufio.NewReader(conn)
	fmt.Fprint(conn, head(1<<20))
	refused := answerOn(t, conn, r)
	refused.problem("overloaded")
	if refused.header.Get("Retry-After") != "1" || refused.header.Get("Connection") == "close" {
		t.Errorf("headers %v", refused.header)
	}
	fmt.Fprint(conn, strings.Repeat("v", 1<<20), "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
	answerOn(t, conn, r).is(200)
	// Reads go on.
	if n := e.records(p).NextOffset; n != 0 {
		t.Errorf("%d records", n)
	}
	// Before anybody's patience is over an append is refused, then it gets in.
	e.do("POST", p+"/batches", "early", "Content-Type: a/b").problem("overloaded")
	e.server.SetPatience(time.Nanosecond)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		a := e.do("POST", p+"/batches", "fast", "Content-Type: a/b")
		if a.status == http.StatusOK {
			break
		}
		a.problem("overloaded")
		if time.Now().After(deadline) {
			t.Fatal("slow clients keep others out")
		}
	}
	e.server.SetPatience(time.Hour)
	if n := memoryOf(t, e, "oncelog_slow_clients_cut_off_total", "bodies"); n != 1 {
		t.Errorf("%.0f clients were cut off, one was in the way", n)
	}
	answerOn(t, slow[0], bufio.NewReader(slow[0])).problem("overloaded")
	fmt.Fprint(slow[1], "whole")
	answerOn(t, slow[1], bufio.NewReader(slow[1])).is(200)
	if n := e.records(p).NextOffset; n != 2 {
		t.Errorf("%d records, want those of the fast one and of the slow one that was left alone", n)
	}
	givenBack(t, e)
}

// TestMemoryIsGivenBack lets many requests come at the same time that end in every way:
// aborted, too slow, too large, coded, as bombs, refused, not read, and good ones. Bodies and
// answers never hold more than they may, and in the end nothing.
func TestMemoryIsGivenBack(t *testing.T) {
	st := memory.Open(memory.Options{})
	e := newEnvOver(t, &failingStore{Store: st, append: func(ctx context.Context, a store.Append) (store.Ack, error) {
		select { // as a disk that takes its time
		case <-ctx.Done():
			return store.Ack{}, ctx.Err()
		case <-time.After(time.Millisecond):
		}
		return st.Append(ctx, a)
	}}, func(o *server.Options) {
		o.MaxBodyBytes, o.BodyTimeout, o.WriteTimeout, o.MaxBodies = 1<<20, 200*time.Millisecond, 200*time.Millisecond, 60
		o.Patience = 50 * time.Millisecond
	}).unchecked()
	// What the test itself needs does not go through a server that is as hasty as this one.
	const p = "/topics/t/partitions/0"
	config := store.DefaultConfig()
	config.MaxBatchBytes = store.MaxBatchBytes
	if _, err := st.CreateTopic(t.Context(), "t", 1, config); err != nil {
		t.Fatal(err)
	}
	text, megabyte := "Content-Type: text/plain\r\n", strings.Repeat("m", 1<<20)
	var b batch.Builder
	b.Add(&batch.Record{Value: []byte(megabyte), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
	for built := b.Build(); ; {
		ack, err := st.Append(t.Context(), store.Append{Partition: store.Partition{Topic: "t"}, Batch: built})
		if err != nil {
			t.Fatal(err)
		}
		if ack.LastOffset == 7 {
			break
		}
	}
	bomb := strings.Repeat("\x00", 8<<20)
	post := func(headers, body string) string {
		return fmt.Sprintf("POST %s/batches HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", p, headers, len(body), body)
	}
	kinds := []string{
		post(text, "small"), post(text, megabyte), post(text, megabyte+"x"), post(text+"Expect: 100-continue\r\n", megabyte),
		post(text+"Content-Encoding: gzip\r\n", gzipped(t, megabyte)), post(text+"Content-Encoding: gzip\r\n", gzipped(t, bomb)),
		post(text+"Content-Encoding: zstd\r\n", zstded(t, megabyte)), post(text+"Content-Encoding: zstd\r\n", zstded(t, bomb)),
		post(text+"Content-Encoding: zstd\r\n", strings.Repeat(zstded(t, "x"), 2000)+zstded(t, bomb)),
		post("Content-Type: application/json\r\n", `{"records":[`+strings.Repeat(`{"value":1},`, 3000)+`{"value":1}]}`),
		"POST " + p + "/batches HTTP/1.1\r\nHost: localhost\r\n" + text + "Transfer-Encoding: chunked\r\n\r\n20000\r\n" + megabyte[:0x20000] + "\r\n0\r\n\r\n",
		"GET " + p + "/records?offset=0&limit=10000&maxBytes=67108864 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET " + p + "/records?offset=0 HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n",
	}
	var all sync.WaitGroup
	for i := range 130 {
		all.Go(func() {
			misbehave(e, kinds[i%len(kinds)], i/len(kinds), rand.New(rand.NewPCG(uint64(i), 0)))
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(time.Millisecond):
		}
		if bodies, most, answers, mostAnswers := e.server.MemoryHeld(); bodies > most || answers > mostAnswers {
			t.Fatalf("bodies hold %d of %d bytes, answers %d of %d", bodies, most, answers, mostAnswers)
		}
	}
	givenBack(t, e)
	served(t, e, http.MethodPost, p+"/batches", megabyte)
	served(t, e, http.MethodGet, p+"/records?offset=-1", "")
	givenBack(t, e)
}

// served fails unless a request is answered well in the end: a client that comes too slowly
// for the server once may come again.
func served(t *testing.T, e *env, method, path, body string) {
	t.Helper()
	try := func() error {
		req, err := http.NewRequestWithContext(t.Context(), method, e.url+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := e.client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, text)
		}
		return err
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

// misbehave sends a request whole, or in part, or slowly, and reads the answer, a part of it
// or nothing, before it goes.
func misbehave(e *env, request string, how int, r *rand.Rand) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second)) //nolint:errcheck // it is open
	switch how % 5 {
	case 0: // nothing is wrong with it
		io.WriteString(conn, request) //nolint:errcheck // the server may refuse it early
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			io.CopyN(io.Discard, resp.Body, 4<<20) //nolint:errcheck // a stream has no end
			resp.Body.Close()
		}
	case 1: // cut off
		io.WriteString(conn, request[:r.IntN(len(request))]) //nolint:errcheck // as above
	case 2: // stalled
		io.WriteString(conn, request[:r.IntN(len(request))]) //nolint:errcheck // as above
		conn.Read(make([]byte, 1))                           //nolint:errcheck // it waits
	case 3: // not read
		io.WriteString(conn, request) //nolint:errcheck // as above
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
	default: // reset
		io.WriteString(conn, request)      //nolint:errcheck // as above
		conn.(*net.TCPConn).SetLinger(0)   //nolint:errcheck,forcetypeassert // that is what tcp gives
		conn.Read(make([]byte, r.IntN(2))) //nolint:errcheck // the first byte, or nothing
	}
}

// TestAnswersThatNobodyReads: a client that sends requests for ever and reads no answers is
// given up.
func TestAnswersThatNobodyReads(t *testing.T) {
	e := newEnv(t, func(o *server.Options) { o.WriteTimeout = 200 * time.Millisecond }).unchecked()
	conn := dial(t, e)
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	requests := strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 100)
	for {
		if _, err := io.WriteString(conn, requests); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("it is waited for")
			}
			return
		}
	}
}

// TestRefusalsAreSampledInTheLog: a server that has too much to do does not write a line for
// each request that it refuses for that.
func TestRefusalsAreSampledInTheLog(t *testing.T) {
	full := store.Errorf(store.CodeOverloaded, "full")
	e := newEnvOver(t, &failingStore{Store: memory.Open(memory.Options{}), append: func(context.Context, store.Append) (store.Ack, error) {
		return store.Ack{}, full
	}}, func(o *server.Options) { o.SuccessLines = 3 }).unchecked()
	p := e.topic("t")
	const requests = 30
	start := time.Now()
	for range requests {
		e.json("POST", p+"/batches", one).problem("overloaded")
	}
	lines, unlogged := 0, 0.0
	for _, line := range e.log.lines(t) {
		if line["status"] == 503.0 {
			lines++
			if n, ok := line["unlogged"].(float64); ok {
				unlogged += n
			}
		}
	}
	if most := 3 * int(time.Since(start)/time.Second+2); lines < 3 || lines > most {
		t.Errorf("%d lines for %d refusals, with %.0f counted on them", lines, requests, unlogged)
	}
}

// TestOverloadedAnswers: clients who do not read their answers are cut off when others
// need the memory.
func TestOverloadedAnswers(t *testing.T) {
	st := memory.Open(memory.Options{})
	e := newEnvOver(t, st, func(o *server.Options) { o.ReadMemory, o.Patience = 1, 200*time.Millisecond }).unchecked() // as little as may be
	p := e.topic("t")
	e.json("PATCH", "/topics/t", `{"maxBatchBytes":8388608}`).is(200)
	for range 4 {
		e.do("POST", p+"/batches", strings.Repeat("m", 1<<20), "Content-Type: a/b").is(200)
	}
	// Clients who do not read hold what there is, for a while.
	var conns []net.Conn
	for range 12 {
		conn := dial(t, e)
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s/records?offset=0&limit=10000&values=base64&maxBytes=4194304 HTTP/1.1\r\nHost: localhost\r\n\r\n", p)
		conns = append(conns, conn)
	}
	refused := false
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		a := e.get(p + "/records?offset=0&maxBytes=4194304&limit=100")
		if a.status == http.StatusOK {
			var list openapi.RecordList
			if err := json.Unmarshal(a.body, &list); err != nil || len(list.Records) == 0 {
				t.Fatalf("%v: %d records", err, len(list.Records))
			}
			if refused || memoryOf(t, e, "oncelog_slow_clients_cut_off_total", "answers") > 0 {
				break
			}
		} else {
			a.problem("overloaded")
			refused = true
		}
		if time.Now().After(deadline) {
			t.Fatal("clients who do not read are in nobody's way, or keep everybody out")
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
	givenBack(t, e)
}

// TestWaitingHoldsNothing: a long poll and an event stream give the memory back that they
// have read into, before they wait.
func TestWaitingHoldsNothing(t *testing.T) {
	e := newEnvOver(t, newBolt(t, t.TempDir(), bolt.Options{}), func(o *server.Options) { o.Heartbeat = time.Hour }).unchecked()
	p := e.topic("t")
	e.do("POST", p+"/batches", strings.Repeat("m", 1<<20), "Content-Type: a/b").is(200)
	for _, ask := range []string{"?offset=1&waitMs=60000", "?offset=0\nAccept: text/event-stream", "?offset=1\nAccept: text/event-stream"} {
		for range 4 { // memory that is large enough for anything, to be used again
			e.get(p + "/records?offset=0").is(200)
		}
		query, headers, _ := strings.Cut(ask, "\n")
		if headers != "" {
			headers += "\r\n"
		}
		conn := dial(t, e)
		fmt.Fprintf(conn, "GET %s/records%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", p, query, headers)
		waits := func() bool {
			return strings.Contains(string(e.get("/metrics").body), "oncelog_http_requests_in_flight 2")
		}
		for deadline := time.Now().Add(20 * time.Second); !waits(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it is not waited for")
			}
		}
		go io.Copy(io.Discard, conn) //nolint:errcheck // until it is closed
		givenBack(t, e)
		conn.Close()
		for deadline := time.Now().Add(20 * time.Second); waits(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it is still waited for")
			}
		}
	}
}
