package sequence_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/store/sequence"
)

// machine drives rule and twin side by side with numbers as large as they get.
type machine struct {
	state  sequence.State
	twin   twin
	offset int64
	now    int64
}

// near draws a number around one of the points, or any, within 0 … Max.
func near(t *rapid.T, label string, points ...int64) int64 {
	p := append([]int64{0, sequence.Max}, points...)
	n := rapid.SampledFrom(p).Draw(t, label+" near") + rapid.Int64Range(-3, 3).Draw(t, label+" by")
	if rapid.IntRange(0, 15).Draw(t, label+" anywhere") == 0 {
		n = rapid.Int64Range(0, sequence.Max).Draw(t, label)
	}
	return min(max(n, 0), sequence.Max)
}

func digests() *rapid.Generator[sequence.Digest] {
	return rapid.SampledFrom([]sequence.Digest{{}, payloadA, payloadB})
}

func counts() *rapid.Generator[int32] {
	few := rapid.Int32Range(1, 4) // mostly, or several batches together were more than one can be
	return rapid.OneOf(few, few, few, few, few, rapid.Just[int32](65_536), rapid.Just[int32](1<<31-1))
}

// fit cuts a count so that no sequence is above Max, which is what every caller of
// Check sees to.
func fit(base int64, count int32) int32 { return int32(min(int64(count), sequence.Max-base+1)) }

// attempt makes any attempt at all.
func (m *machine) attempt(t *rapid.T) {
	points := []int64{m.state.NextSeq(), m.state.FirstSeq()}
	for _, b := range m.twin.current() {
		points = append(points, b.first)
	}
	a := sequence.Attempt{Epoch: near(t, "epoch", m.state.Epoch()), BaseSeq: near(t, "base", points...), Digest: digests().Draw(t, "digest")}
	a.Count = fit(a.BaseSeq, counts().Draw(t, "count"))
	m.submit(t, a)
}

// goOn makes the attempt that is in order, so that histories get long.
func (m *machine) goOn(t *rapid.T) {
	a := sequence.Attempt{Epoch: m.state.Epoch(), BaseSeq: m.state.NextSeq(), Digest: digests().Draw(t, "digest")}
	if a.BaseSeq > sequence.Max {
		t.Skip("the epoch is used up")
	}
	a.Count = fit(a.BaseSeq, counts().Draw(t, "count"))
	m.submit(t, a)
}

// retry repeats a stored batch: as it was, changed, cut, grown or shifted.
func (m *machine) retry(t *rapid.T) {
	if len(m.twin.stored) == 0 {
		t.Skip("nothing is stored")
	}
	b := rapid.SampledFrom(m.twin.stored).Draw(t, "of")
	a := sequence.Attempt{Epoch: b.epoch, BaseSeq: b.first, Count: int32(b.last - b.first + 1), Digest: b.digest}
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0:
		a.Digest = digests().Draw(t, "digest")
	case 1:
		a.Count = rapid.Int32Range(1, a.Count).Draw(t, "cut to")
	case 2:
		a.Count = max(a.Count, counts().Draw(t, "grown to"))
	case 3:
		a.BaseSeq = min(a.BaseSeq+1, sequence.Max)
	case 4: // merged with all that follows it, and a record less or more
		all := m.state.NextSeq() - a.BaseSeq + rapid.Int64Range(-1, 1).Draw(t, "by")
		a.Count = int32(min(max(all, 1), 1<<31-1))
	}
	a.Count = fit(a.BaseSeq, a.Count)
	m.submit(t, a)
}

func (m *machine) expire(t *rapid.T) {
	if !m.state.Live() {
		t.Skip("nothing to expire")
	}
	m.state, m.twin = m.state.Expire(m.now), m.twin.expire(m.now)
}

func (m *machine) submit(t *rapid.T, a sequence.Attempt) {
	before := m.state
	got, want := sequence.Check(&m.state, a), m.twin.judge(a)
	if got != want {
		t.Fatalf("%+v is\n%+v, the twin says\n%+v", a, got, want)
	}
	if m.state != before {
		t.Fatalf("%+v has changed the state", a)
	}
	if got.Kind != sequence.Append {
		return
	}
	m.state, m.twin = m.state.Apply(a, m.offset, m.now), m.twin.store(a, m.offset, m.now)
	if again := sequence.Check(&m.state, a); again.Kind != sequence.Duplicate || again.Original.BaseOffset != m.offset {
		t.Fatalf("%+v, just appended at %d, is %+v", a, m.offset, again)
	}
	m.offset += int64(a.Count) + rapid.Int64Range(0, 1<<33).Draw(t, "records of others")
	m.now += rapid.Int64Range(0, 1<<33).Draw(t, "time passes")
}

// check holds after each step.
func (m *machine) check(t *rapid.T) {
	if what := m.twin.differs(&m.state) + invariant(&m.state); what != "" {
		t.Fatalf("after %+v: %s", m.twin, what)
	}
	if !m.state.Exists() {
		return
	}
	b, err := m.state.AppendBinary([]byte("before"))
	if err != nil || string(b[:6]) != "before" {
		t.Fatalf("encoded to %x, %v", b, err)
	}
	got, rest, err := sequence.DecodeState(append(b[6:], "after"...))
	if err != nil || string(rest) != "after" || got != m.state {
		t.Fatalf("decoded %+v, rest %q, %v; want %+v", got, rest, err, m.state)
	}
}

func TestRuleAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m machine
		if rapid.Bool().Draw(t, "high") { // what recovery may find: an epoch that is far on
			a := try(near(t, "epoch"), sequence.Max-rapid.Int64Range(4, 1<<33).Draw(t, "below the top"), 2, payloadA)
			m.state, m.twin = m.state.Apply(a, 0, 0), m.twin.store(a, 0, 0)
			m.offset = 2
		}
		t.Repeat(map[string]func(*rapid.T){
			"attempt": m.attempt, "goOn": m.goOn, "goOnAgain": m.goOn, "retry": m.retry, "expire": m.expire,
			"": m.check,
		})
	})
}
