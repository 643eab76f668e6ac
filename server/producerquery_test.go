package server_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory"
	"github.com/oncelog/oncelog/store/storetest"
)

// producersOf walks through all pages of a list of producers.
func (e *env) producersOf(query string, limit int) []openapi.ProducerSummary {
	e.t.Helper()
	var all []openapi.ProducerSummary
	token := ""
	for {
		page := as[openapi.ProducerList](e.get(fmt.Sprintf("/producers?%s&limit=%d%s", query, limit, token)).is(http.StatusOK))
		if len(page.Items) > limit {
			e.t.Fatalf("%d items, limit %d", len(page.Items), limit)
		}
		all = append(all, page.Items...)
		if page.NextPageToken == nil {
			return all
		}
		token = "&pageToken=" + url.QueryEscape(*page.NextPageToken)
	}
}

func pidsOf(list []openapi.ProducerSummary) []int64 {
	var out []int64
	for _, p := range list {
		out = append(out, p.PID)
	}
	return out
}

// seeded gives a server with 40 producers: pid 0 … 39 write to the topics a (two
// partitions) and b in patterns that give every column ties and differences.
func seeded(t *testing.T) *env {
	t.Helper()
	clock := storetest.NewClock()
	e := newEnvOver(t, memory.Open(memory.Options{Now: clock.Now}), func(o *server.Options) { o.Now = clock.Now })
	e.json(http.MethodPut, "/topics/a", `{"partitions":2}`).is(http.StatusCreated)
	e.json(http.MethodPut, "/topics/b", `{"producerExpiryMs":1000000}`).is(http.StatusCreated)
	for pid := range 40 {
		e.do(http.MethodPost, "/producers", "").is(http.StatusCreated)
		add := func(partition string, epoch, base, n int, status int) {
			t.Helper()
			body := fmt.Sprintf(`{"pid":%d,"epoch":%d,"baseSeq":%d,"records":[%s]}`, pid, epoch, base, records(n))
			e.json(http.MethodPost, partition+"/batches", body, "Prefer: wait=0").is(status)
		}
		at, epoch := fmt.Sprintf("/topics/a/partitions/%d", pid%2), pid%3
		if pid%4 == 3 {
			at = "/topics/b/partitions/0"
		}
		add(at, epoch, 0, 1+pid%5, http.StatusOK)
		for range pid % 3 {
			add(at, epoch, 0, 1+pid%5, http.StatusOK)
		}
		if pid%7 == 0 {
			add(at, epoch, 1000+pid, 1, http.StatusConflict)
		}
		if pid%10 == 1 && pid%4 != 3 {
			add("/topics/b/partitions/0", 0, 0, 2, http.StatusOK)
		}
		clock.Add(3 * time.Second)
	}
	return e
}

func records(n int) string {
	s := `{"value":1}`
	for range n - 1 {
		s += `,{"value":1}`
	}
	return s
}

// TestProducersSorted: every column, both ways, in pages of several sizes: the list is
// whole, in order, and ties are in the order of the ids.
func TestProducersSorted(t *testing.T) {
	e := seeded(t)
	byPID := e.producersOf("sort=pid", 1000)
	if want := pidsOf(as[openapi.ProducerList](e.get("/producers")).Items); !slices.Equal(pidsOf(byPID), want) || len(want) != 40 {
		t.Fatalf("by pid: %v, want %v", pidsOf(byPID), want)
	}
	type key = func(*openapi.ProducerSummary) any
	keys := map[string]key{
		"pid": func(p *openapi.ProducerSummary) any { return p.PID }, "epoch": func(p *openapi.ProducerSummary) any { return p.Epoch },
		"partitions":    func(p *openapi.ProducerSummary) any { return int64(p.Partitions) },
		"lastSeq":       func(p *openapi.ProducerSummary) any { return p.Newest.LastSeq },
		"lastOffset":    func(p *openapi.ProducerSummary) any { return p.Newest.LastOffset },
		"lastTimestamp": func(p *openapi.ProducerSummary) any { return instant(p.LastTimestamp).UnixMilli() },
		"expiresAt":     func(p *openapi.ProducerSummary) any { return instant(p.ExpiresAt).UnixMilli() },
		"accepted":      func(p *openapi.ProducerSummary) any { return p.Counters.Accepted },
		"duplicate":     func(p *openapi.ProducerSummary) any { return p.Counters.Duplicate },
		"outOfOrder":    func(p *openapi.ProducerSummary) any { return p.Counters.OutOfOrder },
		"fenced":        func(p *openapi.ProducerSummary) any { return p.Counters.Fenced },
		"reused":        func(p *openapi.ProducerSummary) any { return p.Counters.Reused },
		"held":          func(p *openapi.ProducerSummary) any { return p.Counters.Held },
	}
	few := e.unchecked() // so many small pages take the checks most of the time
	for name, of := range keys {
		want := slices.Clone(byPID)
		slices.SortFunc(want, func(a, b openapi.ProducerSummary) int {
			return cmp.Or(cmp.Compare(of(&a).(int64), of(&b).(int64)), cmp.Compare(a.PID, b.PID))
		})
		for _, limit := range []int{1, 7, 39, 40, 1000} {
			pages := few
			if limit > 7 {
				pages = e
			}
			if got := pages.producersOf("sort="+name, limit); !slices.Equal(pidsOf(got), pidsOf(want)) {
				t.Errorf("sort=%s by pages of %d: %v, want %v", name, limit, pidsOf(got), pidsOf(want))
			}
		}
		slices.Reverse(want)
		if got := e.producersOf("order=desc&sort="+name, 11); !slices.Equal(pidsOf(got), pidsOf(want)) {
			t.Errorf("sort=%s descending: %v, want %v", name, pidsOf(got), pidsOf(want))
		}
	}
}

