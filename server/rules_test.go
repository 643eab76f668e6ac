package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
)

// routeAccess says in the test's own words who may use each route. It is written down
// apart from the server's table, so that both have to be wrong for a hole.
//
// open: nobody is asked. any: whoever has a token. Else the scopes, and what they must
// cover: some (any topic will do), topic (that of the path), all.
var routeAccess = map[string]string{
	"GET /":                 "open",
	"GET /static/{file}":    "open",
	"GET /docs":             "open",
	"GET /livez":            "open",
	"GET /readyz":           "open",
	"GET /openapi.json":     "open",
	"GET /openapi-3.0.json": "open",
	"GET /openapi.yaml":     "open",
	"GET /problems":         "open",
	"GET /problems/{code}":  "open",

	"GET /limits":   "any",
	"GET /version":  "any",
	"POST /tickets": "any",
	"GET /topics":   "any",
	"GET /metrics":  "consume all",
	"GET /events":   "consume all",

	"POST /producers":      "produce some",
	"GET /producers":       "consume all",
	"GET /producers/{pid}": "consume all", // of an id that somebody else has

	"POST /topics":           "admin topic",
	"GET /topics/{topic}":    "produce,consume topic",
	"PUT /topics/{topic}":    "admin topic",
	"PATCH /topics/{topic}":  "admin topic",
	"DELETE /topics/{topic}": "admin topic",

	"GET /topics/{topic}/partitions":                                "produce,consume topic",
	"GET /topics/{topic}/partitions/{partition}":                    "produce,consume topic",
	"POST /topics/{topic}/partitions/{partition}/batches":           "produce topic",
	"GET /topics/{topic}/partitions/{partition}/batches":            "consume topic",
	"GET /topics/{topic}/partitions/{partition}/records":            "consume topic",
	"DELETE /topics/{topic}/partitions/{partition}/records":         "admin topic",
	"POST /topics/{topic}/partitions/{partition}/roll":              "admin topic",
	"GET /topics/{topic}/partitions/{partition}/producers":          "consume topic",
	"GET /topics/{topic}/partitions/{partition}/producers/{pid}":    "consume topic", // of somebody else
	"DELETE /topics/{topic}/partitions/{partition}/producers/{pid}": "admin topic",

	"GET /backup":     "admin all",
	"POST /snapshots": "admin all",
	"GET /snapshots":  "consume all",
	"GET /snapshots/{topic}/{partition}/{offset}":         "consume topic",
	"DELETE /snapshots/{topic}/{partition}/{offset}":      "admin topic",
	"POST /snapshots/{topic}/{partition}/{offset}/verify": "admin topic",
}

// may is what routeAccess says of a caller with one scope, and a prefix or "" for all.
func may(rule, scope, prefix, topic string) bool {
	if rule == "open" || rule == "any" {
		return true
	}
	scopes, about, _ := strings.Cut(rule, " ")
	has := scope == "admin"
	for s := range strings.SplitSeq(scopes, ",") {
		has = has || s == scope
	}
	switch about {
	case "topic":
		return has && strings.HasPrefix(topic, prefix)
	case "all":
		return has && prefix == ""
	}
	return has
}

