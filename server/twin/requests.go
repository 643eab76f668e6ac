package twin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/store/batch"
)

// partition draws the path of one; now and then of one that there is not.
func partition(rt *rapid.T) string {
	return fmt.Sprintf("/topics/%s/partitions/%d", topicName(rapid.IntRange(0, topics-1).Draw(rt, "topic")), rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 7}).Draw(rt, "partition"))
}

func (m *machine) pid(rt *rapid.T) int64 {
	if rapid.IntRange(0, 30).Draw(rt, "unknown") == 0 {
		return 1 << 50
	}
	return m.pids[rapid.IntRange(max(0, len(m.pids)-producers), len(m.pids)-1).Draw(rt, "producer")]
}

func (m *machine) allocate(*rapid.T) {
	var p struct{ PID int64 }
	if a := m.json("allocate", http.MethodPost, "/producers", ""); json.Unmarshal(a.body, &p) != nil || a.status != http.StatusCreated {
		m.rt.Fatalf("allocate: %d %s", a.status, a.body)
	}
	m.pids = append(m.pids, p.PID)
}

// attempt is what an append says of its producer.
type attempt struct{ pid, epoch, base int64 }

// append draws an append close to what would be right, so that each verdict comes up.
func (m *machine) append(rt *rapid.T) {
	m.send(rt, partition(rt), &attempt{
		m.pid(rt), rapid.Int64Range(0, 3).Draw(rt, "epoch"), rapid.Int64Range(0, 12).Draw(rt, "base"),
	})
}

// goOn sends the batch that is in order, or of the next epoch.
func (m *machine) goOn(rt *rapid.T) {
	path, a := partition(rt), &attempt{pid: m.pid(rt)}
	var state struct{ Epoch, LastSeq int64 }
	got := m.get("producer", path+"/producers/"+strconv.FormatInt(a.pid, 10))
	if got.status == http.StatusOK && json.Unmarshal(got.body, &state) == nil {
		a.epoch, a.base = state.Epoch, state.LastSeq+1
	}
	if rapid.IntRange(0, 9).Draw(rt, "bump") == 0 {
		a.epoch, a.base = a.epoch+1, 0
	}
	m.send(rt, path, a)
}

func (m *machine) plain(rt *rapid.T) { m.send(rt, partition(rt), nil) }

// again repeats an append that was stored, to the byte.
func (m *machine) again(rt *rapid.T) {
	if len(m.sent) == 0 {
		rt.Skip("nothing has been sent")
	}
	back := min(rapid.IntRange(1, 12).Draw(rt, "back"), len(m.sent))
	m.both(m.sent[len(m.sent)-back])
}

// send draws form, coding and contents of an append and sends it.
func (m *machine) send(rt *rapid.T, path string, a *attempt) {
	values := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", `"quoted"`, "ü"}), 1, 3).Draw(rt, "values")
	c := &call{kind: "append", method: http.MethodPost, path: path + "/batches", header: http.Header{"Prefer": {"wait=0"}}}
	form := rapid.SampledFrom([]string{"application/json", "application/x-ndjson", batch.ContentType, "text/plain"}).Draw(rt, "form")
	c.header.Set("Content-Type", form)
	switch form {
	case "application/json":
		body := map[string]any{"records": records(rt, values)}
		if a != nil {
			body["pid"], body["epoch"], body["baseSeq"] = a.pid, a.epoch, a.base
		}
		c.body = marshal(rt, body)
	case "application/x-ndjson":
		for _, r := range records(rt, values) {
			c.body = append(append(c.body, marshal(rt, r)...), '\n')
		}
	case batch.ContentType:
		var b batch.Builder
		for _, v := range values {
			b.Add(&batch.Record{Value: []byte(v), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
		}
		c.body = b.Build().Bytes
	default:
		c.body = []byte(strings.Join(values, "\n"))
	}
	if a != nil && form != "application/json" {
		if rapid.Bool().Draw(rt, "query") {
			c.path += fmt.Sprintf("?pid=%d&epoch=%d&baseSeq=%d", a.pid, a.epoch, a.base)
		} else {
			c.header.Set("Producer-Id", strconv.FormatInt(a.pid, 10))
			c.header.Set("Producer-Epoch", strconv.FormatInt(a.epoch, 10))
			c.header.Set("Producer-Seq", strconv.FormatInt(a.base, 10))
		}
	}
	code(rt, c)
	if got := m.both(c); got.status == http.StatusOK && a != nil {
		m.sent = append(m.sent, c)
	}
}

// records draws how JSON records say their values.
func records(rt *rapid.T, values []string) (out []map[string]any) {
	for _, v := range values {
		r := map[string]any{}
		switch rapid.IntRange(0, 3).Draw(rt, "member") {
		case 0:
			r["value"] = map[string]string{"v": v}
		case 1:
			r["valueBase64"] = base64.StdEncoding.EncodeToString([]byte(v))
		case 2:
			r["value"] = nil
		default:
			r["valueText"] = v
		}
		if rapid.Bool().Draw(rt, "key") {
			r["key"] = v
			r["headers"] = []map[string]string{{"name": "h", "value": v}}
			r["timestamp"] = 1767323045678
		}
		out = append(out, r)
	}
	return out
}

func marshal(rt *rapid.T, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		rt.Fatalf("%v", err)
	}
	return b
}

// code draws a coding and applies it.
func code(rt *rapid.T, c *call) {
	coding := rapid.SampledFrom([]string{"", "", "gzip", "zstd"}).Draw(rt, "coding")
	if coding == "" {
		return
	}
	c.header.Set("Content-Encoding", coding)
	var out strings.Builder
	var err error
	if coding == "gzip" {
		w := gzip.NewWriter(&out)
		if _, err = w.Write(c.body); err == nil {
			err = w.Close()
		}
	} else {
		var w *zstd.Encoder
		if w, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1)); err == nil {
			_, err = w.Write(c.body)
		}
		if err == nil {
			err = w.Close()
		}
	}
	if err != nil {
		rt.Fatalf("%s: %v", coding, err)
	}
	c.body = []byte(out.String())
}

