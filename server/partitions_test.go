package server_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/openapi"
)

func TestPartition(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.json("POST", "/producers", "").is(201)
	e.json("POST", p+"/batches", oneAt("0", "0", "0")).is(200)
	fill(e, p, 4, 2)
	got := as[openapi.Partition](e.get(p).is(200))
	if got.Topic != "t" || got.Partition != 0 || got.EarliestOffset != 0 || got.NextOffset != 5 || got.Producers != 1 || len(got.Segments) != 1 ||
		got.Segments[0].Batches != 3 || got.Segments[0].NextOffset != 5 || got.Bytes != got.Segments[0].Bytes {
		t.Errorf("%+v", got)
	}
	rolled := as[openapi.Partition](e.do("POST", p+"/roll", "").is(200))
	if len(rolled.Segments) != 2 || rolled.Segments[1].BaseOffset != 5 {
		t.Errorf("rolled: %+v", rolled)
	}
	if again := as[openapi.Partition](e.json("POST", p+"/roll", "{}").is(200)); len(again.Segments) != 2 {
		t.Errorf("an empty segment was rolled: %+v", again)
	}
	e.do("POST", p+"/roll", "{}", "Content-Type: text/plain").problem("unsupported-media-type")
	e.do("POST", "/topics/u/partitions/0/roll", "").problem("unknown-topic")
}

func TestBatchHeaders(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.json("POST", "/producers", "").is(201)
	e.json("POST", p+"/batches", oneAt("0", "2", "0")).is(200)
	fill(e, p, 6, 2)
	all := as[openapi.BatchHeaderList](e.get(p + "/batches").is(200))
	if len(all.Items) != 4 || all.NextOffset != 7 || all.HighWatermark != 7 {
		t.Fatalf("%+v", all)
	}
	first := all.Items[0]
	if *first.PID != 0 || *first.Epoch != 2 || *first.BaseSeq != 0 || first.Count != 1 || len(first.CRC) != 8 || all.Items[1].PID != nil || all.Items[1].Count != 2 {
		t.Errorf("%+v", all.Items[:2])
	}
	for query, want := range map[string][3]int64{ // first offset, batches, next
		"?offset=2&limit=1": {1, 1, 3}, "?offset=latest": {0, 0, 7}, "?offset=-1": {5, 1, 7}, "?limit=2": {0, 2, 3},
	} {
		got := as[openapi.BatchHeaderList](e.get(p + "/batches" + query).is(200))
		var base int64
		if len(got.Items) > 0 {
			base = got.Items[0].BaseOffset
		}
		if d := cmp.Diff(want, [3]int64{base, int64(len(got.Items)), got.NextOffset}); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
	e.get(p + "/batches?offset=8").problem("offset-out-of-range")
}

func TestTrim(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	e.json("POST", "/producers", "").is(201)
	e.json("POST", p+"/batches", oneAt("0", "0", "0")).is(200)
	fill(e, p, 4, 2)
	trim := func(before string) int64 {
		t.Helper()
		return as[openapi.TrimResponse](e.do("DELETE", p+"/records?before="+before, "").is(200)).EarliestOffset
	}
	for _, step := range [][2]any{{"2", int64(2)}, {"1", int64(2)}, {"2", int64(2)}, {"0", int64(2)}, {"5", int64(5)}} {
		if got := trim(step[0].(string)); got != step[1] {
			t.Errorf("trim before %s: earliest %d", step[0], got)
		}
	}
	if got := e.do("DELETE", p+"/records?before=6", "").problem("offset-out-of-range"); *got.NextOffset != 5 {
		t.Errorf("%+v", got)
	}
	if got := as[openapi.AppendResponse](e.json("POST", p+"/batches", oneAt("0", "0", "0")).is(200)); !got.Duplicate || *got.BaseOffset != 0 {
		t.Errorf("trimming forgot the producer: %+v", got)
	}
}

func TestProducers(t *testing.T) {
	e := newEnv(t)
	p, q := e.topic("a"), e.topic("b")
	for i := range 5 {
		got := e.do("POST", "/producers", "").is(201)
		if want := fmt.Sprintf("/producers/%d", i); got.header.Get("Location") != want {
			t.Errorf("Location %q", got.header.Get("Location"))
		}
		pid := fmt.Sprint(i)
		e.json("POST", p+"/batches", oneAt(pid, "0", "0")).is(200)
	}
	e.json("POST", q+"/batches", oneAt("1", "4", "0")).is(200)
	e.json("POST", q+"/batches", oneAt("1", "4", "0")).is(200)
	e.json("POST", q+"/batches", oneAt("1", "4", "9"), "Prefer: wait=0").problem("out-of-order-sequence")
	e.json("POST", q+"/batches", oneAt("1", "3", "0")).problem("producer-fenced")
	e.json("POST", q+"/batches", `{"pid":1,"epoch":4,"baseSeq":0,"records":[{"value":2}]}`).problem("sequence-reused")

	pages := walk(e, "/producers?limit=2", func(l openapi.ProducerList) *string { return l.NextPageToken })
	if len(pages) != 3 || len(pages[2].Items) != 1 {
		t.Errorf("%d pages", len(pages))
	}
	one := pages[0].Items[1]
	if one.PID != 1 || one.Epoch != 4 || one.Partitions != 2 || one.Counters != (openapi.ProducerCounters{Accepted: 2, Duplicate: 1, OutOfOrder: 1, Fenced: 1, Reused: 1}) {
		t.Errorf("%+v", one)
	}
	if pages := walk(e, p+"/producers?limit=3", func(l openapi.PartitionProducerList) *string { return l.NextPageToken }); len(pages) != 2 || pages[1].Items[1].PID != 4 {
		t.Errorf("%+v", pages)
	}
	both := as[openapi.Producer](e.get("/producers/1").is(200))
	if both.PID != 1 || len(both.Partitions) != 2 || both.Partitions[0].Topic != "a" || both.Partitions[1].Topic != "b" {
		t.Errorf("%+v", both)
	}
	state := as[openapi.PartitionProducer](e.get(q + "/producers/1").is(200))
	if d := cmp.Diff(both.Partitions[1], state); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]openapi.RememberedBatch{{BaseSeq: 0, LastSeq: 0, BaseOffset: 0}}, state.Recent); d != "" || state.FirstSeq != 0 || state.LastSeq != 0 || state.LastOffset != 0 {
		t.Errorf("%+v", state)
	}
	e.do("DELETE", q+"/producers/1", "").is(204)
	e.get(q + "/producers/1").problem("unknown-producer-id")
	if left := as[openapi.Producer](e.get("/producers/1").is(200)); len(left.Partitions) != 1 {
		t.Errorf("%+v", left)
	}
	e.get("/producers/5").problem("unknown-producer-id")
	e.do("POST", "/producers", "").is(201)
	if got := string(e.get("/producers/5").is(200).body); got != "{\"pid\":5,\"partitions\":[],\"rejected\":[]}\n" {
		t.Errorf("%s", got)
	}
}

