package server_test

import (
	"io"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
)

func TestService(t *testing.T) {
	e := newEnv(t)
	if got := as[openapi.Version](e.get("/version").is(200)); got.Version != "0.0.0-test" || got.Revision != "abc" || got.API != "1" || !strings.HasPrefix(got.Go, "go1") {
		t.Errorf("%+v", got)
	}
	if got := as[openapi.Limits](e.get("/limits").is(200)); got.MaxBodyBytes != 16<<20 || got.ProducerWindow != 5 || got.MaxSequence != 1<<53-1 {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if got := e.get(path).is(200); string(got.body) != "{\"status\":\"ok\"}\n" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	doc := e.get("/openapi.json").is(200)
	e.get("/openapi.json", "If-None-Match: "+doc.header.Get("Etag")).is(304)
	for _, path := range []string{"/openapi-3.0.json", "/openapi.yaml", "/docs", "/"} {
		e.get(path).is(200)
	}
	for _, path := range []string{"/Topics", "/topics/t/", "//topics", "/topics/t/partitions/", "/topi%63s", "/."} {
		e.get(path).problem("not-found")
	}
}

func TestRequestID(t *testing.T) {
	e := newEnv(t)
	if got := e.get("/livez", "X-Request-Id: caller 1").header.Get("X-Request-Id"); got != "caller 1" {
		t.Errorf("not echoed: %q", got)
	}
	seen := map[string]bool{}
	for _, bad := range []string{"", strings.Repeat("x", 129), "\xc3\xa4", "tab\there"} {
		headers := []string{}
		if bad != "" {
			headers = append(headers, "X-Request-Id: "+bad)
		}
		got := e.get("/livez", headers...).header.Get("X-Request-Id")
		if len(got) != 16 || seen[got] {
			t.Errorf("%q: minted %q", bad, got)
		}
		seen[got] = true
	}
	if got := e.get("/livez", "X-Request-Id: a", "X-Request-Id: b").header.Values("X-Request-Id"); len(got) != 1 || len(got[0]) != 16 {
		t.Errorf("two ids: %q", got)
	}
}

func TestLogLine(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.json("POST", p+"/batches", `{"records":[{"valueText":"secret"}]}`, "X-Request-Id: ok").is(200)
	e.json("POST", p+"/batches", `{"records":[{"valueText":"secret"},{}]}`, "X-Request-Id: bad").problem(malformed)
	e.get("/livez", "X-Request-Id: probe")
	want := map[string]map[string]any{
		"ok":    {"level": "INFO", "status": 200.0, "method": "POST", "path": p + "/batches", "route": "/topics/{topic}/partitions/{partition}/batches"},
		"bad":   {"level": "WARN", "status": 400.0, "problem.code": malformed},
		"probe": {"level": "DEBUG", "status": 200.0},
	}
	for _, line := range e.log.lines(t) {
		for member, v := range want[line["request.id"].(string)] {
			if line[member] != v {
				t.Errorf("%v: %s is %v, want %v", line["request.id"], member, line[member], v)
			}
		}
		delete(want, line["request.id"].(string))
		for _, v := range line {
			if s, ok := v.(string); ok && strings.Contains(s, "secret") {
				t.Errorf("a body is in the log: %v", line)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not logged: %v", want)
	}
}

func TestMetrics(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.json("POST", p+"/batches", one).is(200)
	e.get("/nothing").problem("not-found")
	e.do("BREW", "/nothing", "").problem("not-found")
	body := string(e.get("/metrics").is(200).body)
	for _, want := range []string{
		"oncelog_batches_stored_total 1\n", "oncelog_records_stored_total 1\n",
		`oncelog_http_requests_total{code="200",method="POST",route="/topics/{topic}/partitions/{partition}/batches"} 1`,
		`oncelog_http_requests_total{code="404",method="other",route=""} 1`,
		`oncelog_http_request_duration_seconds_count{method="PUT",route="/topics/{topic}"} 1`,
		`oncelog_build_info{go="go`, "oncelog_http_requests_in_flight 1\n", "go_goroutines ",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}
}

func TestCrossOrigin(t *testing.T) {
	e := newEnv(t)
	e.topic("t")
	evil := []string{"Sec-Fetch-Site: cross-site", "Origin: http://evil.example"}
	e.json("PUT", "/topics/u", `{}`, evil...).problem("cross-origin")
	e.do("POST", "/topics/t/partitions/0/batches", "x", "Origin: http://evil.example").problem("cross-origin")
	a := e.get("/topics", evil...).is(200)
	if a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("CORS is on")
	}
	e.json("PUT", "/topics/u", `{}`, "Sec-Fetch-Site: same-origin", "Origin: "+e.url).is(201)
	e.json("PUT", "/topics/v", `{}`).is(201)
}

func TestCORS(t *testing.T) {
	const friend = "https://friend.example"
	e := newEnv(t, func(o *server.Options) { o.CORSOrigins = []string{friend} })
	a := e.unchecked().do("OPTIONS", "/topics/t", "", "Origin: "+friend, "Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: content-type")
	if a.header.Get("Access-Control-Allow-Origin") != friend || a.header.Get("Access-Control-Allow-Methods") != "PUT" {
		t.Errorf("preflight: %d %v", a.status, a.header)
	}
	got := e.json("PUT", "/topics/t", `{}`, "Sec-Fetch-Site: cross-site", "Origin: "+friend).is(201)
	if got.header.Get("Access-Control-Allow-Origin") != friend || !strings.Contains(strings.ToLower(got.header.Get("Access-Control-Expose-Headers")), "idempotent-replayed") {
		t.Errorf("%v", got.header)
	}
	e.json("PUT", "/topics/u", `{}`, "Sec-Fetch-Site: cross-site", "Origin: https://evil.example").problem("cross-origin")

	all := newEnv(t, func(o *server.Options) { o.CORSOrigins = []string{"*"} })
	all.json("PUT", "/topics/u", `{}`, "Sec-Fetch-Site: cross-site", "Origin: https://any.example").is(201)
	for _, bad := range []string{"friend.example", "https://friend.example/path", ""} {
		if _, err := server.New(server.Options{CORSOrigins: []string{bad}}); err == nil {
			t.Errorf("origin %q is taken", bad)
		}
	}
}

func TestNoSniffEverywhere(t *testing.T) {
	e := newEnv(t)
	for _, path := range []string{"/", "/topics", "/nothing", "/metrics", "/problems"} {
		if got := e.get(path).header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestZeroOptionsWork(t *testing.T) {
	s, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	url, client := newContractServer(t, s)
	resp, err := client.Get(url + "/version")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
		t.Errorf("status %d, %v", resp.StatusCode, err)
	}
}
