package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory"
)

// time moves the clock. Everybody looks at the producers afterwards: which call first
// notices that one has expired is up to the engine, and what nobody has noticed yet a
// new expiry time may revive.
func (m *machine) time(rt *rapid.T) {
	m.e.clock.Add(time.Duration(rapid.SampledFrom([]int{1, 999, 19_000, 60_000, 100_000}).Draw(rt, "ms")) * time.Millisecond)
	for _, s := range []store.Store{m.e, m.model} {
		if _, err := s.Producers(m.ctx, -1, 1); err != nil {
			rt.Fatalf("producers: %v", err)
		}
	}
}

func (m *machine) sweep(*rapid.T) {
	m.e.sweep()
	m.model.Sweep()
}

func (m *machine) restart(rt *rapid.T) {
	kill := rapid.Bool().Draw(rt, "kill")
	m.e.restart(kill)
	m.model = m.model.Restart(kill)
}

func (m *machine) snapshot(rt *rapid.T) {
	p := m.partition(rt)
	got, errGot := m.e.TakeSnapshots(m.ctx, store.SnapshotFilter{Topic: p.Topic, Partition: &p.Number})
	want, errWant := m.model.TakeSnapshots(m.ctx, store.SnapshotFilter{Topic: p.Topic, Partition: &p.Number})
	m.agree("snapshot", errGot, errWant)
	if len(got) != 1 || got[0].Offset != want[0].Offset || got[0].Producers != want[0].Producers {
		m.rt.Fatalf("snapshot: %+v, the model says %+v", got, want)
	}
}

// forgetSnapshot deletes a snapshot that both have.
func (m *machine) forgetSnapshot(rt *rapid.T) {
	p := m.partition(rt)
	all := m.snapshotsInBoth(p)
	if len(all) == 0 {
		rt.Skip("there is no snapshot")
	}
	offset := rapid.SampledFrom(all).Draw(rt, "offset")
	m.agree("delete snapshot", m.e.DeleteSnapshot(m.ctx, p, offset), m.model.DeleteSnapshot(m.ctx, p, offset))
}

func (m *machine) snapshotsInBoth(p store.Partition) []int64 {
	f := store.SnapshotFilter{Topic: p.Topic, Partition: &p.Number}
	got, errGot := m.e.Snapshots(m.ctx, f)
	want, errWant := m.model.Snapshots(m.ctx, f)
	m.agree("snapshots", errGot, errWant)
	if n := len(want); n > 0 && !slices.ContainsFunc(got, func(s store.Snapshot) bool { return s.Offset == want[n-1].Offset }) {
		m.rt.Fatalf("snapshots: %+v, without the newest of the model %+v", got, want[n-1])
	}
	var both []int64
	for _, s := range got {
		if slices.ContainsFunc(want, func(i store.Snapshot) bool { return i.Offset == s.Offset }) {
			both = append(both, s.Offset)
		}
	}
	return both
}

// invariants compares all that both show, after each step.
func (m *machine) invariants(*rapid.T) {
	for number := range 2 {
		p := store.Partition{Topic: m.topic, Number: number}
		m.equal("partition", m.showPartition(m.e, p), m.showPartition(m.model, p))
		for i := range machineProducers {
			got, errGot := m.e.PartitionProducer(m.ctx, p, m.pids[i])
			want, errWant := m.model.PartitionProducer(m.ctx, p, m.modelPIDs[i])
			if m.agree(fmt.Sprintf("state of producer %d", i), errGot, errWant) {
				m.equal(fmt.Sprintf("state of producer %d", i), m.showProducer(got), m.showProducer(want))
			}
		}
		for _, s := range m.snapshotsInBoth(p) {
			diff, err := m.e.VerifySnapshot(m.ctx, p, s)
			if err != nil || len(diff.Differences) > 0 {
				m.rt.Fatalf("snapshot at %d of partition %d: %v, %v", s, number, diff.Differences, err)
			}
			if diff, err := m.model.VerifySnapshot(m.ctx, p, s); err != nil || len(diff.Differences) > 0 {
				m.rt.Fatalf("the model's snapshot at %d of partition %d: %v, %v", s, number, diff.Differences, err)
			}
		}
	}
}