func TestSnapshots(t *testing.T) {
	e := newEnv(t)
	p := e.topic("a")
	e.json("PUT", "/topics/b", `{"partitions":2}`).is(201)
	for i := range 3 {
		e.do("POST", "/producers", "").is(201)
		e.json("POST", p+"/batches", oneAt(fmt.Sprint(i), "0", "0")).is(200)
	}
	if got := as[openapi.SnapshotsTaken](e.json("POST", "/snapshots", `{"topic":"a","partition":0}`).is(201)); len(got.Items) != 1 ||
		got.Items[0].Offset != 3 || got.Items[0].Reason != "request" || got.Items[0].Producers != 3 || len(got.Items[0].CRC) != 8 {
		t.Errorf("%+v", got)
	}
	if got := as[openapi.SnapshotsTaken](e.json("POST", "/snapshots", `{"topic":"b"}`).is(201)); len(got.Items) != 2 {
		t.Errorf("%+v", got)
	}
	e.json("POST", p+"/batches", oneAt("0", "0", "1")).is(200)
	if got := as[openapi.SnapshotsTaken](e.do("POST", "/snapshots", "").is(201)); len(got.Items) != 3 {
		t.Errorf("all: %+v", got)
	}
	var offsets []int64
	pages := walk(e, "/snapshots?limit=1", func(l openapi.SnapshotList) *string { return l.NextPageToken })
	for _, page := range pages {
		offsets = append(offsets, page.Items[0].Offset)
	}
	if d := cmp.Diff([]int64{3, 4, 0, 0}, offsets); d != "" {
		t.Error(d)
	}
	if got := as[openapi.SnapshotList](e.get("/snapshots?topic=b&partition=1").is(200)); len(got.Items) != 1 || got.Items[0].Partition != 1 {
		t.Errorf("%+v", got)
	}
	details := walk(e, "/snapshots/a/0/3?limit=2", func(d openapi.SnapshotDetail) *string { return d.NextPageToken })
	if len(details) != 2 || details[0].Producers != 3 || details[1].Items[0].PID != 2 || details[1].Items[0].LastSeq != 0 || len(details[1].Items[0].Recent) != 1 {
		t.Errorf("%+v", details)
	}
	if got := string(e.do("POST", "/snapshots/a/0/3/verify", "").is(200).body); got != "{\"match\":true,\"differences\":[]}\n" {
		t.Errorf("%s", got)
	}
	e.do("DELETE", "/snapshots/a/0/3", "").is(204)
	for _, a := range []*answer{e.get("/snapshots/a/0/3"), e.do("DELETE", "/snapshots/a/0/3", ""), e.do("POST", "/snapshots/a/0/3/verify", "")} {
		a.problem("unknown-snapshot")
	}
	e.get("/snapshots/u/0/3").problem("unknown-topic")
	e.get("/snapshots/a/7/3").problem("unknown-partition")
	e.get("/snapshots?topic=u").problem("unknown-topic")
	e.get("/snapshots?topic=..").problem("unknown-topic")
	e.json("POST", "/snapshots", `{"topic":"a","partition":9}`).problem("unknown-partition")
}
