package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/store/batch"
)

// badInput is a request that must be refused and change nothing.
type badInput struct {
	name, body, code string
	pointers         []string
	headers          []string
	query            string
	path             string // of the partition, if not that of the topic t
}

func at(pointers ...string) []string {
	for i, p := range pointers { // names of parameters and header fields get a slash
		if p != "" && p[0] != '/' {
			pointers[i] = "/" + p
		}
	}
	return pointers
}

const (
	malformed = "malformed-request"
	invalid   = "invalid-argument"
)

func inRecord(members string) string { return `{"records":[{` + members + `}]}` }

func withIDs(pid, epoch, seq string) string {
	return `{"pid":` + pid + `,"epoch":` + epoch + `,"baseSeq":` + seq + `,"records":[{"value":1}]}`
}

func badJSON() []badInput {
	long := func(n int) string { return strings.Repeat("k", n) }
	return []badInput{
		{name: "pid alone", body: `{"pid":0,"records":[{"value":1}]}`, code: malformed, pointers: at("/epoch", "/baseSeq")},
		{name: "no pid", body: `{"epoch":0,"baseSeq":0,"records":[{"value":1}]}`, code: malformed, pointers: at("/pid")},
		{name: "no baseSeq, and empty", body: `{"epoch":0,"pid":0,"records":[]}`, code: malformed, pointers: at("/baseSeq")},
		{name: "negative", body: withIDs("-1", "0", "0"), code: malformed, pointers: at("/pid")},
		{name: "minus zero", body: withIDs("0", "-0", "0"), code: malformed, pointers: at("/epoch")},
		{name: "fraction", body: withIDs("0", "0", "1.5"), code: malformed, pointers: at("/baseSeq")},
		{name: "whole fraction", body: withIDs("0", "0", "1.0"), code: malformed, pointers: at("/baseSeq")},
		{name: "exponent", body: withIDs("1e3", "0", "0"), code: malformed, pointers: at("/pid")},
		{name: "above 2^53-1", body: withIDs("0", "9007199254740992", "0"), code: malformed, pointers: at("/epoch")},
		{name: "far above", body: withIDs("0", "18446744073709551617", "0"), code: malformed, pointers: at("/epoch")},
		{name: "a string number", body: withIDs(`"0"`, "0", "0"), code: malformed, pointers: at("/pid")},
		{name: "null", body: withIDs("null", "null", "null"), code: malformed, pointers: at("/pid")},
		{name: "sequences past 2^53-1", body: `{"pid":0,"epoch":0,"baseSeq":9007199254740991,"records":[{"value":1},{"value":2}]}`, code: invalid, pointers: at("/baseSeq")},
		{name: "unknown member", body: `{"records":[{"value":1}],"producer":1}`, code: malformed, pointers: at("/producer")},
		{name: "wrong case", body: `{"Records":[{"value":1}]}`, code: malformed, pointers: at("/Records")},
		{name: "doubled member", body: `{"records":[{"value":1}],"records":[]}`, code: malformed, pointers: at("/records")},
		{name: "doubled by an escape", body: inRecord(`"value":1,"\u0076alue":2`), code: malformed, pointers: at("/records/0/value")},
		{name: "doubled in a value", body: inRecord(`"value":{"a":{"b":1,"b":2}}`), code: malformed, pointers: at("/records/0/value/a/b")},
		{name: "unknown in a record", body: `{"records":[{"value":1},{"value":1,"ts":1}]}`, code: malformed, pointers: at("/records/1/ts")},
		{name: "unknown in a header", body: inRecord(`"value":1,"headers":[{"name":"a","value":"b","c":1}]`), code: malformed, pointers: at("/records/0/headers/0/c")},
		{name: "trailing data", body: one + `{}`, code: malformed, pointers: at("")},
		{name: "trailing garbage", body: one + `x`, code: malformed, pointers: at("")},
		{name: "no records", body: `{}`, code: malformed, pointers: at("/records")},
		{name: "records null", body: `{"records":null}`, code: malformed, pointers: at("/records")},
		{name: "empty records", body: `{"records":[]}`, code: invalid, pointers: at("/records")},
		{name: "not an object", body: `[]`, code: malformed, pointers: at("")},
		{name: "empty body", body: ``, code: malformed, pointers: at("")},
		{name: "cut JSON", body: `{"records":[{"value":1}`, code: malformed, pointers: at("/records")},
		{name: "record no object", body: `{"records":[1]}`, code: malformed, pointers: at("/records/0")},
		{name: "no value", body: inRecord(`"key":"k"`), code: malformed, pointers: at("/records/0")},
		{name: "two values", body: inRecord(`"value":1,"valueText":"1"`), code: malformed, pointers: at("/records/0")},
		{name: "three values", body: inRecord(`"value":null,"valueText":"1","valueBase64":""`), code: malformed, pointers: at("/records/0")},
		{name: "two keys", body: inRecord(`"value":1,"key":"","keyBase64":""`), code: malformed, pointers: at("/records/0")},
		{name: "key null", body: inRecord(`"value":1,"key":null`), code: malformed, pointers: at("/records/0/key")},
		{name: "text no string", body: inRecord(`"valueText":1`), code: malformed, pointers: at("/records/0/valueText")},
		{name: "base64 unpadded", body: inRecord(`"valueBase64":"YQ"`), code: malformed, pointers: at("/records/0/valueBase64")},
		{name: "base64url", body: inRecord(`"valueBase64":"-_=="`), code: malformed, pointers: at("/records/0/valueBase64")},
		{name: "base64 with a line end", body: inRecord(`"keyBase64":"YWJj\nYWJj","value":1`), code: malformed, pointers: at("/records/0/keyBase64")},
		{name: "base64 with loose bits", body: inRecord(`"valueBase64":"YR=="`), code: malformed, pointers: at("/records/0/valueBase64")},
		{name: "bad UTF-8", body: inRecord("\"valueText\":\"\xff\""), code: malformed, pointers: at("/records/0/valueText")},
		{name: "bad UTF-8 in a value", body: inRecord("\"value\":[\"\xc0\x80\"]"), code: malformed, pointers: at("/records/0/value/0")},
		{name: "half a surrogate pair", body: inRecord(`"valueText":"\ud800"`), code: malformed, pointers: at("/records/0/valueText")},
		{name: "raw control character", body: inRecord("\"valueText\":\"\n\""), code: malformed, pointers: at("/records/0/valueText")},
		{name: "long key", body: inRecord(`"value":1,"key":"` + long(32<<10+1) + `"`), code: invalid, pointers: at("/records/0/key")},
		{name: "long header name", body: inRecord(`"value":1,"headers":[{"name":"` + long(257) + `","value":""}]`), code: invalid, pointers: at("/records/0/headers/0/name")},
		{name: "empty header name", body: inRecord(`"value":1,"headers":[{"name":"","value":""}]`), code: invalid, pointers: at("/records/0/headers/0/name")},
		{name: "long header value", body: inRecord(`"value":1,"headers":[{"name":"a","value":"` + long(8<<10+1) + `"}]`), code: invalid, pointers: at("/records/0/headers/0/value")},
		{name: "too many headers", body: inRecord(`"value":1,"headers":[` + strings.Repeat(`{"name":"a","value":""},`, 64) + `{"name":"a","value":""}]`), code: invalid, pointers: at("/records/0/headers")},
		{name: "header without value", body: inRecord(`"value":1,"headers":[{"name":"a"}]`), code: malformed, pointers: at("/records/0/headers/0")},
		{name: "headers an object", body: inRecord(`"value":1,"headers":{}`), code: malformed, pointers: at("/records/0/headers")},
		{name: "bad timestamp", body: inRecord(`"value":1,"timestamp":"yesterday"`), code: malformed, pointers: at("/records/0/timestamp")},
		{name: "timestamp with one digit", body: inRecord(`"value":1,"timestamp":"2026-01-02T3:04:05Z"`), code: malformed, pointers: at("/records/0/timestamp")},
		{name: "timestamp with a comma", body: inRecord(`"value":1,"timestamp":"2026-01-02T03:04:05,5Z"`), code: malformed, pointers: at("/records/0/timestamp")},
		{name: "timestamp in a strange zone", body: inRecord(`"value":1,"timestamp":"2026-01-02T03:04:05+24:00"`), code: malformed, pointers: at("/records/0/timestamp")},
		{name: "timestamp without zone", body: inRecord(`"value":1,"timestamp":"2026-01-02T03:04:05"`), code: malformed, pointers: at("/records/0/timestamp")},
		{name: "timestamp on a day that is not", body: inRecord(`"value":1,"timestamp":"2026-02-30T03:04:05Z"`), code: malformed, pointers: at("/records/0/timestamp")},
		{name: "timestamp fraction", body: inRecord(`"value":1,"timestamp":1.5`), code: malformed, pointers: at("/records/0/timestamp")},
		{name: "timestamp negative", body: inRecord(`"value":1,"timestamp":-1`), code: malformed, pointers: at("/records/0/timestamp")},
		{name: "timestamp null", body: inRecord(`"value":1,"timestamp":null`), code: malformed, pointers: at("/records/0/timestamp")},
		{name: "timestamp before 1970", body: inRecord(`"value":1,"timestamp":"1969-12-31T23:59:59Z"`), code: invalid, pointers: at("/records/0/timestamp")},
		{name: "timestamp after 9999", body: inRecord(`"value":1,"timestamp":253402300800000`), code: invalid, pointers: at("/records/0/timestamp")},
		{name: "allowed not, malformed later", body: `{"records":[{"value":1,"timestamp":253402300800000},{}]}`, code: malformed, pointers: at("/records/1")},
		{name: "two not allowed", body: `{"records":[{"value":1,"timestamp":253402300800000},{"value":1,"headers":[{"name":"","value":""}]}]}`, code: invalid, pointers: at("/records/0/timestamp", "/records/1/headers/0/name")},
		{name: "query with JSON", body: one, query: "?pid=0&epoch=0&baseSeq=0", code: malformed, pointers: at("pid", "epoch", "baseSeq")},
		{name: "producer header with JSON", body: one, headers: []string{"Producer-Id: 0"}, code: malformed, pointers: at("Producer-Id")},
		{name: "key header with JSON", body: one, headers: []string{"Record-Key: k"}, code: malformed, pointers: at("Record-Key")},
	}
}