func (m *machine) showPartition(s store.Store, p store.Partition) string {
	i, err := s.Partition(m.ctx, p)
	if err != nil {
		m.rt.Fatalf("partition: %v", err)
	}
	traits := m.e.f.Traits
	var out strings.Builder
	fmt.Fprintf(&out, "%d: %d to %d, %d bytes, %d producers\n", p.Number, i.Earliest, i.HighWatermark, i.Bytes, i.Producers)
	for _, seg := range i.Segments {
		fmt.Fprintf(&out, "segment %d to %d, %d bytes in %d batches", seg.BaseOffset, seg.NextOffset, seg.Bytes, seg.Batches)
		if !traits.RealTime {
			fmt.Fprintf(&out, " since %d", seg.CreatedAt.UnixMilli())
		}
		out.WriteString("\n")
	}
	headers, err := s.Headers(m.ctx, p, i.Earliest, 1000)
	if err != nil {
		m.rt.Fatalf("headers: %v", err)
	}
	for _, h := range headers {
		fmt.Fprintf(&out, "batch %d to %d, %d bytes, crc %x", h.BaseOffset, h.LastOffset, h.Bytes, h.CRC)
		if h.Producer != nil {
			fmt.Fprintf(&out, ", sequence %d of epoch %d", h.Producer.BaseSeq, h.Producer.Epoch)
		}
		out.WriteString("\n")
	}
	if _, isModel := s.(*memory.Store); isModel {
		traits = Traits{}
	}
	values, err := readAll(m.ctx, s, p, i.Earliest, traits)
	if err != nil {
		m.rt.Fatalf("read: %v", err)
	}
	fmt.Fprintf(&out, "values %s\n", values)
	return out.String()
}

func (m *machine) showProducer(p store.ProducerState) string {
	c := p.Counters
	c.Held = 0
	out := fmt.Sprintf("%s, %+v", showState(&p.State, m.e.f.Traits), c)
	if !m.e.f.Traits.RealTime {
		out += fmt.Sprintf(", expires %d", p.ExpiresAt.UnixMilli())
	}
	return out
}

// showRefusal writes down what an error tells a client to act on.
func showRefusal(err error, traits Traits) string {
	e, ok := errors.AsType[*store.Error](err)
	if !ok {
		return ""
	}
	out := " " + string(e.Code)
	if s := e.Sequence; s != nil {
		out += showSequence(e.Code, s, traits)
	}
	return out + showBounds(e)
}

// showBounds writes down the end of the partition that the code is about.
func showBounds(e *store.Error) string {
	switch {
	case e.Bounds == nil:
		return ""
	case e.Code == store.CodeRecordsTrimmed:
		return fmt.Sprintf(" from %d", e.Bounds.Earliest)
	default:
		return fmt.Sprintf(" up to %d", e.Bounds.HighWatermark)
	}
}

// showSequence writes down those members that count for the code.
func showSequence(c store.Code, s *store.SequenceError, traits Traits) string {
	show := func(n *int64) string {
		if n == nil {
			return "none"
		}
		return strconv.FormatInt(*n, 10)
	}
	switch c { //nolint:exhaustive // the codes of the append rule
	case store.CodeOutOfOrderSequence:
		return fmt.Sprintf(" expected %d, received %d, last %s, epoch %s", s.ExpectedSeq, s.ReceivedSeq, show(s.LastSeq), show(s.CurrentEpoch))
	case store.CodeSequenceOverlap:
		return fmt.Sprintf(" expected %d, received %d", s.ExpectedSeq, s.ReceivedSeq)
	case store.CodeSequenceReused:
		return fmt.Sprintf(" original %d", s.OriginalOffset)
	case store.CodeProducerFenced:
		return " epoch " + show(s.CurrentEpoch)
	case store.CodeProducerExpired:
		out := fmt.Sprintf(" last %s of epoch %d", show(s.LastSeq), s.LastEpoch)
		if !traits.RealTime {
			out += fmt.Sprintf(" at %d", s.ExpiredAt.UnixMilli())
		}
		return out
	}
	return ""
}
