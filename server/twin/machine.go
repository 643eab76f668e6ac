package twin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory" //nolint:depguard // the model; nothing but tests has this package
)

const (
	topics     = 2
	partitions = 2 // of each, at first
	producers  = 3
)

// machine is both servers, and what has been sent to them.
type machine struct {
	rt      *rapid.T
	subject Subject
	model   *model
	counts  map[string]int
	pids    []int64
	sent    []*call // appends that were stored

	steps     int
	restarted bool // since everything was compared
}

func newMachine(rt *rapid.T, s Subject, counts map[string]int) *machine {
	o := memory.Options{}
	if s.Clock != nil {
		o.Now = s.Clock.Now
	}
	m := &machine{rt: rt, subject: s, counts: counts, model: newModel(rt, memory.Open(o))}
	for n := range topics {
		m.json("create", http.MethodPut, "/topics/"+topicName(n), fmt.Sprintf(`{"partitions":%d,"segmentBytes":1024}`, partitions))
	}
	for range producers {
		m.allocate(rt)
	}
	return m
}

func topicName(n int) string { return "topic-" + strconv.Itoa(n) }

// actions are what may happen, and what is compared after each of it.
func (m *machine) actions() map[string]func(*rapid.T) {
	a := map[string]func(*rapid.T){
		"":             m.invariants,
		"append":       m.append,
		"append more":  m.append,
		"go on":        m.goOn,
		"go on more":   m.goOn,
		"and on":       m.goOn,
		"again":        m.again,
		"once again":   m.again,
		"plain":        m.plain,
		"read":         m.read,
		"list":         m.list,
		"trim":         m.trim,
		"roll":         m.roll,
		"expire":       m.expire,
		"allocate":     m.allocate,
		"snapshot":     m.snapshot,
		"use snapshot": m.useSnapshot,
		"config":       m.config,
		"topic":        m.topic,
		"nonsense":     m.nonsense,
		"restart":      m.restart,
	}
	if m.subject.Sweep != nil {
		a["sweep"] = func(*rapid.T) { m.sweep() }
		a["time"] = m.time
	}
	return a
}

// both sends a request to both servers and expects the same answer, which it returns.
func (m *machine) both(c *call) answer {
	if m.subject.Clock != nil {
		m.subject.Clock.Add(time.Millisecond) // so that "the quietest" is always one
	}
	got, want := m.each(c)
	if got.status != want.status {
		m.rt.Fatalf("%s %s %s: the server answers %d %s\nthe model %d %s", c.method, c.path, c.body, got.status, got.body, want.status, want.body)
	}
	for _, name := range []string{"Content-Type", "Location", "Allow", "Retry-After", "Idempotent-Replayed", "Cache-Control"} {
		if g, w := got.header.Get(name), want.header.Get(name); g != w {
			m.rt.Fatalf("%s %s: %s is %q, the model says %q", c.method, c.path, name, g, w)
		}
	}
	m.equal(c, got.body, want.body)
	m.counts[fmt.Sprintf("%s %s", c.kind, outcome(got))]++
	return got
}

// each sends a request to both servers.
func (m *machine) each(c *call) (got, want answer) { return m.ask(c), m.askModel(c) }

func (m *machine) ask(c *call) (a answer) {
	resp, err := m.subject.Send(c.request(m.rt))
	if err == nil {
		a, err = read(resp)
	}
	if err != nil {
		m.rt.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	return a
}

func (m *machine) askModel(c *call) answer {
	resp, err := Handler(func() http.Handler { return m.model.handler })(c.request(m.rt)) //nolint:bodyclose // read does
	if err != nil {
		m.rt.Fatalf("the model: %v", err)
	}
	a, err := read(resp)
	if err != nil {
		m.rt.Fatalf("the model: %s %s: %v", c.method, c.path, err)
	}
	return a
}

// outcome is the code of a problem, or the status.
func outcome(a answer) string {
	var p struct {
		Code      string
		Duplicate bool
	}
	_ = json.Unmarshal(a.body, &p)
	switch {
	case p.Code != "":
		return p.Code
	case p.Duplicate:
		return "duplicate"
	}
	return strconv.Itoa(a.status)
}

// equal compares bodies: as JSON if they are, line by line.
func (m *machine) equal(c *call, got, want []byte) {
	g, w := strings.Split(strings.TrimSuffix(string(got), "\n"), "\n"), strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || !m.sameLine(g[i], w[i]) {
			m.rt.Fatalf("%s %s %s: the server answers\n%s\nthe model\n%s", c.method, c.path, c.body, got, want)
		}
	}
}