func badOther() []badInput {
	ndjson := []string{"Content-Type: application/x-ndjson"}
	raw := []string{"Content-Type: text/plain"}
	binary := []string{"Content-Type: " + batch.ContentType}
	record := `{"value":1}`
	header := func(h ...string) []string { return append([]string{"Content-Type: text/plain"}, h...) }
	return []badInput{
		{name: "NDJSON empty", body: "\n", headers: ndjson, code: invalid, pointers: at("/records")},
		{name: "NDJSON blank line", body: record + "\n\n" + record + "\n", headers: ndjson, code: malformed, pointers: at("/records/1")},
		{name: "NDJSON two on a line", body: record + record + "\n", headers: ndjson, code: malformed, pointers: at("/records/0")},
		{name: "NDJSON one on two lines", body: "{\"value\":\n1}\n", headers: ndjson, code: malformed, pointers: at("/records/0/value")},
		{name: "NDJSON bad line", body: record + "\n{\"value\":1,\"x\":2}\n", headers: ndjson, code: malformed, pointers: at("/records/1/x")},
		{name: "NDJSON array", body: "[" + record + "]", headers: ndjson, code: malformed, pointers: at("/records/0")},
		{name: "NDJSON not allowed", body: record + "\n" + `{"value":1,"timestamp":253402300800000}`, headers: ndjson, code: invalid, pointers: at("/records/1/timestamp")},
		{name: "NDJSON with a key header", body: record, headers: append(ndjson, "Record-Key: k"), code: malformed, pointers: at("Record-Key")},
		{name: "query half given", body: "x", headers: raw, query: "?pid=0", code: malformed, pointers: at("epoch", "baseSeq")},
		{name: "query leading zero", body: "x", headers: raw, query: "?pid=00&epoch=0&baseSeq=0", code: malformed, pointers: at("pid", "pid")[:1]},
		{name: "query plus", body: "x", headers: raw, query: "?pid=0&epoch=%2B1&baseSeq=0", code: malformed, pointers: at("epoch")},
		{name: "query empty", body: "x", headers: raw, query: "?pid=&epoch=0&baseSeq=0", code: malformed, pointers: at("pid")},
		{name: "query doubled", body: "x", headers: raw, query: "?pid=0&pid=0&epoch=0&baseSeq=0", code: malformed, pointers: at("pid")},
		{name: "query unknown", body: "x", headers: raw, query: "?seq=0", code: malformed, pointers: at("seq")},
		{name: "query badly escaped", body: "x", headers: raw, query: "?pid=%zz", code: malformed, pointers: at(`"pid=%zz"`)},
		{name: "headers half given", body: "x", headers: header("Producer-Id: 0", "Producer-Seq: 0"), code: malformed, pointers: at("epoch")},
		{name: "header and query differ", body: "x", query: "?pid=0&epoch=0&baseSeq=0", headers: header("Producer-Seq: 1"), code: malformed, pointers: at("Producer-Seq")},
		{name: "header no number", body: "x", query: "?pid=0&epoch=0&baseSeq=0", headers: header("Producer-Seq: 0x0"), code: malformed, pointers: at("Producer-Seq")},
		{name: "header doubled", body: "x", headers: header("Producer-Id: 0", "Producer-Id: 0", "Producer-Epoch: 0", "Producer-Seq: 0"), code: malformed, pointers: at("Producer-Id")},
		{name: "key not UTF-8", body: "x", headers: header("Record-Key: \xff"), code: malformed, pointers: at("Record-Key")},
		{name: "key long", body: "x", headers: header("Record-Key: " + strings.Repeat("k", 32<<10+1)), code: invalid, pointers: at("Record-Key")},
		{name: "media type long", body: "x", headers: []string{"Content-Type: text/" + strings.Repeat("x", 256)}, code: invalid, pointers: at("Content-Type")},
		{name: "no batch", body: "OLx", headers: binary, code: malformed, pointers: at("")},
		{name: "batch with a flipped bit", body: flipped(), headers: binary, code: malformed, pointers: at("")},
		{name: "batch with an empty header name", body: encoded(batch.Record{Headers: []batch.Header{{}}}), headers: binary, code: invalid, pointers: at("/records/0/headers/0/name")},
		{name: "batch with JSON of doubled names", body: encoded(batch.Record{Value: []byte(`{"a":1,"a":2}`), ValueForm: batch.FormJSON}), headers: binary, code: malformed, pointers: at("/records/0/value")},
		{name: "batch with JSON of half a surrogate", body: encoded(batch.Record{Value: []byte(`"\ud800"`), ValueForm: batch.FormJSON}), headers: binary, code: malformed, pointers: at("/records/0/value")},
		{name: "batch with deep JSON", body: encoded(batch.Record{Value: []byte(strings.Repeat("[", 1001) + strings.Repeat("]", 1001)), ValueForm: batch.FormJSON}), headers: binary, code: invalid, pointers: at("/records/0/value")},
		{name: "batch with a long key", body: encoded(batch.Record{Key: make([]byte, 32<<10+1)}), headers: binary, code: invalid, pointers: at("/records/0/key")},
		{name: "batch with a long media type", body: encoded(batch.Record{Value: []byte("x"), ValueForm: batch.FormRaw, ContentType: strings.Repeat("x", 257)}), headers: binary, code: invalid, pointers: at("/records/0/contentType")},
		{name: "media type malformed", body: "x", headers: []string{"Content-Type: ;;"}, code: "unsupported-media-type"},
		{name: "media type without a slash", body: "x", headers: []string{"Content-Type: json"}, code: "unsupported-media-type"},
		{name: "media type doubled", body: one, headers: []string{"Content-Type: application/json", "Content-Type: text/plain"}, code: "unsupported-media-type"},
		{name: "JSON in another charset", body: one, headers: []string{"Content-Type: application/json; charset=latin1"}, code: "unsupported-media-type"},
		{name: "coding unknown", body: "x", headers: header("Content-Encoding: br"), code: "unsupported-media-type"},
		{name: "coding twice", body: "x", headers: header("Content-Encoding: gzip, gzip"), code: "unsupported-media-type"},
		{name: "unknown topic", body: "x", headers: raw, path: "/topics/u/partitions/0", code: "unknown-topic"},
		{name: "unknown partition", body: "x", headers: raw, path: "/topics/t/partitions/1", code: "unknown-partition"},
		{name: "partition far out", body: "x", headers: raw, path: "/topics/t/partitions/9007199254740991", code: "unknown-partition"},
		{name: "partition no number", body: "x", headers: raw, path: "/topics/t/partitions/x", code: malformed, pointers: at("partition")},
		{name: "partition negative", body: "x", headers: raw, path: "/topics/t/partitions/-1", code: malformed, pointers: at("partition")},
		{name: "partition with a zero before", body: "x", headers: raw, path: "/topics/t/partitions/00", code: malformed, pointers: at("partition")},
		{name: "topic ..", body: "x", headers: raw, path: "/topics/../partitions/0", code: "unknown-topic"},
		{name: "topic .. encoded", body: "x", headers: raw, path: "/topics/%2E%2E/partitions/0", code: "unknown-topic"},
		{name: "topic with a slash", body: "x", headers: raw, path: "/topics/t%2Fpartitions%2F0/partitions/0", code: "unknown-topic"},
		{name: "topic too long", body: "x", headers: raw, path: "/topics/" + strings.Repeat("t", 250) + "/partitions/0", code: "unknown-topic"},
		{name: "topic with NUL", body: "x", headers: raw, path: "/topics/t%00/partitions/0", code: "unknown-topic"},
		{name: "bad body on an unknown topic", body: "{", headers: []string{"Content-Type: application/json"}, path: "/topics/u/partitions/0", code: malformed, pointers: at("")},
		{name: "bad body on a bad topic", body: "{", headers: []string{"Content-Type: application/json"}, path: "/topics/../partitions/0", code: malformed, pointers: at("")},
		{name: "unknown pid", body: "x", headers: raw, query: "?pid=7&epoch=0&baseSeq=0", code: "unknown-producer-id"},
	}
}

