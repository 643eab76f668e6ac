package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory"
)

// later are the codes of access control, which is not built.
var later = []string{"unauthenticated", "forbidden", "rate-limited"}

// appendErr answers appends with err.
func appendErr(err error) func(t *testing.T) *answer {
	return func(t *testing.T) *answer {
		st := memory.Open(memory.Options{})
		e := newEnvOver(t, &failingStore{Store: st, append: func(context.Context, store.Append) (store.Ack, error) {
			return store.Ack{}, err
		}})
		return e.json("POST", e.topic("t")+"/batches", one)
	}
}

const one = `{"records":[{"value":1}]}`

func oneAt(pid, epoch, seq string) string {
	return `{"pid":` + pid + `,"epoch":` + epoch + `,"baseSeq":` + seq + `,"records":[{"value":1}]}`
}

// TestEveryCodeIsReached makes the server answer with every code of the table.
func TestEveryCodeIsReached(t *testing.T) {
	on := func(f func(e *env, p string) *answer) func(*testing.T) *answer {
		return func(t *testing.T) *answer {
			e := newEnv(t)
			e.json("POST", "/producers", "").is(201)
			return f(e, e.topic("t"))
		}
	}
	cases := map[string]func(t *testing.T) *answer{
		"malformed-request":      on(func(e *env, p string) *answer { return e.json("POST", p+"/batches", `{`) }),
		"invalid-argument":       on(func(e *env, p string) *answer { return e.json("POST", p+"/batches", `{"records":[]}`) }),
		"unsupported-media-type": on(func(e *env, _ string) *answer { return e.do("POST", "/topics", `{}`, "Content-Type: text/plain") }),
		"too-large": on(func(e *env, p string) *answer {
			return e.do("POST", p+"/batches", strings.Repeat("x", 1<<20+1), "Content-Type: text/plain")
		}),
		"not-acceptable":     on(func(e *env, p string) *answer { return e.get(p+"/records", "Accept: image/png") }),
		"not-found":          on(func(e *env, _ string) *answer { return e.get("/nothing") }),
		"method-not-allowed": on(func(e *env, _ string) *answer { return e.do("PUT", "/limits", "") }),
		"headers-too-large":  on(func(e *env, _ string) *answer { return e.get("/limits", "X-Big: "+strings.Repeat("x", 70_000)) }),
		"version-mismatch":   on(func(e *env, _ string) *answer { return e.do("DELETE", "/topics/t", "", `If-Match: "x"`) }),
		"cross-origin": on(func(e *env, _ string) *answer {
			return e.do("DELETE", "/topics/t", "", "Sec-Fetch-Site: cross-site", "Origin: http://evil.example")
		}),
		"unknown-topic":     on(func(e *env, _ string) *answer { return e.get("/topics/u") }),
		"unknown-partition": on(func(e *env, _ string) *answer { return e.get("/topics/t/partitions/1") }),
		"topic-exists":      on(func(e *env, _ string) *answer { return e.json("POST", "/topics", `{"name":"t"}`) }),
		"records-trimmed": on(func(e *env, p string) *answer {
			e.json("POST", p+"/batches", one).is(200)
			e.do("DELETE", p+"/records?before=1", "").is(200)
			return e.get(p + "/records?offset=0")
		}),
		"offset-out-of-range": on(func(e *env, p string) *answer { return e.get(p + "/records?offset=1") }),
		"unknown-snapshot":    on(func(e *env, _ string) *answer { return e.get("/snapshots/t/0/9") }),
		"idempotence-required": on(func(e *env, p string) *answer {
			e.json("PATCH", "/topics/t", `{"requireIdempotence":true}`).is(200)
			return e.json("POST", p+"/batches", one)
		}),
		"unknown-producer-id": on(func(e *env, p string) *answer { return e.json("POST", p+"/batches", oneAt("99", "0", "0")) }),
		"sequence-reused": on(func(e *env, p string) *answer {
			e.json("POST", p+"/batches", oneAt("0", "0", "0")).is(200)
			return e.json("POST", p+"/batches", `{"pid":0,"epoch":0,"baseSeq":0,"records":[{"value":2}]}`)
		}),
		"sequence-overlap": on(func(e *env, p string) *answer {
			e.json("POST", p+"/batches", oneAt("0", "0", "0")).is(200)
			return e.json("POST", p+"/batches", `{"pid":0,"epoch":0,"baseSeq":0,"records":[{"value":1},{"value":2}]}`)
		}),
		"out-of-order-sequence": on(func(e *env, p string) *answer {
			return e.json("POST", p+"/batches", oneAt("0", "0", "3"), "Prefer: wait=0")
		}),
		"producer-fenced": on(func(e *env, p string) *answer {
			e.json("POST", p+"/batches", oneAt("0", "5", "0")).is(200)
			return e.json("POST", p+"/batches", oneAt("0", "4", "1"))
		}),
		"producer-expired": on(func(e *env, p string) *answer {
			e.json("POST", p+"/batches", oneAt("0", "0", "0")).is(200)
			e.do("DELETE", p+"/producers/0", "").is(204)
			return e.json("POST", p+"/batches", oneAt("0", "0", "1"))
		}),
		"not-ready": func(t *testing.T) *answer { return newEnvWithoutStore(t).get("/topics") },
		"draining": on(func(e *env, p string) *answer {
			e.server.Drain()
			return e.json("POST", p+"/batches", one)
		}),
		// What only a disk in trouble, or a race, brings about.
		"overloaded":     appendErr(store.Errorf(store.CodeOverloaded, "full")),
		"storage-full":   appendErr(store.Errorf(store.CodeStorageFull, "full")),
		"storage-failed": appendErr(&store.Error{Code: store.CodeStorageFailed, Err: errors.New("fsync: EIO")}),
		"topic-deleting": appendErr(store.Errorf(store.CodeTopicDeleting, "going")),
		"internal":       appendErr(errors.New("secret path /var/x")),
		"records-damaged": func(t *testing.T) *answer {
			e := newEnvOver(t, &failingStore{Store: memory.Open(memory.Options{}), read: func() (store.Records, error) {
				return store.Records{}, store.Errorf(store.CodeRecordsDamaged, "CRC")
			}})
			return e.get(e.topic("t") + "/records")
		},
		"producers-exhausted": func(t *testing.T) *answer {
			return newEnvOver(t, &failingStore{Store: memory.Open(memory.Options{}), allocate: func() (store.ProducerID, error) {
				return store.ProducerID{}, store.Errorf(store.CodeProducersExhausted, "no id is left")
			}}).json("POST", "/producers", "")
		},
		"commit-timeout": func(t *testing.T) *answer {
			e := newEnvOver(t, &failingStore{Store: memory.Open(memory.Options{}), append: func(ctx context.Context, _ store.Append) (store.Ack, error) {
				<-ctx.Done()
				return store.Ack{}, ctx.Err()
			}}, func(o *server.Options) { o.CommitTimeout = time.Millisecond })
			return e.json("POST", e.topic("t")+"/batches", one)
		},
	}
	for _, p := range openapi.ProblemTypes() {
		if slices.Contains(later, p.Code) {
			continue
		}
		t.Run(p.Code, func(t *testing.T) {
			reach, ok := cases[p.Code]
			if !ok {
				t.Fatal("no case reaches it")
			}
			a := reach(t)
			a.problem(p.Code)
			sample, err := json.Marshal(p.Sample())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(memberNames(t, sample), memberNames(t, a.body)); d != "" {
				t.Errorf("the sample on the code's page (-) and the answer (+) have other members:\n%s", d)
			}
			delete(cases, p.Code)
		})
	}
	for code := range cases {
		t.Errorf("%s is answered, but is not in the table", code)
	}
}