// read reads from anywhere, as a list or as lines.
func (m *machine) read(rt *rapid.T) {
	offset := rapid.SampledFrom([]string{"earliest", "latest", "-2", "0", "3", "7", "15", "40", "x"}).Draw(rt, "offset")
	query := fmt.Sprintf("?offset=%s&limit=%d", offset, rapid.IntRange(1, 10).Draw(rt, "limit"))
	if rapid.Bool().Draw(rt, "base64") {
		query += "&values=base64"
	}
	c := &call{kind: "read", method: http.MethodGet, path: partition(rt) + "/records" + query, header: http.Header{}}
	if rapid.Bool().Draw(rt, "lines") {
		c.header.Set("Accept", "application/x-ndjson")
	}
	m.both(c)
}

// list walks a list by pages. Tokens are of the server that gave them.
func (m *machine) list(rt *rapid.T) {
	path := rapid.SampledFrom([]string{"/topics", "/producers", "/topics/topic-0/partitions", "/topics/topic-0/partitions/0/producers", "/topics/topic-1/partitions/1/producers"}).Draw(rt, "list")
	token := ""
	for range 10 {
		a := m.get("list", path+"?limit=1"+token)
		var page struct{ NextPageToken *string }
		if json.Unmarshal(a.body, &page) != nil || page.NextPageToken == nil {
			return
		}
		token = "&pageToken=" + *page.NextPageToken
	}
}

func (m *machine) trim(rt *rapid.T) {
	m.json("trim", http.MethodDelete, fmt.Sprintf("%s/records?before=%d", partition(rt), rapid.IntRange(0, 40).Draw(rt, "before")), "")
}

func (m *machine) roll(rt *rapid.T) { m.json("roll", http.MethodPost, partition(rt)+"/roll", "") }

func (m *machine) expire(rt *rapid.T) {
	path := fmt.Sprintf("%s/producers/%d", partition(rt), m.pid(rt))
	m.json("expire", http.MethodDelete, path, "")
	m.get("producer", path)
	m.get("producer", path[strings.LastIndex(path, "/producers/"):])
}

// snapshot takes one, which must hold the same in both.
func (m *machine) snapshot(rt *rapid.T) {
	topic, p := topicName(rapid.IntRange(0, topics-1).Draw(rt, "topic")), rapid.IntRange(0, partitions-1).Draw(rt, "partition")
	body := fmt.Sprintf(`{"topic":%q,"partition":%d}`, topic, p)
	got, want := m.each(&call{kind: "snapshot", method: http.MethodPost, path: "/snapshots", header: http.Header{"Content-Type": {"application/json"}}, body: []byte(body)})
	if got.status != want.status {
		m.rt.Fatalf("snapshot %s: %d %s, the model says %d %s", body, got.status, got.body, want.status, want.body)
	}
	m.counts["snapshot "+outcome(got)]++
	all := m.snapshots(topic, p)
	if got.status != http.StatusCreated {
		return
	}
	c := &call{method: http.MethodGet, path: all[len(all)-1]}
	got, want = m.each(c)
	var g, w struct {
		Producers int
		Items     []any
	}
	if json.Unmarshal(got.body, &g) != nil || json.Unmarshal(want.body, &w) != nil || g.Producers != w.Producers {
		m.rt.Fatalf("%s: %s, the model says %s", c.path, got.body, want.body)
	}
	m.equal(c, marshal(rt, g.Items), marshal(rt, w.Items))
}

