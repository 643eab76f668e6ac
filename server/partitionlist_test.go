package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/openapi"
)

func TestPartitionList(t *testing.T) {
	e := newEnv(t)
	e.json(http.MethodPut, "/topics/a", `{"partitions":7}`).is(http.StatusCreated)
	for _, path := range []string{"/topics/a/partitions/3", "/topics/a/partitions/6"} {
		e.json(http.MethodPost, path+"/batches", `{"records":[{"value":1},{"value":2}]}`).is(http.StatusOK)
	}
	for _, limit := range []string{"1", "3", "7", "1000"} {
		var numbers []int
		token := ""
		for {
			page := as[openapi.PartitionList](e.get("/topics/a/partitions?limit=" + limit + token).is(http.StatusOK))
			for _, p := range page.Items {
				numbers = append(numbers, p.Partition)
				alone := as[openapi.Partition](e.get("/topics/a/partitions/" + strconv.Itoa(p.Partition)).is(http.StatusOK))
				if d := cmp.Diff(alone, p); d != "" {
					t.Errorf("alone (-) and in the list (+):\n%s", d)
				}
			}
			if page.NextPageToken == nil {
				break
			}
			token = "&pageToken=" + url.QueryEscape(*page.NextPageToken)
		}
		if !slices.Equal(numbers, []int{0, 1, 2, 3, 4, 5, 6}) {
			t.Errorf("by pages of %s: %v", limit, numbers)
		}
	}
	e.get("/topics/b/partitions").problem("unknown-topic")
	e.get("/topics/a/partitions?pageToken=x").problem("malformed-request")
	e.get("/topics/a/partitions?offset=1").problem("malformed-request")
}

func TestTopicTotals(t *testing.T) {
	e := newEnv(t)
	e.json(http.MethodPut, "/topics/a", `{"partitions":2}`).is(http.StatusCreated)
	e.json(http.MethodPut, "/topics/b", `{}`).is(http.StatusCreated)
	for range 2 {
		for _, path := range []string{"/topics/a/partitions/0", "/topics/a/partitions/1"} {
			e.json(http.MethodPost, path+"/batches", `{"records":[{"value":1},{"value":2}]}`).is(http.StatusOK)
		}
	}
	e.do(http.MethodDelete, "/topics/a/partitions/1/records?before=3", "").is(http.StatusOK)
	list := as[openapi.TopicList](e.get("/topics?totals=true").is(http.StatusOK)).Items
	var bytes int64
	for _, p := range as[openapi.PartitionList](e.get("/topics/a/partitions")).Items {
		bytes += p.Bytes
	}
	want := []*openapi.TopicTotals{{Records: 5, Appended: 8, Bytes: bytes}, {}}
	if d := cmp.Diff(want, []*openapi.TopicTotals{list[0].Totals, list[1].Totals}); d != "" || bytes == 0 {
		t.Errorf("totals: %s", d)
	}
	for _, query := range []string{"", "?totals=false"} {
		if list := as[openapi.TopicList](e.get("/topics" + query).is(http.StatusOK)); list.Items[0].Totals != nil {
			t.Errorf("%q: totals that nobody asked for", query)
		}
	}
	e.get("/topics?totals=1").problem("malformed-request")
}