func memberNames(t *testing.T, object []byte) []string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(members))
}

func TestSequenceProblemMembers(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.json("POST", "/producers", "").is(201)
	post := func(body string) *answer { return e.json("POST", p+"/batches", body) }

	got := post(oneAt("0", "0", "2")).problem("out-of-order-sequence")
	if *got.ExpectedSeq != 0 || *got.ReceivedSeq != 2 || *got.Gap != 2 || !got.LastSeq.Present || got.LastSeq.Value != nil ||
		!got.CurrentEpoch.Present || got.CurrentEpoch.Value != nil {
		t.Errorf("unknown producer: %+v", got)
	}
	post(oneAt("0", "3", "0")).is(200)
	got = post(oneAt("0", "3", "9")).problem("out-of-order-sequence")
	if *got.ExpectedSeq != 1 || *got.ReceivedSeq != 9 || *got.Gap != 8 || *got.LastSeq.Value != 0 || *got.CurrentEpoch.Value != 3 {
		t.Errorf("gap: %+v", got)
	}
	got = post(oneAt("0", "2", "1")).problem("producer-fenced")
	if *got.CurrentEpoch.Value != 3 {
		t.Errorf("fenced: %+v", got)
	}
	got = post(`{"pid":0,"epoch":3,"baseSeq":0,"records":[{"value":2}]}`).problem("sequence-reused")
	if *got.OriginalOffset != 0 {
		t.Errorf("reused: %+v", got)
	}
	got = post(`{"pid":0,"epoch":3,"baseSeq":0,"records":[{"value":1},{"value":1}]}`).problem("sequence-overlap")
	if *got.ExpectedSeq != 1 || *got.ReceivedSeq != 0 {
		t.Errorf("overlap: %+v", got)
	}
	e.do("DELETE", p+"/producers/0", "").is(204)
	got = post(oneAt("0", "3", "1")).problem("producer-expired")
	if *got.LastSeq.Value != 0 || *got.LastEpoch != 3 || *got.Action != "bump-epoch" || len(*got.ExpiredAt) != len("2026-01-02T03:04:05.678Z") {
		t.Errorf("expired: %+v", got)
	}
	for _, a := range []*answer{e.get(p + "/producers/0"), e.do("DELETE", p+"/producers/0", "")} {
		left := a.problem("unknown-producer-id")
		if *left.LastSeq.Value != 0 || *left.LastEpoch != 3 || *left.ExpiredAt != *got.ExpiredAt || left.Action != nil {
			t.Errorf("what is left of it: %+v", left)
		}
	}
}