// useSnapshot holds a snapshot that both have to the log, and perhaps deletes it.
func (m *machine) useSnapshot(rt *rapid.T) {
	all := m.snapshots(topicName(rapid.IntRange(0, topics-1).Draw(rt, "topic")), rapid.IntRange(0, partitions-1).Draw(rt, "partition"))
	if len(all) == 0 {
		rt.Skip("there is no snapshot")
	}
	path := rapid.SampledFrom(all).Draw(rt, "snapshot")
	if a := m.json("verify", http.MethodPost, path+"/verify", ""); !strings.Contains(string(a.body), `"match":true`) {
		m.rt.Fatalf("%s: %s", path, a.body)
	}
	if rapid.IntRange(0, 3).Draw(rt, "delete") == 0 {
		m.json("delete snapshot", http.MethodDelete, path, "")
	}
}

// config changes a topic, on condition that it is as it was seen, or was long ago.
func (m *machine) config(rt *rapid.T) {
	path := "/topics/" + topicName(rapid.IntRange(0, topics-1).Draw(rt, "topic"))
	change := map[string]any{}
	draw := func(name string, values ...any) {
		if rapid.IntRange(0, 2).Draw(rt, "change "+name) == 0 {
			change[name] = rapid.SampledFrom(values).Draw(rt, name)
		}
	}
	draw("maxBatchBytes", 1<<20, 1<<20, 2, nil)
	draw("requireIdempotence", true, false, false)
	draw("maxProducers", 1_000_000, 2, 0)
	draw("partitions", partitions, partitions, 1, "x")
	if m.subject.Sweep != nil {
		draw("retentionBytes", -1, 0, 500, 2000)
		draw("retentionMs", -1, 0, 30_000)
		draw("segmentMs", 1_000_000_000, 1000)
		draw("producerExpiryMs", 20_000, 100_000)
	}
	c := &call{kind: "config", method: http.MethodPatch, path: path, header: http.Header{"Content-Type": {"application/merge-patch+json"}}, body: marshal(rt, change)}
	if rapid.IntRange(0, 5).Draw(rt, "stale") == 0 {
		c.header.Set("If-Match", `"long-ago"`)
	}
	m.both(c)
}

// topic deletes a topic, or creates it, again perhaps.
func (m *machine) topic(rt *rapid.T) {
	name := topicName(rapid.IntRange(0, topics-1).Draw(rt, "topic"))
	body := fmt.Sprintf(`{"name":%q,"partitions":%d,"segmentBytes":1024}`, name, rapid.SampledFrom([]int{partitions, 1, 0}).Draw(rt, "partitions"))
	switch rapid.IntRange(0, 7).Draw(rt, "change") {
	case 0:
		m.json("delete topic", http.MethodDelete, "/topics/"+name, "")
		if m.subject.Sweep != nil {
			m.sweep()
		}
	case 1, 2:
		m.json("create", http.MethodPost, "/topics", body)
	case 3:
		m.json("create", http.MethodPost, "/topics", `{"name":"..","partitions":"1"}`)
	default:
		m.json("create", http.MethodPut, "/topics/"+name, `{"partitions":2,"segmentBytes":1024}`)
	}
}

// nonsense sends what makes no sense.
func (m *machine) nonsense(rt *rapid.T) {
	method := rapid.SampledFrom([]string{"GET", "POST", "PUT", "PATCH", "DELETE", "BREW"}).Draw(rt, "method")
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"topics", "topic-0", "topic-1", "partitions", "0", "1", "records", "batches", "producers", "snapshots", "verify", "roll", "-1", "%2F", "x"}), 1, 6).Draw(rt, "path")
	path := "/" + strings.Join(parts, "/")
	if method == http.MethodPost && (path == "/snapshots" || path == "/producers") {
		path += "/x" // what would be carried out has its own actions
	}
	body := rapid.SampledFrom([]string{"", "{", "[]", `{"pid":0}`, `{"records":[{"value":1,"value":2}]}`, `{"records":[{}],"epoch":-1}`}).Draw(rt, "body")
	c := &call{kind: "nonsense", method: method, path: path, header: http.Header{}, body: []byte(body)}
	c.header.Set("Content-Type", rapid.SampledFrom([]string{"application/json", "application/x-ndjson", batch.ContentType, "no type"}).Draw(rt, "type"))
	c.header.Set("Content-Encoding", rapid.SampledFrom([]string{"identity", "gzip", "zstd", "br"}).Draw(rt, "coding"))
	m.both(c)
}
