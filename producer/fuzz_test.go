package producer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// canned is a server that has one answer for everything.
type canned struct {
	status     int
	media      string
	retryAfter string
	body       []byte
}

// newCanned makes any number a status that a server may send, 200 to 599.
func newCanned(status uint16, media, retryAfter string, body []byte) canned {
	return canned{status: 200 + int(status)%400, media: media, retryAfter: retryAfter, body: body}
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{}
	h["Content-Type"] = []string{c.media}
	if c.retryAfter != "" {
		h["Retry-After"] = []string{c.retryAfter}
	}
	return &http.Response{
		Status: strconv.Itoa(c.status), StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: r,
	}, nil
}

func (c canned) client(t *testing.T) *producer.Client {
	t.Helper()
	client, err := producer.NewClient("http://oncelog.test", producer.WithTransport(c))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// typed checks that an error says all that a caller decides by. What is not 2xx is an
// error, and what is taken is JSON to other readers too.
func (c canned) typed(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		if c.status > 299 || !json.Valid(c.body) {
			t.Errorf("took %d %q", c.status, c.body)
		}
		return
	}
	e := typed(t, err)
	switch {
	case e == nil:
	case e.Op == "" || e.RequestID == "" || e.Status != c.status:
		t.Errorf("lacks operation, request id or status: %+v", e)
	case e.FromServer != (e.Problem != nil), e.FromServer && c.media == "text/html", e.FromServer && c.status < 300:
		t.Errorf("from the server %t, problem %+v", e.FromServer, e.Problem)
	case !e.FromServer && e.Code != producer.CodeForeignAnswer:
		t.Errorf("nobody from oncelog has said %q", e.Code)
	case e.RetryAfter < 0 || e.RetryAfter > time.Hour:
		t.Errorf("retry after %v", e.RetryAfter)
	}
}

// typed checks that err is an [*producer.Error] with a code and one of the outcomes.
func typed(t *testing.T, err error) *producer.Error {
	t.Helper()
	e, ok := errors.AsType[*producer.Error](err)
	if !ok {
		t.Errorf("not typed: %T %v", err, err)
		return nil
	}
	switch e.Outcome {
	case openapi.NotApplied, openapi.Applied, openapi.Unknown:
	default:
		t.Errorf("outcome %q", e.Outcome)
	}
	if e.Code == "" || e.Error() == "" {
		t.Errorf("no code: %+v", e)
	}
	return e
}

// FuzzAppendAnswer: whatever answers an append, the client takes it or gives a typed
// error, and a Producer that meets with it ends with an outcome for every record.
func FuzzAppendAnswer(f *testing.F) {
	for _, body := range []string{
		`{"topic":"t","partition":0,"baseOffset":0,"lastOffset":0,"nextSeq":1,"duplicate":false,"appendedAt":"2026-01-02T03:04:05.678Z"}`,
		`{"topic":"t","partition":0,"baseOffset":null,"lastOffset":null,"nextSeq":1,"duplicate":true,"appendedAt":null}`,
		`{"topic":"t","partition":0,"baseOffset":7,"lastOffset":null,"nextSeq":1,"duplicate":false}`,
		`{"baseOffset":9223372036854775807,"lastOffset":-1}`, `{"nextSeq":1e400}`, `{}`, `null`, `[]`, ``, `{"topic":`,
	} {
		f.Add(uint16(0), "application/json", []byte(body))
	}
	f.Fuzz(func(t *testing.T, status uint16, media string, body []byte) {
		c := newCanned(status, media, "", body)
		client := c.client(t)
		_, err := client.Append(t.Context(), "t", 0, openapi.AppendRequest{})
		c.typed(t, err)
		_, err = client.AppendBatch(t.Context(), "t", 0, &producer.Sequence{}, body, producer.Identity)
		c.typed(t, err)
		throughProducer(t, c, "append")
	})
}