// TestEveryRouteAsksForItsScope goes over every route of the router with every kind of
// caller. A route that this test does not know fails it.
func TestEveryRouteAsksForItsScope(t *testing.T) {
	const topic = "orders.eu"
	l := newLockedEnv(t)
	l.topic(topic)
	l.json("POST", "/producers", "", l.root).is(201)
	callers := []struct{ scope, prefix, header string }{}
	for _, scope := range []string{"produce", "consume", "admin"} {
		for _, prefix := range []string{"", "orders.", "other."} {
			prefixes := []string{prefix}
			if prefix == "" {
				prefixes = nil
			}
			callers = append(callers, struct{ scope, prefix, header string }{scope, prefix, l.token(t, scope+" "+prefix, scope, prefixes...)})
		}
	}
	fill := strings.NewReplacer("{topic}", topic, "{partition}", "0", "{pid}", "0", "{offset}", "0", "{code}", "internal", "{file}", "base.css")
	bodies := map[string]string{"POST /topics": fmt.Sprintf(`{"name":%q}`, topic)}
	seen := 0
	err := chi.Walk(l.server.Routes(), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		route := method + " " + pattern
		rule, ok := routeAccess[route]
		if !ok {
			t.Errorf("%s: who may use it? routeAccess does not say", route)
			return nil
		}
		seen++
		status := func(header string) int { return l.status(method, fill.Replace(pattern), bodies[route], header) }
		if got := status(""); (got == 401) != (rule != "open") {
			t.Errorf("%s: without a token %d", route, got)
		}
		if got := status("Authorization: Bearer nonsense"); (got == 401) != (rule != "open") {
			t.Errorf("%s: with a token that is none %d", route, got)
		}
		for _, c := range callers {
			got := status(c.header)
			if want := may(rule, c.scope, c.prefix, topic); (got != 403) != want || got == 401 {
				t.Errorf("%s: %s for %q* gets %d; may: %t", route, c.scope, c.prefix, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(routeAccess) {
		t.Errorf("%d of the %d routes in routeAccess are there", seen, len(routeAccess))
	}
}

// status gives the status of an answer without waiting for its end: some have none.
func (l *lockedEnv) status(method, path, body, header string) int {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, l.url+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if name, value, ok := strings.Cut(header, ": "); ok {
		r.Header.Set(name, value)
	}
	resp, err := l.unchecked().client.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestRulesAreComplete: the server does not start with a route that nobody has thought
// about, nor with a rule for nothing.
func TestRulesAreComplete(t *testing.T) {
	if err := server.CheckRules(nil); err != nil {
		t.Errorf("the routes that there are: %v", err)
	}
	err := server.CheckRules(func(routes chi.Router, guarded func(method, pattern string)) {
		guarded("GET", "/secrets")
	})
	if err == nil || !strings.Contains(err.Error(), "GET /secrets") {
		t.Errorf("a route without a rule: %v", err)
	}
}

// TestScopesInQueryAndBody: where the topic is not in the path.
func TestScopesInQueryAndBody(t *testing.T) {
	l := newLockedEnv(t)
	l.topic("orders.eu")
	l.topic("other")
	admin, reader := l.token(t, "a", "admin", "orders."), l.token(t, "c", "consume", "orders.")

	l.json("POST", "/topics", `{"name":"orders.us"}`, admin).is(201)
	l.json("POST", "/topics", `{"name":"invoices"}`, admin).problem("forbidden")
	l.get("/topics/invoices", l.root).problem("unknown-topic")
	l.json("POST", "/topics", `{"name":"other"}`, admin).problem("forbidden") // not: it exists

	l.json("POST", "/snapshots", `{"topic":"orders.eu"}`, admin).is(201)
	l.json("POST", "/snapshots", `{"topic":"other"}`, admin).problem("forbidden")
	l.json("POST", "/snapshots", `{}`, admin).problem("forbidden")
	l.json("POST", "/snapshots", ``, admin).problem("forbidden")

	l.get("/snapshots?topic=orders.eu", reader).is(200)
	l.get("/snapshots?topic=other", reader).problem("forbidden")
	l.get("/snapshots", reader).problem("forbidden")
	l.unchecked().get("/snapshots?topic=orders.eu&topic=other", reader).problem("forbidden")
	l.get("/producers?topic=orders.eu", reader).is(200)
	l.get("/producers?topic=other", reader).problem("forbidden")

	// A name is compared as it is stored, however it is written in the path.
	l.unchecked().get("/topics/%6frders.eu", reader).is(200)
	l.unchecked().get("/topics/%6fther", reader).problem("forbidden")
	l.unchecked().get("/topics/orders.%2f..%2fother", reader).problem("unknown-topic")
}

// TestListedTopics: a list shows what the caller may see, page by page, and nothing else.
func TestListedTopics(t *testing.T) {
	l := newLockedEnv(t)
	want := map[string]bool{}
	for i := range 30 {
		for _, prefix := range []string{"a.", "b.", "c."} {
			name := fmt.Sprintf("%s%02d", prefix, i)
			l.topic(name)
			want[name] = prefix != "b."
		}
	}
	caller := l.token(t, "x", "produce", "a.", "c.")
	seen, path := 0, "/topics?limit=7"
	for path != "" {
		page := as[openapi.TopicList](l.get(path, caller).is(200))
		for _, topic := range page.Items {
			if !want[topic.Name] {
				t.Errorf("%s is listed", topic.Name)
			}
			seen++
		}
		path = ""
		if page.NextPageToken != nil {
			path = "/topics?limit=7&pageToken=" + *page.NextPageToken
		}
	}
	if seen != 60 {
		t.Errorf("%d topics are listed, 60 may be seen", seen)
	}
	if page := as[openapi.TopicList](l.get("/topics", l.token(t, "y", "produce", "z")).is(200)); len(page.Items) != 0 || page.NextPageToken != nil {
		t.Errorf("somebody who may see nothing: %+v", page)
	}
}