func TestInternalKeepsItsSecret(t *testing.T) {
	a := appendErr(errors.New("secret path /var/x"))(t)
	if strings.Contains(string(a.body), "secret") {
		t.Errorf("the cause went to the client: %s", a.body)
	}
}

func TestPanicIsAProblemAndLogged(t *testing.T) {
	e := newEnvOver(t, &failingStore{Store: memory.Open(memory.Options{}), append: func(context.Context, store.Append) (store.Ack, error) {
		panic("oh no")
	}})
	a := e.json("POST", e.topic("t")+"/batches", one, "X-Request-Id: here")
	a.problem("internal")
	var panicked bool
	for _, line := range e.log.lines(t) {
		if line["msg"] == "panic in a handler" {
			panicked = line["request.id"] == "here" && strings.Contains(line["stack"].(string), "faults_test.go")
		}
	}
	if !panicked {
		t.Errorf("no log line with id and stack: %v", e.log.lines(t))
	}
}

func TestBytesThatAreNoBatchAreAnInternalProblem(t *testing.T) {
	e := newEnvOver(t, &failingStore{Store: memory.Open(memory.Options{}), read: func() (store.Records, error) {
		// The engine has promised to have checked them.
		return store.Records{HighWatermark: 1, Batches: []store.StoredBatch{{Bytes: nil}}}, nil
	}})
	e.get(e.topic("t") + "/records").problem("internal")
}