func TestProducersFiltered(t *testing.T) {
	e := seeded(t)
	all := e.producersOf("sort=pid", 1000)
	where := func(keep func(pid int64) bool) (pids []int64) {
		for _, p := range all {
			if keep(p.PID) {
				pids = append(pids, p.PID)
			}
		}
		return pids
	}
	for query, want := range map[string][]int64{
		"topic=b":                          where(func(pid int64) bool { return pid%4 == 3 || pid%10 == 1 }),
		"topic=b&order=desc&state=refused": {35, 7},
		"topic=a&state=refused":            {0, 14, 21, 28},
		"state=refused":                    {0, 7, 14, 21, 28, 35},
		"state=active":                     where(func(pid int64) bool { return pid > 20 }),
		"state=idle":                       where(func(pid int64) bool { return pid <= 20 }),
		"pid=13":                           {13},
		"pid=13&topic=a":                   {13},
		"pid=13&topic=b":                   nil,
		"pid=999":                          nil,
		"order=desc&pid=0":                 {0},
	} {
		for _, limit := range []int{1, 5, 100} {
			if got := pidsOf(e.producersOf(query, limit)); !slices.Equal(got, want) {
				t.Errorf("%s by pages of %d: %v, want %v", query, limit, got, want)
			}
		}
	}
	// In a topic, only what is there is summed up.
	whole, part := e.producersOf("pid=11", 1)[0], e.producersOf("pid=11&topic=b", 1)[0]
	if whole.Partitions != 1 || part.Partitions != 1 || part.Newest.Topic != "b" {
		t.Errorf("producer 11: %+v, in b %+v", whole, part)
	}
	if whole, part := e.producersOf("pid=21", 1)[0], e.producersOf("pid=21&topic=b", 1)[0]; whole.Partitions != 2 || part.Partitions != 1 ||
		part.Counters.Accepted != 1 || whole.Counters.Accepted != 2 || part.Newest.LastSeq != 1 {
		t.Errorf("producer 21: %+v, in b %+v", whole, part)
	}
}

func TestProducersQueryRefused(t *testing.T) {
	e := seeded(t)
	sorted := as[openapi.ProducerList](e.get("/producers?sort=epoch&limit=2")).NextPageToken
	plain := as[openapi.ProducerList](e.get("/producers?limit=2")).NextPageToken
	for query, pointer := range map[string]string{
		"sort=size": "sort", "sort=": "sort", "order=up": "order", "order=": "order", "pid=x": "pid", "pid=-1": "pid", "topic=": "topic",
		"state=dead": "state", "sort=pid&limit=0": "limit", "sort=pid&pageToken=" + *plain: "pageToken", "pageToken=" + *sorted: "pageToken",
		"sort=pid&pageToken=" + *sorted: "pageToken", "sort=epoch&order=desc&pageToken=" + *sorted: "pageToken",
		"sort=pid&pageToken=ZjpwaWQsMSx4": "pageToken", "sort=pid&sort=pid": "sort", "sort=pid&x=1": "x",
	} {
		if got := pointers(e.get("/producers?" + query).is(http.StatusBadRequest).problem("malformed-request")); !slices.Equal(got, []string{"/" + pointer}) {
			t.Errorf("%s: %v, want /%s", query, got, pointer)
		}
	}
	e.get("/producers?topic=none").is(http.StatusNotFound).problem("unknown-topic")
	if got := as[openapi.ProducerList](e.get("/producers?limit=1")).Items[0]; got.Newest != nil {
		t.Errorf("the list by id shows %+v", got.Newest)
	}
}

// TestProducersBeyondOneScan: more producers than are looked at at a time.
func TestProducersBeyondOneScan(t *testing.T) {
	st := memory.Open(memory.Options{})
	e := newEnvOver(t, st)
	e.json(http.MethodPut, "/topics/t", `{"partitions":3}`).is(http.StatusCreated)
	const total = 2500
	for i := range int64(total) {
		id, err := st.AllocateProducer(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for n := range 1 + i%2 {
			_, err = st.Append(t.Context(), store.Append{
				Partition: store.Partition{Topic: "t", Number: int((i + n) % 3)},
				Producer:  &store.ProducerSeq{ID: id.ID, Epoch: (i * 7919) % total}, Batch: storetest.Texts("x"),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, query := range []string{"sort=epoch&order=desc", "sort=epoch&order=desc&topic=t"} {
		got := e.producersOf(query, 1000)
		if len(got) != total {
			t.Fatalf("%s: %d producers", query, len(got))
		}
		for i := range got {
			if want := int64(total - 1 - i); got[i].Epoch != want || got[i].Partitions != int(1+got[i].PID%2) {
				t.Fatalf("%s: at %d %+v, want epoch %d", query, i, got[i], want)
			}
		}
	}
}
