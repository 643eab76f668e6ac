package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory"
)

// testMachine does the same things at random to the engine and to the model, and
// expects the same answers.
func testMachine(t *testing.T, f Factory) {
	if f.Traits.Slow {
		t.Skip("the engine is slow")
	}
	var b Bounds
	e := newEnv(t, f) // for all runs: a run has a topic of its own
	if f.OpenBounded != nil {
		b = Bounds{MaxTombstones: machineProducers - 1} // so that a bound is reached now and then
		e = newBoundedEnv(t, f, b)
	}
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		m := newMachine(rt, e, fmt.Sprintf("machine-%d", runs), b)
		defer m.end()
		actions := map[string]func(*rapid.T){
			"":         m.invariants,
			"append":   m.append,
			"again":    m.again,
			"go on":    m.goOn,
			"plain":    m.plain,
			"read":     m.read,
			"trim":     m.trim,
			"roll":     m.roll,
			"expire":   m.expire,
			"snapshot": m.snapshot,
			"forget":   m.forgetSnapshot,
			"config":   m.config,
		}
		if !f.Traits.RealTime {
			actions["time"] = m.time
		}
		if f.Sweep != nil {
			actions["sweep"] = m.sweep
		}
		if f.Reopen != nil {
			actions["restart"] = m.restart
		}
		rt.Repeat(actions)
	})
}

const machineProducers = 3

// machine is an engine with the model beside it. Producer ids are not the same in
// both, so operations name producers by number.
type machine struct {
	rt        *rapid.T
	ctx       context.Context //nolint:containedctx // that of the test
	e         *env
	model     *memory.Store
	topic     string
	pids      [machineProducers]int64
	modelPIDs [machineProducers]int64
	sent      []sent // appends that were stored
}

// sent is an append but for its partition's store.
type sent struct {
	partition int
	producer  int
	epoch     int64
	base      int64
	n         int
	payload   string
}

func newMachine(rt *rapid.T, e *env, topic string, b Bounds) *machine {
	model := memory.Open(memory.Options{Now: e.clock.Now, MaxProducers: b.MaxProducers, MaxTombstones: b.MaxTombstones})
	m := &machine{rt: rt, ctx: e.ctx, e: e, model: model, topic: topic}
	c := store.DefaultConfig()
	c.SegmentBytes, c.ProducerExpiryMs = store.MinSegmentBytes, 100*second
	_, errGot := e.CreateTopic(m.ctx, topic, 2, c)
	_, errWant := m.model.CreateTopic(m.ctx, topic, 2, c)
	m.agree("create topic", errGot, errWant)
	for i := range machineProducers {
		a, errGot := e.AllocateProducer(m.ctx, "")
		b, errWant := m.model.AllocateProducer(m.ctx, "")
		m.agree("allocate", errGot, errWant)
		m.pids[i], m.modelPIDs[i] = a.ID, b.ID
	}
	return m
}

func (m *machine) end() {
	m.agree("delete topic", m.e.DeleteTopic(m.ctx, m.topic), nil)
}

// agree expects the same error from both. It reports whether both have succeeded.
func (m *machine) agree(what string, got, want error) bool {
	if store.CodeOf(got) != store.CodeOf(want) {
		m.rt.Fatalf("%s: the engine says %v, the model %v", what, got, want)
	}
	return got == nil
}

// equal expects that both have written down the same.
func (m *machine) equal(what, got, want string) {
	if got != want {
		m.rt.Fatalf("%s: the engine says\n%s\nthe model\n%s", what, got, want)
	}
}

func (m *machine) partition(rt *rapid.T) store.Partition {
	return store.Partition{Topic: m.topic, Number: rapid.IntRange(0, 1).Draw(rt, "partition")}
}

func (m *machine) send(s sent) {
	p := store.Partition{Topic: m.topic, Number: s.partition}
	b := Batch(s.payload, s.n)
	got, errGot := m.e.Append(m.ctx, seqOf(p, m.pids[s.producer], s.epoch, s.base, b))
	want, errWant := m.model.Append(m.ctx, seqOf(p, m.modelPIDs[s.producer], s.epoch, s.base, b))
	ok := m.agree(fmt.Sprintf("append %+v", s), errGot, errWant)
	m.equal(fmt.Sprintf("append %+v", s), m.showAck(got, errGot), m.showAck(want, errWant))
	if ok && !got.Duplicate {
		m.sent = append(m.sent, s)
	}
}

// showAck writes down an answer, times only when both have the same clock.
func (m *machine) showAck(a store.Ack, err error) string {
	out := fmt.Sprintf("%d to %d, next %d, duplicate %v", a.BaseOffset, a.LastOffset, a.NextSeq, a.Duplicate)
	if !m.e.f.Traits.RealTime {
		out += fmt.Sprintf(", at %d", a.AppendedAt.UnixMilli())
	}
	return out + showRefusal(err, m.e.f.Traits)
}

// append draws an append close to what would be right, so that each verdict comes up.
func (m *machine) append(rt *rapid.T) {
	m.send(sent{
		partition: rapid.IntRange(0, 1).Draw(rt, "partition"),
		producer:  rapid.IntRange(0, machineProducers-1).Draw(rt, "producer"),
		epoch:     rapid.Int64Range(0, 3).Draw(rt, "epoch"),
		base:      rapid.Int64Range(0, 12).Draw(rt, "base"),
		n:         rapid.IntRange(1, 4).Draw(rt, "n"),
		payload:   rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "payload"),
	})
}