// What fails when an answer has begun must not look like the end of the answer.
func TestFailureInTheMiddleCutsTheConnection(t *testing.T) {
	st := memory.Open(memory.Options{})
	reads := 0
	e := newEnvOver(t, &failingStore{Store: st, read: func() (store.Records, error) {
		if reads++; reads == 1 {
			return store.Records{}, nil
		}
		return store.Records{}, errors.New("the disk is gone")
	}})
	p := e.topic("t")
	e.json("POST", p+"/batches", one).is(200)
	next, _ := e.follow(t.Context(), p+"/records?offset=0", "X-Request-Id: cut")
	for {
		_, err := next()
		if errors.Is(err, io.EOF) {
			t.Fatal("the stream ended as if all was well")
		}
		if err != nil {
			break
		}
	}
	for _, line := range e.log.lines(t) {
		if line["request.id"] == "cut" && line["level"] == "ERROR" && line["error"] == "the disk is gone" {
			return
		}
	}
	t.Errorf("not in the log: %v", e.log.lines(t))
}

func TestMethodNotAllowedListsMethods(t *testing.T) {
	e := newEnv(t)
	for path, want := range map[string]string{
		"/topics":                        "GET, HEAD, POST",
		"/topics/t":                      "GET, HEAD, PUT, PATCH, DELETE",
		"/topics/t/partitions/0/batches": "GET, HEAD, POST",
		"/topics/t/partitions/0/roll":    "POST",
		"/snapshots/t/0/1/verify":        "POST",
		"/topics/a%2Fb":                  "GET, HEAD, PUT, PATCH, DELETE",
	} {
		a := e.do("OPTIONS", path, "")
		a.problem("method-not-allowed")
		if got := a.header.Get("Allow"); got != want {
			t.Errorf("%s: Allow %q, want %q", path, got, want)
		}
	}
	e.do("BREW", "/nothing", "").problem("not-found")
	e.do("BREW", "/limits", "").problem("method-not-allowed")
}

func TestProblemPages(t *testing.T) {
	e := newEnv(t)
	index := e.get("/problems").is(200)
	for _, p := range openapi.ProblemTypes() {
		page := e.get(p.Path()).is(200)
		for _, a := range []*answer{index, page} {
			if !strings.Contains(string(a.body), p.Code) {
				t.Errorf("%s is not on its page", p.Code)
			}
			if csp := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; ") || strings.Contains(csp, "unsafe") {
				t.Errorf("Content-Security-Policy %q", csp)
			}
		}
	}
	e.get("/problems/none").problem("not-found")
}

func TestNotReadyUntilServe(t *testing.T) {
	e := newEnvWithoutStore(t)
	for _, path := range []string{"/topics", "/readyz", "/topics/t/partitions/0/records", "/snapshots"} {
		e.get(path).problem("not-ready")
	}
	e.json("POST", "/topics/t/partitions/0/batches", "{").problem("not-ready")
	for _, path := range []string{"/livez", "/version", "/limits", "/metrics", "/openapi.json", "/openapi.yaml", "/problems"} {
		e.get(path).is(200)
	}
	e.server.Serve(memory.Open(memory.Options{}))
	e.get("/readyz").is(200)
}

func TestDrain(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.server.Drain()
	e.server.Drain()
	e.json("POST", p+"/batches", one).problem("draining")
	e.get("/readyz").problem("draining")
	e.get(p+"/records", "Accept: text/event-stream").problem("draining")
	e.get(p + "/records?waitMs=60000").is(200) // at once
	e.get("/livez").is(http.StatusOK)
}

func TestReadyzSaysWhy(t *testing.T) {
	e := newEnvOver(t, &failingStore{Store: memory.Open(memory.Options{}), ready: func() error {
		return store.Errorf(store.CodeStorageFull, "the disk is full")
	}})
	e.get("/readyz").problem("storage-full")
}