func (m *machine) sameLine(got, want string) bool {
	if got == want {
		return true
	}
	var g, w any
	if json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(want), &w) != nil {
		return false
	}
	return reflect.DeepEqual(m.shown(g), m.shown(w))
}

// shown leaves out of a JSON value what may differ.
func (m *machine) shown(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = m.shown(v[i])
		}
	case map[string]any:
		for name := range v {
			switch name {
			case "requestId", "detail", "id":
				delete(v, name)
			case "appendedAt", "createdAt", "lastTimestamp", "expiresAt", "expiredAt", "timestamp", "at":
				if m.subject.Clock == nil {
					delete(v, name)
					continue
				}
				v[name] = m.shown(v[name])
			default:
				v[name] = m.shown(v[name])
			}
		}
	}
	return v
}

// json sends a JSON body.
func (m *machine) json(kind, method, path, body string) answer {
	c := &call{kind: kind, method: method, path: path, header: http.Header{}, body: []byte(body)}
	if body != "" {
		c.header.Set("Content-Type", "application/json")
	}
	return m.both(c)
}

func (m *machine) get(kind, path string) answer { return m.json(kind, http.MethodGet, path, "") }

// invariants compares what both show of everything, after each few steps and restarts.
func (m *machine) invariants(*rapid.T) {
	const each = 6
	if m.steps++; m.steps%each != 0 && !m.restarted {
		return
	}
	m.restarted = false
	m.get("topics", "/topics")
	m.get("producers", "/producers")
	for n := range topics {
		t := "/topics/" + topicName(n)
		m.get("partitions", t+"/partitions")
		for p := range partitions {
			path := t + "/partitions/" + strconv.Itoa(p)
			m.get("batches", path+"/batches?offset=0")
			m.get("records", path+"/records?limit=10000")
			m.get("state", path+"/producers")
			m.snapshots(topicName(n), p)
		}
	}
}

// snapshots lists the snapshots that both have; the newest one must be among them. Which
// others are kept, and whether one was taken again at its offset after a producer had
// expired, is up to the engine.
func (m *machine) snapshots(topic string, partition int) []string {
	path := fmt.Sprintf("/snapshots?topic=%s&partition=%d", topic, partition)
	got, want := m.each(&call{kind: "snapshots", method: http.MethodGet, path: path})
	var g, w struct{ Items []struct{ Offset int64 } }
	if got.status != want.status || got.status == http.StatusOK && (json.Unmarshal(got.body, &g) != nil || json.Unmarshal(want.body, &w) != nil) {
		m.rt.Fatalf("%s: %s, the model says %s", path, got.body, want.body)
	}
	has := map[int64]bool{}
	for _, s := range g.Items {
		has[s.Offset] = true
	}
	var both []string
	for i, s := range w.Items {
		if !has[s.Offset] && i == len(w.Items)-1 {
			m.rt.Fatalf("%s: %s, the model says %s", path, got.body, want.body)
		}
		if has[s.Offset] {
			both = append(both, fmt.Sprintf("/snapshots/%s/%d/%d", topic, partition, s.Offset))
		}
	}
	return both
}

func (m *machine) restart(rt *rapid.T) {
	kill := rapid.Bool().Draw(rt, "kill")
	m.subject.Restart(kill)
	m.model = newModel(m.rt, m.model.store.Restart(kill))
	m.restarted = true
	m.counts[fmt.Sprintf("restart kill=%t", kill)]++
	if kill {
		m.align()
	}
}

// align allocates producer ids until both are at the same again: how many a kill loses is up
// to the engine, at most the rest of a block.
func (m *machine) align() {
	c := &call{kind: "allocate", method: http.MethodPost, path: "/producers"}
	var got, want struct{ PID int64 }
	a, b := m.each(c)
	for n := 0; ; n++ {
		if json.Unmarshal(a.body, &got) != nil || json.Unmarshal(b.body, &want) != nil || n > 2*store.ProducerBlockSize {
			m.rt.Fatalf("allocate: %s, the model says %s", a.body, b.body)
		}
		switch {
		case got.PID == want.PID:
			m.pids = append(m.pids, got.PID)
			return
		case got.PID < want.PID:
			a = m.ask(c)
		default:
			b = m.askModel(c)
		}
	}
}

func (m *machine) sweep() {
	m.subject.Sweep()
	m.model.store.Sweep()
}

// time moves the clock. Both look at the producers afterwards: which call first notices
// that one has expired is up to the engine.
func (m *machine) time(rt *rapid.T) {
	m.subject.Clock.Add(time.Duration(rapid.SampledFrom([]int{1, 999, 19_000, 60_000, 100_000, 86_400_000}).Draw(rt, "ms")) * time.Millisecond)
	m.get("producers", "/producers?limit=1")
}