func encoded(r batch.Record) string {
	var b batch.Builder
	r.Timestamp = batch.NoTimestamp
	b.Add(&r)
	return string(b.Build().Bytes)
}

func flipped() string {
	b := []byte(encoded(batch.Record{Value: []byte("x")}))
	b[len(b)-1] ^= 1
	return string(b)
}

// TestBadInput holds each row to its code, to naming what is at fault, and to changing
// nothing at all.
func TestBadInput(t *testing.T) {
	e := newEnv(t).unchecked() // the document knows these as bad, too
	p := e.topic("t")
	e.json("POST", "/producers", "").is(201)
	e.json("POST", p+"/batches", oneAt("0", "0", "0")).is(200)
	before := state(e, p)
	for _, in := range append(badJSON(), badOther()...) {
		t.Run(in.name, func(t *testing.T) {
			e := *e
			e.t = t
			headers := in.headers
			if !strings.Contains(strings.Join(headers, "\n"), "Content-Type: ") {
				headers = append([]string{"Content-Type: application/json"}, headers...)
			}
			path := p
			if in.path != "" {
				path = in.path
			}
			a := e.do("POST", path+"/batches"+in.query, in.body, headers...)
			got := a.problem(in.code)
			if d := cmp.Diff(in.pointers, pointers(got)); d != "" && in.pointers != nil {
				t.Errorf("pointers (-want +got):\n%s%s", d, a.body)
			}
			if in.code == "unsupported-media-type" && strings.HasPrefix(in.name, "coding") && a.header.Get("Accept-Encoding") != "gzip, zstd" {
				t.Errorf("Accept-Encoding %q", a.header.Get("Accept-Encoding"))
			}
			if d := cmp.Diff(before, state(&e, p)); d != "" {
				t.Errorf("it changed something (-before +after):\n%s", d)
			}
		})
	}
}

