package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store/batch"
)

func TestAppendAnswers(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	if got := string(e.json("POST", "/producers", "").is(201).body); got != "{\"pid\":0,\"epoch\":0}\n" {
		t.Fatalf("first producer: %s", got)
	}

	const body = `{"pid":0,"epoch":0,"baseSeq":0,"records":[{"value":1},{"valueText":"two"},{"valueBase64":"Mw=="}]}`
	first := e.json("POST", p+"/batches", body).is(200)
	got := as[openapi.AppendResponse](first)
	if *got.BaseOffset != 0 || *got.LastOffset != 2 || *got.NextSeq != 3 || got.Duplicate || got.Topic != "t" || got.Partition != 0 {
		t.Errorf("first answer: %s", first.body)
	}
	if first.header.Get("Idempotent-Replayed") != "" {
		t.Error("a first append is said to be replayed")
	}

	again := e.json("POST", p+"/batches", body).is(200)
	want := strings.Replace(string(first.body), `"duplicate":false`, `"duplicate":true`, 1)
	if d := cmp.Diff(want, string(again.body)); d != "" {
		t.Errorf("a duplicate's answer is not that of the first time (-want +got):\n%s", d)
	}
	if again.header.Get("Idempotent-Replayed") != "true" {
		t.Error("a duplicate lacks Idempotent-Replayed")
	}

	plain := e.json("POST", p+"/batches", `{"records":[{"value":null}]}`).is(200)
	if bytes.Contains(plain.body, []byte("nextSeq")) {
		t.Errorf("a plain append has nextSeq: %s", plain.body)
	}
	if n := e.records(p).NextOffset; n != 4 {
		t.Errorf("%d records stored, want 4", n)
	}
}

