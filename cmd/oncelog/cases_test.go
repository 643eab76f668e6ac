package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/oncelog/oncelog/store/storetest"
)

// TestCases plays the cases of the append rule over HTTP against the real command,
// with real restarts and kills. All share one server.
func TestCases(t *testing.T) {
	g := newGateway(t)
	storetest.Cases(t, func(tb testing.TB, topic string) storetest.CaseTarget {
		tb.Helper()
		c := &caseTarget{tb: tb, g: g, topic: topic}
		if r := c.post("/topics", map[string]any{"name": topic}); r.Status != http.StatusCreated {
			tb.Fatalf("create topic: %+v", r)
		}
		return c
	})
}

// caseTarget is a topic that is reached by plain HTTP requests.
type caseTarget struct {
	tb    testing.TB
	g     *gateway
	topic string
}

func (c *caseTarget) post(path string, body any) storetest.CaseResult {
	c.tb.Helper()
	return c.do(http.MethodPost, path, body)
}

// do sends a request; every append says that it does not want to be held.
func (c *caseTarget) do(method, path string, body any) storetest.CaseResult {
	c.tb.Helper()
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			c.tb.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(c.tb.Context(), method, c.g.url+path, reader)
	if err != nil {
		c.tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Prefer", "wait=0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.tb.Fatal(err)
	}
	defer resp.Body.Close()
	r := storetest.CaseResult{Status: resp.StatusCode}
	d := json.NewDecoder(resp.Body)
	d.UseNumber()
	if err := d.Decode(&r.Body); err != nil && resp.StatusCode != http.StatusNoContent {
		c.tb.Fatalf("%s %s: %d, %v", method, path, resp.StatusCode, err)
	}
	return r
}

func (c *caseTarget) path(format string, args ...any) string {
	return "/topics/" + c.topic + "/partitions/0" + fmt.Sprintf(format, args...)
}

func (c *caseTarget) Producer() storetest.CaseResult { return c.post("/producers", nil) }

func (c *caseTarget) Append(a storetest.CaseAppend) storetest.CaseResult {
	records := make([]map[string]string, 0, a.Count)
	for _, v := range a.Values() {
		records = append(records, map[string]string{"valueText": v})
	}
	return c.post(c.path("/batches"), map[string]any{
		"pid": a.PID, "epoch": a.Epoch, "baseSeq": a.BaseSeq, "records": records,
	})
}

func (c *caseTarget) Restart(kill bool) { c.g.restart(kill) }

func (c *caseTarget) Roll() storetest.CaseResult { return c.post(c.path("/roll"), nil) }

func (c *caseTarget) Snapshot() storetest.CaseResult {
	return c.post("/snapshots", map[string]any{"topic": c.topic, "partition": 0})
}

func (c *caseTarget) Trim(before int64) storetest.CaseResult {
	return c.do(http.MethodDelete, c.path("/records?before=%d", before), nil)
}

func (c *caseTarget) Expire(pid int64) storetest.CaseResult {
	return c.do(http.MethodDelete, c.path("/producers/%d", pid), nil)
}

func (c *caseTarget) State(pid int64) storetest.CaseResult {
	return c.do(http.MethodGet, c.path("/producers/%d", pid), nil)
}

func (c *caseTarget) Partition() storetest.CaseResult {
	return c.do(http.MethodGet, c.path(""), nil)
}
