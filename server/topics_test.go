package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/openapi"
)

func TestTopicLifecycle(t *testing.T) {
	e := newEnv(t)
	created := e.json("POST", "/topics", `{"name":"orders","partitions":3,"retentionMs":-1,"retentionBytes":5}`).is(201)
	tag := created.header.Get("Etag")
	topic := as[openapi.Topic](created)
	if created.header.Get("Location") != "/topics/orders" || tag != `"`+topic.ID+`-1"` {
		t.Errorf("Location %q, ETag %q", created.header.Get("Location"), tag)
	}
	want := openapi.Topic{
		Name: "orders", ID: topic.ID, Partitions: 3, RetentionMs: -1, RetentionBytes: 5, SegmentBytes: 64 << 20,
		SegmentMs: topic.SegmentMs, MaxBatchBytes: 1 << 20, ProducerExpiryMs: 7 * 86400 * 1000, MaxProducers: topic.MaxProducers,
		Version: 1, CreatedAt: topic.CreatedAt,
	}
	if d := cmp.Diff(want, topic); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := e.get("/topics/orders").is(200); string(got.body) != string(created.body) || got.header.Get("Etag") != tag {
		t.Errorf("%s", got.body)
	}
	e.get("/topics/orders", "If-None-Match: "+tag).is(304)
	e.json("POST", "/topics", `{"name":"orders"}`).problem("topic-exists")

	if got := e.json("PUT", "/topics/orders", `{"partitions":3,"retentionBytes":5}`).is(200); string(got.body) != string(created.body) {
		t.Errorf("confirmed: %s", got.body)
	}
	e.json("PUT", "/topics/orders", `{"partitions":3}`).problem("topic-exists")
	e.json("PUT", "/topics/orders", `{"partitions":2,"retentionBytes":5}`).problem("topic-exists")

	patched := e.do("PATCH", "/topics/orders", `{"partitions":4,"retentionBytes":null,"requireIdempotence":true}`, "Content-Type: application/merge-patch+json").is(200)
	if got := as[openapi.Topic](patched); got.Partitions != 4 || got.RetentionBytes != -1 || !got.RequireIdempotence || got.Version != 2 {
		t.Errorf("patched: %s", patched.body)
	}
	if patched.header.Get("Etag") == tag {
		t.Error("the tag stayed")
	}
	got := e.json("PATCH", "/topics/orders", `{"partitions":3}`).problem("invalid-argument")
	if d := cmp.Diff(at("/partitions"), pointers(got)); d != "" {
		t.Error(d)
	}
	e.json("PATCH", "/topics/orders", `{"partitions":null}`).problem("invalid-argument")
	if a := e.do("PATCH", "/topics/orders", `{}`, "Content-Type: text/plain"); a.header.Get("Accept-Patch") != "application/json, application/merge-patch+json" {
		t.Errorf("Accept-Patch %q", a.header.Get("Accept-Patch"))
	}
	reset := `{"retentionMs":null,"retentionBytes":null,"segmentBytes":null,"segmentMs":null,"maxBatchBytes":null,"producerExpiryMs":null,"maxProducers":null,"requireIdempotence":null}`
	e.json("PATCH", "/topics/orders", `{"retentionMs":1,"retentionBytes":1,"segmentBytes":2000,"segmentMs":1,"maxBatchBytes":1,"producerExpiryMs":1,"maxProducers":1,"requireIdempotence":true}`).is(200)
	after := as[openapi.Topic](e.json("PATCH", "/topics/orders", reset).is(200))
	want.Partitions, want.RetentionBytes, want.Version = 4, -1, 4
	if d := cmp.Diff(want, after); d != "" {
		t.Errorf("reset by nulls (-want +got):\n%s", d)
	}

	e.do("DELETE", "/topics/orders", "").is(204)
	e.get("/topics/orders").problem("unknown-topic")
	e.do("DELETE", "/topics/orders", "").problem("unknown-topic")
	if again := as[openapi.Topic](e.json("PUT", "/topics/orders", `{}`).is(201)); again.ID == topic.ID {
		t.Error("a topic created again has the old id")
	}
}

func TestIfMatch(t *testing.T) {
	e := newEnv(t)
	tag := e.json("PUT", "/topics/t", `{}`).is(201).header.Get("Etag")
	for _, stale := range []string{`"x"`, "W/" + tag, strings.Trim(tag, `"`)} {
		h := "If-Match: " + stale
		e.json("PATCH", "/topics/t", `{"retentionMs":1}`, h).problem("version-mismatch")
		e.json("PUT", "/topics/t", `{}`, h).problem("version-mismatch")
		e.do("DELETE", "/topics/t", "", h).problem("version-mismatch")
	}
	e.json("PUT", "/topics/u", `{}`, "If-Match: *").problem("version-mismatch")
	e.json("PUT", "/topics/t", `{}`, `If-Match: "x", `+tag).is(200)
	next := e.json("PATCH", "/topics/t", `{"retentionMs":1}`, "If-Match: "+tag).is(200).header.Get("Etag")
	e.json("PATCH", "/topics/t", `{"retentionMs":2}`, "If-Match: "+tag).problem("version-mismatch")
	e.do("DELETE", "/topics/t", "", "If-Match: "+tag).problem("version-mismatch")
	e.do("DELETE", "/topics/t", "", "If-Match: "+next).is(204)
}

// Of many changes on one tag, one is made.
func TestIfMatchRace(t *testing.T) {
	e := newEnv(t).unchecked()
	tag := e.json("PUT", "/topics/t", `{}`).is(201).header.Get("Etag")
	statuses := make([]int, 8)
	var wg sync.WaitGroup
	for i := range statuses {
		wg.Go(func() {
			if i%2 == 0 {
				statuses[i] = e.do("DELETE", "/topics/t", "", "If-Match: "+tag).status
			} else {
				statuses[i] = e.json("PATCH", "/topics/t", fmt.Sprintf(`{"retentionMs":%d}`, i), "If-Match: "+tag).status
			}
		})
	}
	wg.Wait()
	made := 0
	for _, s := range statuses {
		if s < 300 {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d changes were made: %v", made, statuses)
	}
}

// pages walks a list and returns the sizes of its pages.
func walk[T any](e *env, path string, next func(T) *string) (pages []T) {
	e.t.Helper()
	token := ""
	for {
		page := as[T](e.get(path + token).is(200))
		pages = append(pages, page)
		t := next(page)
		if t == nil {
			return pages
		}
		token = "&pageToken=" + *t
	}
}

func TestTopicPages(t *testing.T) {
	e := newEnv(t)
	for i := range 5 {
		e.topic(fmt.Sprintf("t%d", i))
	}
	var names []string
	list := walk(e, "/topics?limit=2", func(l openapi.TopicList) *string { return l.NextPageToken })
	for _, page := range list {
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
	}
	if len(list) != 3 || strings.Join(names, " ") != "t0 t1 t2 t3 t4" {
		t.Errorf("%d pages: %v", len(list), names)
	}
	if got := string(newEnv(t).get("/topics").is(200).body); got != "{\"items\":[],\"nextPageToken\":null}\n" {
		t.Errorf("an empty list is %s", got)
	}
}