// goOn sends the batch that is in order, or of the next epoch.
func (m *machine) goOn(rt *rapid.T) {
	p := m.partition(rt)
	s := sent{
		partition: p.Number,
		producer:  rapid.IntRange(0, machineProducers-1).Draw(rt, "producer"),
		n:         rapid.IntRange(1, 4).Draw(rt, "n"),
		payload:   rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "payload"),
	}
	if state, err := m.model.PartitionProducer(m.ctx, p, m.modelPIDs[s.producer]); err == nil {
		s.epoch, s.base = state.State.Epoch(), state.State.NextSeq()
	}
	if rapid.IntRange(0, 9).Draw(rt, "bump") == 0 {
		s.epoch, s.base = s.epoch+1, 0
	}
	m.send(s)
}

// again repeats an append, one of the last ones as a rule.
func (m *machine) again(rt *rapid.T) {
	if len(m.sent) == 0 {
		rt.Skip("nothing has been sent")
	}
	back := min(rapid.IntRange(1, 12).Draw(rt, "back"), len(m.sent))
	m.send(m.sent[len(m.sent)-back])
}

func (m *machine) plain(rt *rapid.T) {
	p := m.partition(rt)
	a := plain(p, rapid.SampledFrom([]string{"p", "q"}).Draw(rt, "value"))
	got, errGot := m.e.Append(m.ctx, a)
	want, errWant := m.model.Append(m.ctx, a)
	m.agree("plain append", errGot, errWant)
	m.equal("plain append", m.showAck(got, errGot), m.showAck(want, errWant))
}

// read reads from anywhere. How many batches come is up to the engine.
func (m *machine) read(rt *rapid.T) {
	r := store.Read{
		Partition: m.partition(rt), Offset: rapid.Int64Range(0, 40).Draw(rt, "offset"),
		MaxRecords: rapid.IntRange(1, 10).Draw(rt, "records"), MaxBytes: rapid.IntRange(1, 400).Draw(rt, "bytes"),
	}
	records, errGot := m.e.Read(m.ctx, r)
	_, errWant := m.model.Read(m.ctx, r)
	if !m.agree(fmt.Sprintf("read %+v", r), errGot, errWant) {
		m.equal("read", showRefusal(errGot, m.e.f.Traits), showRefusal(errWant, m.e.f.Traits))
		return
	}
	got, _, err := valuesFrom(records, r.Offset, m.e.f.Traits)
	want, errAll := readAll(m.ctx, m.model, r.Partition, r.Offset, Traits{})
	if err != nil || errAll != nil {
		m.rt.Fatalf("read %+v: %v, %v", r, err, errAll)
	}
	if len(got) > len(want) || (len(got) == 0 && len(want) > 0) || !slices.Equal(got, want[:len(got)]) {
		m.rt.Fatalf("read %+v: %v, want the beginning of %v", r, got, want)
	}
}

func (m *machine) trim(rt *rapid.T) {
	p, before := m.partition(rt), rapid.Int64Range(0, 40).Draw(rt, "before")
	if b, err := m.model.Bounds(m.ctx, p); err == nil && rapid.Bool().Draw(rt, "near") {
		before = max(0, b.HighWatermark+1-rapid.Int64Range(0, 5).Draw(rt, "below"))
	}
	got, errGot := m.e.Trim(m.ctx, p, before)
	want, errWant := m.model.Trim(m.ctx, p, before)
	if m.agree(fmt.Sprintf("trim below %d", before), errGot, errWant) && got != want {
		m.rt.Fatalf("trim below %d: %d, the model says %d", before, got, want)
	}
}

func (m *machine) roll(rt *rapid.T) {
	p := m.partition(rt)
	_, errGot := m.e.Roll(m.ctx, p)
	_, errWant := m.model.Roll(m.ctx, p)
	m.agree("roll", errGot, errWant)
}

func (m *machine) expire(rt *rapid.T) {
	p, i := m.partition(rt), rapid.IntRange(0, machineProducers-1).Draw(rt, "producer")
	errGot := m.e.ExpireProducer(m.ctx, p, m.pids[i])
	errWant := m.model.ExpireProducer(m.ctx, p, m.modelPIDs[i])
	m.agree(fmt.Sprintf("expire %d", i), errGot, errWant)
}

func (m *machine) config(rt *rapid.T) {
	bytes := rapid.SampledFrom([]int64{store.Keep, 0, 500, 2000}).Draw(rt, "retentionBytes")
	age := rapid.SampledFrom([]int64{store.Keep, 0, 30 * second}).Draw(rt, "retentionMs")
	expiry := rapid.SampledFrom([]int64{20 * second, 100 * second}).Draw(rt, "producerExpiryMs")
	if m.e.f.Traits.RealTime {
		age, expiry = store.Keep, 100*second
	}
	change := func(t store.Topic) (store.Topic, error) {
		t.Config.RetentionBytes, t.Config.RetentionMs, t.Config.ProducerExpiryMs = bytes, age, expiry
		return t, nil
	}
	got, errGot := m.e.UpdateTopic(m.ctx, m.topic, change)
	want, errWant := m.model.UpdateTopic(m.ctx, m.topic, change)
	m.agree("config", errGot, errWant)
	if got.Version != want.Version || got.Config != want.Config {
		m.rt.Fatalf("config: %+v, the model says %+v", got, want)
	}
}