func TestForgottenDuplicateHasNullOffsets(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.json("POST", "/producers", "").is(201)
	batchAt := func(seq string) *answer {
		return e.json("POST", p+"/batches", `{"pid":0,"epoch":0,"baseSeq":`+seq+`,"records":[{"value":1}]}`).is(200)
	}
	for _, seq := range []string{"0", "1", "2", "3", "4", "5"} {
		batchAt(seq)
	}
	got := string(batchAt("0").body)
	const want = `{"topic":"t","partition":0,"baseOffset":null,"lastOffset":null,"nextSeq":1,"duplicate":true,"appendedAt":null}` + "\n"
	if got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

// A retry is recognised whatever form carries it: what the client said is the same.
func TestSameBatchInEveryForm(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.json("POST", "/producers", "").is(201)
	const query = "?pid=0&epoch=0&baseSeq=0"
	var b batch.Builder
	b.Add(&batch.Record{Key: []byte("k"), KeyForm: batch.FormText, Value: []byte("v"), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
	binary := string(b.Build().Bytes)

	e.json("POST", p+"/batches", `{"pid":0,"epoch":0,"baseSeq":0,"records":[{"key":"k","valueText":"v"}]}`).is(200)
	for name, a := range map[string]*answer{
		"JSON, coded": e.json("POST", p+"/batches", `{"records":[{"keyBase64":"aw==","valueBase64":"dg=="}],"baseSeq":0,"epoch":0,"pid":0}`),
		"NDJSON":      e.do("POST", p+"/batches"+query, "{\"key\":\"k\",\"valueText\":\"v\"}\n", "Content-Type: application/x-ndjson"),
		"raw, query":  e.do("POST", p+"/batches"+query, "v", "Content-Type: text/plain", "Record-Key: k"),
		"raw, header": e.do("POST", p+"/batches", "v", "Producer-Id: 0", "Producer-Epoch: 0", "Producer-Seq: 0", "Record-Key: k"),
		"both":        e.do("POST", p+"/batches"+query, "v", "Producer-Id: 0", "Producer-Epoch: 0", "Producer-Seq: 0", "Record-Key: k"),
		"binary":      e.do("POST", p+"/batches"+query, binary, "Content-Type: "+batch.ContentType),
	} {
		if got := as[openapi.AppendResponse](a.is(200)); !got.Duplicate || *got.BaseOffset != 0 {
			t.Errorf("%s: %s", name, a.body)
		}
	}
}

func TestStoredForms(t *testing.T) {
	e := newEnv(t).unchecked() // blank lines and empty bodies
	p := e.topic("t")
	e.do("POST", p+"/batches", "{\"value\":{\"a\":[1,  2]}}\r\n{\"key\":\"\",\"valueText\":\"\",\"headers\":[{\"name\":\"h\",\"value\":\"\"},{\"name\":\"h\",\"value\":\"2\"}]}\n\n", "Content-Type: application/x-ndjson").is(200)
	e.json("POST", p+"/batches", `{"records":[
		{"keyBase64":"AAE=","valueBase64":"","timestamp":1},
		{"value":null,"timestamp":"2026-01-02T04:04:05.6789+01:00"},
		{"valueText":"\ud83d\ude00\u0000\n\"","\u006bey":"esc\u0061ped"}]}`).is(200)
	e.do("POST", p+"/batches", "text", "Content-Type: text/plain; charset=utf-8").is(200)
	e.do("POST", p+"/batches", "\xff", "Content-Type: text/plain").is(200)
	e.do("POST", p+"/batches", "png", "Content-Type: image/png").is(200)
	e.do("POST", p+"/batches", "").is(200)
	var list struct {
		Records []map[string]json.RawMessage `json:"records"`
	}
	if err := json.Unmarshal(e.get(p+"/records").body, &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range list.Records {
		delete(r, "offset")
		if string(r["headers"]) == "[]" {
			delete(r, "headers")
		}
		if !strings.HasPrefix(string(r["timestamp"]), `"1970`) && !strings.HasPrefix(string(r["timestamp"]), `"2026-01-02`) {
			delete(r, "timestamp")
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(b))
	}
	want := []string{
		`{"value":{"a":[1,2]}}`, // json.Marshal compacts; TestJSONValueIsKeptAsSent does not
		`{"headers":[{"name":"h","value":""},{"name":"h","value":"2"}],"key":"","valueText":""}`,
		`{"keyBase64":"AAE=","timestamp":"1970-01-01T00:00:00.001Z","valueBase64":""}`,
		`{"timestamp":"2026-01-02T03:04:05.678Z","value":null}`,
		`{"key":"escaped","valueText":"` + "\U0001F600" + `\u0000\n\""}`,
		`{"contentType":"text/plain; charset=utf-8","valueText":"text"}`,
		`{"contentType":"text/plain","valueBase64":"/w=="}`,
		`{"contentType":"image/png","valueBase64":"cG5n"}`,
		`{"valueBase64":""}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestJSONValueIsKeptAsSent(t *testing.T) {
	e := newEnv(t).unchecked() // numbers that no float64 holds
	p := e.topic("t")
	for _, value := range []string{
		"{ \"b\" : 1e400,\n\t\"a\":[ ] , \"\\u0061b\": \"\\/\\ud83d\\ude00\" }", "1.0", "-0", "12345678901234567890123", `""`, "true", "[1 , 2]", "\"<&>\u2028\"",
	} {
		e.json("POST", p+"/batches", `{"records":[{"value": `+value+" }]}").is(200)
		if got := e.get(p + "/records?offset=-1").is(200); !bytes.Contains(got.body, []byte(`"value":`+value+`,"headers"`)) {
			t.Errorf("sent %s, got %s", value, got.body)
		}
	}
	lines := e.get(p+"/records?limit=1", "Accept: application/x-ndjson").is(200)
	if want := `"value":{"b":1e400,"a":[],"\u0061b":"\/\ud83d\ude00"},`; bytes.Count(lines.body, []byte("\n")) != 1 || !bytes.Contains(lines.body, []byte(want)) {
		t.Errorf("a value with line breaks on NDJSON: %q", lines.body)
	}
}

func TestValuesBase64(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.json("POST", p+"/batches", `{"records":[{"value":1},{"valueText":"a"},{"value":null}]}`).is(200)
	got := e.get(p + "/records?values=base64").is(200)
	list := as[openapi.RecordList](got)
	if *list.Records[0].ValueBase64 != "MQ==" || *list.Records[1].ValueBase64 != "YQ==" || string(list.Records[2].Value) != "null" {
		t.Errorf("%s", got.body)
	}
}

func TestAutoCreateTopics(t *testing.T) {
	e := newEnv(t, func(o *server.Options) { o.AutoCreateTopics = 2 })
	e.json("POST", "/producers", "").is(201)
	const record = `"records":[{"value":1}]}`
	for name, refused := range map[string]struct{ path, body, code string }{
		"partition":    {"/topics/new/partitions/2/batches", `{` + record, "unknown-partition"},
		"pid":          {"/topics/new/partitions/0/batches", `{"pid":7,"epoch":0,"baseSeq":0,` + record, "unknown-producer-id"},
		"sequence":     {"/topics/new/partitions/0/batches", `{"pid":0,"epoch":0,"baseSeq":1,` + record, "out-of-order-sequence"},
		"name":         {"/topics/a%20b/partitions/0/batches", `{` + record, "unknown-topic"},
		"size":         {"/topics/new/partitions/0/batches", `{"records":[{"valueText":"` + strings.Repeat("x", 1<<20+1) + `"}]}`, "too-large"},
		"a read":       {"", "", ""},
		"half a batch": {"/topics/new/partitions/0/batches", `{"pid":0,` + record, "malformed-request"},
	} {
		if refused.path == "" {
			e.get("/topics/new/partitions/0/records").problem("unknown-topic")
			continue
		}
		e.json("POST", refused.path, refused.body).problem(refused.code)
		if got := string(e.get("/topics").is(200).body); !strings.HasPrefix(got, `{"items":[]`) {
			t.Fatalf("a refused append (%s) created a topic: %s", name, got)
		}
	}
	e.json("POST", "/topics/new/partitions/1/batches", `{"pid":0,"epoch":0,"baseSeq":0,`+record).is(200)
	if got := as[openapi.Topic](e.get("/topics/new").is(200)); got.Partitions != 2 {
		t.Errorf("created with %d partitions", got.Partitions)
	}
}

func TestIdempotenceRequired(t *testing.T) {
	e := newEnv(t)
	e.json("PUT", "/topics/t", `{"requireIdempotence":true}`).is(201)
	e.json("POST", "/topics/t/partitions/0/batches", `{"records":[{"value":1}]}`).problem("idempotence-required")
}

func TestPreferNoWait(t *testing.T) {
	e := newEnv(t)
	spy := &spyStore{Store: e.store}
	e.server.Serve(spy)
	p := e.topic("t")
	for prefer, want := range map[string]bool{
		"wait=0": true, `respond-async, Wait="0"`: true, "wait=0;x=1": true, "wait=10": false, "respond-async": false, "": false,
	} {
		headers := []string{}
		if prefer != "" {
			headers = append(headers, "Prefer: "+prefer)
		}
		a := e.json("POST", p+"/batches", `{"records":[{"value":1}]}`, headers...).is(200)
		if spy.last.NoHold != want || (a.header.Get("Preference-Applied") == "wait=0") != want {
			t.Errorf("Prefer %q: NoHold is %v, Preference-Applied %q", prefer, spy.last.NoHold, a.header.Get("Preference-Applied"))
		}
	}
}

func TestContentTypeParameters(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	for _, ct := range []string{"application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
		e.do("POST", p+"/batches", `{"records":[{"value":1}]}`, "Content-Type: "+ct).is(200)
	}
	for _, r := range e.records(p).Records {
		if string(r.Value) != "1" {
			t.Errorf("taken as something else than JSON: %+v", r)
		}
	}
	e.do("POST", p+"/batches", "x", "Content-Type: application/merge-patch+json").is(http.StatusOK)
}