// FuzzProblem: whatever a refusal says, it is a typed error, and a Producer ends with
// an outcome for every record.
func FuzzProblem(f *testing.F) {
	for _, tt := range []struct {
		status     uint16
		retryAfter string
		body       string
	}{
		{209, "", `{"type":"/problems/out-of-order-sequence","status":409,"code":"out-of-order-sequence","retryable":true,"outcome":"not-applied","requestId":"r","expectedSeq":0,"receivedSeq":5,"lastSeq":null,"currentEpoch":null,"gap":5}`},
		{209, "", `{"code":"producer-expired","outcome":"not-applied","lastEpoch":0,"lastSeq":0,"expiredAt":"x","action":"bump-epoch"}`},
		{209, "", `{"code":"producer-expired","outcome":"not-applied","lastEpoch":9007199254740992,"lastSeq":-1}`},
		{209, "", `{"code":"sequence-reused","outcome":"not-applied","originalOffset":0}`},
		{204, "", `{"code":"unknown-producer-id","outcome":"not-applied"}`},
		{213, "", `{"code":"too-large","outcome":"not-applied","limit":-1,"actual":1}`},
		{213, "", `{"code":"too-large","outcome":"not-applied","limit":0,"actual":9}`},
		{303, "7", `{"code":"overloaded","retryable":true,"outcome":"unknown"}`},
		{303, "99999999999999999999", `{"code":"draining","retryable":true,"outcome":"not-applied"}`},
		{229, "Fri, 31 Dec 9999 23:59:59 GMT", `{"code":"rate-limited","outcome":"not-applied"}`},
		{300, "-1", `{"code":"internal","outcome":"perhaps"}`},
		{209, "", `{"title":"Conflict","status":409}`},
		{200, "", `{"code":7}`},
		{102, "", ``},
	} {
		f.Add(tt.status, tt.retryAfter, []byte(tt.body))
	}
	f.Fuzz(func(t *testing.T, status uint16, retryAfter string, body []byte) {
		c := newCanned(status, openapi.ProblemContentType, retryAfter, body)
		client := c.client(t)
		_, err := client.AppendBatch(t.Context(), "t", 0, nil, nil, producer.Identity)
		c.typed(t, err)
		_, err = client.PartitionProducer(t.Context(), "t", 0, 0)
		c.typed(t, err)
		throughProducer(t, c, "append")
		throughProducer(t, c, "ask")
	})
}

// FuzzRecords: whatever answers a read, the client takes it or gives a typed error.
func FuzzRecords(f *testing.F) {
	for _, body := range []string{
		`{"records":[{"offset":0,"timestamp":"2026-01-02T03:04:05.678Z","key":"k","valueText":"v","headers":[{"name":"h","value":"w"}]}],"nextOffset":1,"highWatermark":1,"earliestOffset":0}`,
		`{"records":[{"offset":0,"value":{"a":[1,null]},"headers":[]},{"offset":1,"value":null}],"nextOffset":2,"highWatermark":2}`,
		`{"records":null,"nextOffset":-5}`, `{"records":[null]}`, `{"records":{}}`, `{"nextOffset":1.5}`,
		"{\"records\":[{\"valueText\":\"\xff\"}]}", `{"records":[],"records":[]}`, `<html>`, ``,
	} {
		f.Add(uint16(0), "application/json", []byte(body))
	}
	f.Fuzz(func(t *testing.T, status uint16, media string, body []byte) {
		c := newCanned(status, media, "", body)
		_, err := c.client(t).Records(t.Context(), "t", 0, producer.Read{})
		c.typed(t, err)
		synctest.Test(t, func(t *testing.T) {
			followed(t, c)
		})
	})
}

// followed expects a follower to neither spin nor go back, whatever it is answered.
func followed(t *testing.T, c canned) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last, n := int64(math.MinInt64), 0
	for r, err := range c.client(t).Follow(ctx, "t", 0, producer.Read{}) {
		switch n++; {
		case errors.Is(err, context.DeadlineExceeded):
		case err != nil:
			typed(t, err)
		case r.Offset <= last:
			t.Fatalf("record %d follows %d", r.Offset, last)
		case n > 10_000:
			return
		}
		last = r.Offset
	}
}

// instead puts an answer in the place of the first ones to an operation.
type instead struct {
	way  *network
	with canned
	op   string
	left *atomic.Int32
}

func (i instead) RoundTrip(r *http.Request) (*http.Response, error) {
	if parseRequest(r).Op != i.op || i.left.Add(-1) < 0 {
		return i.way.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return i.with.RoundTrip(r)
}

// throughProducer has a Producer meet with the answer twice: to its appends, or to
// the question what has become of them.
func throughProducer(t *testing.T, c canned, op string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		start := time.Now()
		w.decide(func(r request) fate { // it asks when it has got no answer for so long
			return fate{loseAnswer: op == "ask" && r.Op == "append" && time.Since(start) < 8*time.Second}
		})
		way := instead{way: w.network, with: c, op: op, left: new(atomic.Int32)}
		way.left.Store(2)
		p := w.producer(short(producer.WithTransport(way))...)
		fs := sendAll(p, 0, 2)
		_, _ = fs[0].Wait(t.Context())
		fs = append(fs, sendAll(p, 2, 2)...)
		_ = p.Close(t.Context()) // the error of a producer that had to stop
		for _, f := range fs {
			if _, err := f.Wait(t.Context()); err != nil {
				typed(t, err)
			}
		}
		if way.left.Load() == 2 {
			t.Error("it has not met with the answer")
		}
	})
}
