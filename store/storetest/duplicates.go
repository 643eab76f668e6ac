package storetest

import (
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

func testDuplicates(t *testing.T, f Factory) {
	e := newEnv(t, f)
	for name, run := range map[string]func(*env, store.Partition, int64){
		"answer":       duplicateAnswer,
		"window":       duplicateWindow,
		"forgotten":    duplicateForgotten,
		"after-trim":   duplicateAfterTrim,
		"after-bump":   duplicateAfterBump,
		"same-payload": duplicatePayload,
	} {
		t.Run(name, func(t *testing.T) {
			e.t = t
			run(e, e.topic(), e.pid())
		})
	}
}

// duplicateAnswer: it is that of the first time, whatever came since.
func duplicateAnswer(e *env, p store.Partition, pid int64) {
	first := e.stored(seq(p, pid, 0, 0, 3), 0)
	e.clock.Add(time.Minute)
	second := e.stored(seq(p, pid, 0, 3, 1), 3)
	e.clock.Add(time.Minute)
	e.unchanged(p, pid, func() {
		for range 3 {
			again := e.duplicate(seq(p, pid, 0, 0, 3), 0)
			if !sameTime(again.AppendedAt, first.AppendedAt) {
				e.t.Errorf("the duplicate was appended at %v, the first at %v", again.AppendedAt, first.AppendedAt)
			}
		}
		if again := e.duplicate(seq(p, pid, 0, 3, 1), 3); !sameTime(again.AppendedAt, second.AppendedAt) {
			e.t.Errorf("the duplicate was appended at %v, the first at %v", again.AppendedAt, second.AppendedAt)
		}
	})
	e.holds(p, 0, "0.0-0", "0.0-1", "0.0-2", "0.3-0")
}

// duplicateWindow: five batches are remembered, counted per producer, whatever their size.
func duplicateWindow(e *env, p store.Partition, pid int64) {
	sizes := []int{1, 100, 1, 7, 2}
	base := int64(0)
	var sent []store.Append
	for _, n := range sizes {
		a := seq(p, pid, 0, base, n)
		e.stored(a, base)
		sent = append(sent, a)
		base += int64(n)
	}
	other := e.pid()
	for i := range int64(2 * sequence.Window) { // another producer's batches push nothing out
		e.stored(seq(p, other, 0, i, 1), base+i)
	}
	for _, a := range sent {
		e.duplicate(a, a.Producer.BaseSeq)
	}
	if s := e.state(p, pid).State; len(s.Recent()) != sequence.Window || s.FirstSeq() != 0 {
		e.t.Errorf("state %+v", s)
	}
	e.stored(seq(p, pid, 0, base, 1), base+2*sequence.Window)
	if s := e.state(p, pid).State; len(s.Recent()) != sequence.Window || s.FirstSeq() != 1 {
		e.t.Errorf("state %+v", s)
	}
	e.forgotten(sent[0])
	e.duplicate(sent[1], 1)
}

// duplicateForgotten: what begins below the window and ends below the next sequence
// was stored, whatever its payload and however it is cut (D2).
func duplicateForgotten(e *env, p store.Partition, pid int64) {
	for i := range int64(8) {
		e.stored(seq(p, pid, 0, 2*i, 2), 2*i)
	}
	e.unchanged(p, pid, func() {
		for _, r := range [][2]int64{{0, 2}, {0, 1}, {1, 1}, {3, 3}, {5, 1}, {0, 6}, {4, 4}, {0, 16}} {
			e.forgotten(seq(p, pid, 0, r[0], int(r[1])))
		}
		e.forgotten(seqOf(p, pid, 0, 0, Batch("other", 2)))
		e.overlap(seq(p, pid, 0, 4, 13), 16)
		e.overlap(seq(p, pid, 0, 6, 1), 16)
		e.duplicate(seq(p, pid, 0, 6, 2), 6)
	})
	e.bounds(p, 0, 16)
}

// duplicateAfterTrim: producer state outlives the records (D5).
func duplicateAfterTrim(e *env, p store.Partition, pid int64) {
	first := e.stored(seq(p, pid, 0, 0, 3), 0)
	e.stored(seq(p, pid, 0, 3, 2), 3)
	e.trim(p, 5, 5)
	if again := e.duplicate(seq(p, pid, 0, 0, 3), 0); !sameTime(again.AppendedAt, first.AppendedAt) {
		e.t.Errorf("the duplicate was appended at %v, the first at %v", again.AppendedAt, first.AppendedAt)
	}
	e.duplicate(seq(p, pid, 0, 3, 2), 3)
	e.reused(seqOf(p, pid, 0, 3, Batch("other", 2)), 3)
	e.bounds(p, 5, 5)
	e.stored(seq(p, pid, 0, 5, 1), 5)
}

// duplicateAfterBump: a new epoch begins with an empty window.
func duplicateAfterBump(e *env, p store.Partition, pid int64) {
	for i := range int64(7) {
		e.stored(seq(p, pid, 0, i, 1), i)
	}
	e.stored(seq(p, pid, 1, 0, 1), 7)
	e.fenced(seq(p, pid, 0, 6, 1), 1)
	e.fenced(seq(p, pid, 0, 0, 1), 1)
	e.duplicate(seq(p, pid, 1, 0, 1), 7)
	e.out(seq(p, pid, 1, 6, 1), 1, new(int64(0)), new(int64(1)))
	for i := range int64(5) {
		e.stored(seq(p, pid, 1, 1+i, 1), 8+i)
	}
	e.forgotten(seq(p, pid, 1, 0, 1))
}

// duplicatePayload: keys, values, headers and given timestamps make the payload; the
// form that carried them does not.
func duplicatePayload(e *env, p store.Partition, pid int64) {
	full := batch.Record{
		Key: []byte("k"), KeyForm: batch.FormText, Value: []byte("1"), ValueForm: batch.FormText,
		Headers: []batch.Header{{Name: "h", Value: "v"}}, Timestamp: 1_700_000_000_000,
	}
	e.stored(seqOf(p, pid, 0, 0, Records(full)), 0)
	for name, change := range map[string]func(r *batch.Record){
		"key":              func(r *batch.Record) { r.Key = []byte("l") },
		"no key":           func(r *batch.Record) { r.Key = nil },
		"value":            func(r *batch.Record) { r.Value = []byte("2") },
		"tombstone":        func(r *batch.Record) { r.Value = nil },
		"header name":      func(r *batch.Record) { r.Headers = []batch.Header{{Name: "i", Value: "v"}} },
		"header value":     func(r *batch.Record) { r.Headers = []batch.Header{{Name: "h", Value: "w"}} },
		"headers":          func(r *batch.Record) { r.Headers = nil },
		"timestamp":        func(r *batch.Record) { r.Timestamp++ },
		"no timestamp":     func(r *batch.Record) { r.Timestamp = batch.NoTimestamp },
		"one more of them": func(r *batch.Record) { r.Headers = append(r.Headers, batch.Header{Name: "h", Value: "v"}) },
	} {
		other := full
		change(&other)
		ack, err := e.Append(e.ctx, seqOf(p, pid, 0, 0, Records(other)))
		if store.CodeOf(err) != store.CodeSequenceReused {
			e.t.Errorf("other %s: %+v, %v; want %s", name, ack, err, store.CodeSequenceReused)
		}
	}
	otherForm := full
	otherForm.ValueForm, otherForm.KeyForm = batch.FormJSON, batch.FormBytes
	e.duplicate(seqOf(p, pid, 0, 0, Records(otherForm)), 0)
	e.duplicate(seqOf(p, pid, 0, 0, Records(full)), 0)
}