// state is everything that a client can see of a partition and its topic.
func state(e *env, p string) []string {
	e.t.Helper()
	var out []string
	for _, path := range []string{p, p + "/records", p + "/batches", "/topics", "/snapshots", "/producers/0"} {
		out = append(out, withoutCounters(e.get(path).is(200).body))
	}
	return out
}

// withoutCounters drops what counts refusals, which refusals do change.
func withoutCounters(body []byte) string {
	s := string(body)
	if i := strings.Index(s, `"counters"`); i >= 0 {
		s = s[:i]
	}
	return s
}

func TestBadTopicBodies(t *testing.T) {
	e := newEnv(t).unchecked()
	e.topic("t")
	before := string(e.get("/topics").is(200).body)
	for _, in := range []struct {
		method, path, body, code string
		pointers                 []string
	}{
		{"POST", "/topics", `{}`, malformed, at("/name")},
		{"POST", "/topics", `{"name":null}`, malformed, at("/name")},
		{"POST", "/topics", `{"name":1}`, malformed, at("/name")},
		{"POST", "/topics", `{"name":""}`, invalid, at("/name")},
		{"POST", "/topics", `{"name":".."}`, invalid, at("/name")},
		{"POST", "/topics", `{"name":"a/b"}`, invalid, at("/name")},
		{"POST", "/topics", `{"name":"` + strings.Repeat("x", 250) + `"}`, invalid, at("/name")},
		{"POST", "/topics", `{"name":"x","partitions":0}`, invalid, at("/partitions")},
		{"POST", "/topics", `{"name":"x","partitions":1025}`, invalid, at("/partitions")},
		{"POST", "/topics", `{"name":"x","partitions":-1}`, malformed, at("/partitions")},
		{"POST", "/topics", `{"name":"x","partitions":1.0}`, malformed, at("/partitions")},
		{"POST", "/topics", `{"name":"x","partitions":"1"}`, malformed, at("/partitions")},
		{"POST", "/topics", `{"name":"x","partitions":null}`, malformed, at("/partitions")},
		{"POST", "/topics", `{"name":"x","retentionMs":-2}`, invalid, at("/retentionMs")},
		{"POST", "/topics", `{"name":"x","retentionMs":-0}`, malformed, at("/retentionMs")},
		{"POST", "/topics", `{"name":"x","retentionMs":1e3}`, malformed, at("/retentionMs")},
		{"POST", "/topics", `{"name":"x","retentionBytes":9007199254740992}`, malformed, at("/retentionBytes")},
		{"POST", "/topics", `{"name":"x","segmentBytes":1,"maxBatchBytes":99999999}`, invalid, at("/segmentBytes", "/maxBatchBytes")},
		{"POST", "/topics", `{"name":"x","requireIdempotence":1}`, malformed, at("/requireIdempotence")},
		{"POST", "/topics", `{"name":"x","Partitions":1}`, malformed, at("/Partitions")},
		{"POST", "/topics", `{"name":"x","name":"y"}`, malformed, at("/name")},
		{"POST", "/topics", `{"name":"x"} {}`, malformed, at("")},
		{"POST", "/topics", `["x"]`, malformed, at("")},
		{"POST", "/topics", ``, malformed, at("")},
		{"POST", "/topics?x=1", `{"name":"x"}`, malformed, at("x")},
		{"PUT", "/topics/%2E%2E", `{}`, invalid, at("topic")},
		{"PUT", "/topics/a%2Fb", `{}`, invalid, at("topic")},
		{"PUT", "/topics/x", `{"name":"x"}`, malformed, at("/name")},
		{"PUT", "/topics/x", `{"partitions":2000}`, invalid, at("/partitions")},
		{"PATCH", "/topics/t", `{"partitions":0}`, invalid, at("/partitions")},
		{"PATCH", "/topics/t", `{"name":null}`, malformed, at("/name")},
		{"PATCH", "/topics/t", `null`, malformed, at("")},
		{"POST", "/producers", `{"name":"x"}`, malformed, at("/name")},
		{"POST", "/topics/t/partitions/0/roll", `{"x":1}`, malformed, at("/x")},
		{"POST", "/snapshots", `{"partition":0}`, malformed, at("/topic")},
		{"POST", "/snapshots", `{"topic":"t","partition":-1}`, malformed, at("/partition")},
		{"POST", "/snapshots", `{"topic":"t","partition":1024}`, invalid, at("/partition")},
	} {
		a := e.json(in.method, in.path, in.body)
		if d := cmp.Diff(in.pointers, pointers(a.problem(in.code))); d != "" {
			t.Errorf("%s %s %s: pointers (-want +got):\n%s", in.method, in.path, in.body, d)
		}
	}
	if after := string(e.get("/topics").is(200).body); after != before {
		t.Errorf("topics before and after:\n%s%s", before, after)
	}
}

