package storetest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// CaseTarget is a topic of one partition that a case is played against. Except for
// Producer, pids are those that it handed out. A target fails its test itself when it
// cannot be reached at all.
type CaseTarget interface {
	// Producer allocates a producer id: POST /producers.
	Producer() CaseResult
	// Append appends one batch, with Prefer: wait=0.
	Append(CaseAppend) CaseResult
	// Restart ends the engine, with kill as loss of power would, and starts it again
	// on the same data.
	Restart(kill bool)
	// Roll closes the active segment: POST …/roll.
	Roll() CaseResult
	// Snapshot takes a snapshot of the partition: POST /snapshots.
	Snapshot() CaseResult
	// Trim removes the records below an offset: DELETE …/records?before=N.
	Trim(before int64) CaseResult
	// Expire ends a producer's state: DELETE …/producers/{pid}.
	Expire(pid int64) CaseResult
	// State shows a producer in the partition: GET …/producers/{pid}.
	State(pid int64) CaseResult
	// Partition describes the partition: GET …/partitions/0.
	Partition() CaseResult
}

// CaseAppend is a batch of Count records; the value of record i is the text Payload,
// a dash and i.
type CaseAppend struct {
	PID     int64
	Epoch   int64
	BaseSeq int64
	Count   int
	Payload string
}

// Values are the texts of the batch's records.
func (a CaseAppend) Values() []string {
	out := make([]string, a.Count)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", a.Payload, i)
	}
	return out
}

// CaseResult is an answer: an HTTP status and the decoded JSON object of the body, nil
// when there is none. Numbers may be of any type that encoding/json writes as they were.
type CaseResult struct {
	Status int
	Body   map[string]any
}

// Case is a conversation about one topic of one partition.
type Case struct {
	Name  string     `json:"name"`
	Area  string     `json:"area"`
	Steps []CaseStep `json:"steps"`
}

// CaseStep is one request and what is expected of the answer. Do is one of producer,
// append, restart, roll, snapshot, trim, expire, state and partition; which other
// members count depends on it. Every member of Expect must be in the body with that
// value, but for "status", which is that of the answer, and "recent", which is the
// number of elements. Without Expect a step must succeed, except that a trim may go
// beyond the end.
type CaseStep struct {
	Do      string                     `json:"do"`
	As      string                     `json:"as,omitempty"`   // name for a producer
	PID     string                     `json:"pid,omitempty"`  // name of a producer
	Kind    string                     `json:"kind,omitempty"` // of a restart: clean or crash
	Epoch   int64                      `json:"epoch,omitempty"`
	BaseSeq int64                      `json:"baseSeq,omitempty"`
	Count   int                        `json:"count,omitempty"`
	Payload string                     `json:"payload,omitempty"`
	Before  int64                      `json:"before,omitempty"`
	Expect  map[string]json.RawMessage `json:"expect,omitempty"`
}

//go:embed testdata/*.json
var caseFiles embed.FS

// CaseFiles are the names of the files that [LoadCases] knows.
func CaseFiles() []string { return []string{"idempotence.json", "more.json"} }

// LoadCases gives the cases of a file.
func LoadCases(tb testing.TB, file string) []Case {
	tb.Helper()
	data, err := caseFiles.ReadFile("testdata/" + file)
	if err != nil {
		tb.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var cases []Case
	if err := d.Decode(&cases); err != nil {
		tb.Fatalf("%s: %v", file, err)
	}
	return cases
}

// Cases plays all cases, one after the other, each as a subtest. open makes a topic of
// that name with one partition; targets may share an engine.
func Cases(t *testing.T, open func(t testing.TB, topic string) CaseTarget) {
	for _, file := range CaseFiles() {
		t.Run(strings.TrimSuffix(file, ".json"), func(t *testing.T) {
			for _, c := range LoadCases(t, file) {
				t.Run(c.Name, func(t *testing.T) {
					PlayCase(t, c, open(t, c.Name))
				})
			}
		})
	}
}

// PlayCase plays one case.
func PlayCase(tb testing.TB, c Case, target CaseTarget) {
	tb.Helper()
	p := casePlayer{target: target, pids: map[string]int64{}}
	for i, step := range c.Steps {
		result, err := p.play(step)
		if err == nil {
			err = step.judge(result)
		}
		if err != nil {
			want, _ := json.Marshal(step)
			got, _ := json.Marshal(result.Body)
			tb.Fatalf("step %d: %v\nstep: %s\nanswer: %d %s", i, err, want, result.Status, got)
		}
	}
}

type casePlayer struct {
	target CaseTarget
	pids   map[string]int64
}

func (p *casePlayer) play(s CaseStep) (CaseResult, error) {
	pid, known := p.pids[s.PID]
	if s.PID != "" && !known {
		return CaseResult{}, fmt.Errorf("the case has no producer %q", s.PID)
	}
	switch s.Do {
	case "producer":
		r := p.target.Producer()
		id, err := integer(r.Body["pid"])
		p.pids[s.As] = id
		return r, err
	case "append":
		return p.target.Append(CaseAppend{PID: pid, Epoch: s.Epoch, BaseSeq: s.BaseSeq, Count: s.Count, Payload: s.Payload}), nil
	case "restart":
		if s.Kind != "clean" && s.Kind != "crash" {
			return CaseResult{}, fmt.Errorf("unknown restart %q", s.Kind)
		}
		p.target.Restart(s.Kind == "crash")
		return CaseResult{Status: 200}, nil
	case "roll":
		return p.target.Roll(), nil
	case "snapshot":
		return p.target.Snapshot(), nil
	case "trim":
		return p.target.Trim(s.Before), nil
	case "expire":
		return p.target.Expire(pid), nil
	case "state":
		return p.target.State(pid), nil
	case "partition":
		return p.target.Partition(), nil
	}
	return CaseResult{}, fmt.Errorf("unknown step %q", s.Do)
}

// judge compares an answer with what the step expects.
func (s CaseStep) judge(r CaseResult) error {
	expect := maps.Clone(s.Expect)
	if _, ok := expect["status"]; !ok {
		beyondEnd := s.Do == "trim" && r.Status == 416
		if (r.Status < 200 || r.Status > 299) && !beyondEnd {
			return fmt.Errorf("status %d", r.Status)
		}
	}
	for _, member := range slices.Sorted(maps.Keys(expect)) {
		got, ok := r.Body[member]
		switch {
		case member == "status":
			got, ok = r.Status, true
		case member == "recent":
			list, _ := got.([]any)
			got = len(list)
		}
		if want := expect[member]; !ok || !sameJSON(got, want) {
			return fmt.Errorf("%s is %v (there: %v), want %s", member, got, ok, want)
		}
	}
	return nil
}

// sameJSON reports whether v is written as want. Both being plain values, there is one
// way to write them.
func sameJSON(v any, want json.RawMessage) bool {
	got, err := json.Marshal(v)
	if err != nil {
		return false
	}
	var a, b bytes.Buffer
	if json.Compact(&a, got) != nil || json.Compact(&b, want) != nil {
		return false
	}
	return bytes.Equal(a.Bytes(), b.Bytes())
}

// integer reads a JSON number of whatever Go type.
func integer(v any) (int64, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("no integer: %w", err)
	}
	var n int64
	if err := json.Unmarshal(b, &n); err != nil || v == nil {
		return 0, fmt.Errorf("%s is no integer", b)
	}
	return n, nil
}