func TestBadQueries(t *testing.T) {
	e := newEnv(t).unchecked()
	p := e.topic("t")
	for path, pointer := range map[string]string{
		"/topics?limit=0":                      "limit",
		"/topics?limit=1001":                   "limit",
		"/topics?limit=x":                      "limit",
		"/topics?pageToken=x":                  "pageToken",
		"/topics?pageToken=":                   "pageToken",
		"/topics?pageToken=cDox":               "pageToken", // p:1, a token of producers
		"/producers?pageToken=cDp4":            "pageToken", // p:x
		"/snapshots?pageToken=czp4":            "pageToken", // s:x
		"/snapshots?partition=0":               "topic",
		"/producers/x":                         "pid",
		"/producers/9007199254740992":          "pid",
		"/snapshots/t/0/x":                     "offset",
		"/snapshots/t/x/0":                     "partition",
		"/topics?%a5=1":                        `"%a5=1"`,
		"/topics?limit=%a5":                    `"limit=%a5"`,
		p + "?x=1":                             "x",
		p + "/records?limit=0":                 "limit",
		p + "/records?limit=10001":             "limit",
		p + "/records?maxBytes=0":              "maxBytes",
		p + "/records?maxBytes=67108865":       "maxBytes",
		p + "/records?waitMs=60001":            "waitMs",
		p + "/records?waitMs=-1":               "waitMs",
		p + "/records?values=text":             "values",
		p + "/records?offset=":                 "offset",
		p + "/records?offset=-0":               "offset",
		p + "/records?offset=--1":              "offset",
		p + "/records?offset=1.0":              "offset",
		p + "/records?offset=9007199254740992": "offset",
		p + "/records?offset=Latest":           "offset",
		p + "/batches?offset=x":                "offset",
		p + "/producers?limit=1&limit=1":       "limit",
		p + "/producers/-1":                    "pid",
	} {
		if got := pointers(e.get(path).problem(malformed)); len(got) != 1 || got[0] != "/"+pointer {
			t.Errorf("%s: pointers %q, want %q", path, got, pointer)
		}
	}
	e.do("DELETE", p+"/records", "").problem(malformed)
	e.do("DELETE", p+"/records?before=latest", "").problem(malformed)
	if got := e.get("/topics/..").problem("unknown-topic"); !json.Valid([]byte(`"`+got.Instance+`"`)) || got.Instance != "/topics/.." {
		t.Errorf("instance %q", got.Instance)
	}
}
