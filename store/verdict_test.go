package store_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

// arrival is when the batches of the tests arrived.
var arrival = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// attempt is of epoch 3; payloads are told apart by one byte.
func attempt(base int64, count int32, payload byte) sequence.Attempt {
	return sequence.Attempt{Epoch: 3, BaseSeq: base, Count: count, Digest: sequence.Digest{payload}}
}

// seven batches of two records each, with offsets 100, 110, …
func seven() sequence.State {
	var s sequence.State
	for i := range int64(7) {
		s = s.Apply(attempt(2*i, 2, 1), 100+10*i, arrival.UnixMilli()+i)
	}
	return s
}

func TestAttempt(t *testing.T) {
	a := store.Append{
		Producer: &store.ProducerSeq{ID: 1, Epoch: 3, BaseSeq: 10},
		Batch:    batch.Batch{Count: 2, Digest: sequence.Digest{1}},
	}
	if got := a.Attempt(); got != attempt(10, 2, 1) {
		t.Errorf("%+v", got)
	}
}

func TestDuplicateAck(t *testing.T) {
	s := seven()
	for name, c := range map[string]struct {
		attempt sequence.Attempt
		want    store.Ack
	}{
		"remembered": {attempt(4, 2, 1), store.Ack{
			BaseOffset: 120, LastOffset: 121, NextSeq: 6, AppendedAt: arrival.Add(2 * time.Millisecond), Duplicate: true,
		}},
		"forgotten":                   {attempt(0, 2, 1), store.Ack{BaseOffset: -1, LastOffset: -1, NextSeq: 2, Duplicate: true}},
		"forgotten, no batch's range": {attempt(1, 4, 1), store.Ack{BaseOffset: -1, LastOffset: -1, NextSeq: 5, Duplicate: true}},
	} {
		got := store.DuplicateAck(sequence.Check(&s, c.attempt), c.attempt)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
		if got.AppendedAt.Location() != time.UTC {
			t.Errorf("%s: the time is not in UTC", name)
		}
	}
}

func TestRefusal(t *testing.T) {
	live, nothing := seven(), sequence.State{}
	tomb := live.Expire(arrival.UnixMilli())
	last, epoch := int64(13), int64(3)
	old, young := attempt(14, 1, 1), attempt(14, 1, 1)
	old.Epoch, young.Epoch = 2, 4
	for name, c := range map[string]struct {
		state   sequence.State
		attempt sequence.Attempt
		code    store.Code
		says    []string
		want    store.SequenceError
	}{
		"reused": {
			live, attempt(4, 2, 9), store.CodeSequenceReused,
			[]string{"sequences 4 to 5 ", "offset 120 "},
			store.SequenceError{ReceivedSeq: 4, LastSeq: &last, CurrentEpoch: &epoch, OriginalOffset: 120},
		},
		"overlap": {
			live, attempt(13, 2, 1), store.CodeSequenceOverlap,
			[]string{"sequences 13 to 14 ", " is 14"},
			store.SequenceError{ExpectedSeq: 14, ReceivedSeq: 13, LastSeq: &last, CurrentEpoch: &epoch},
		},
		"gap": {
			live, attempt(20, 2, 1), store.CodeOutOfOrderSequence,
			[]string{"sequence 20 ", " 6 ahead ", "expected 14;"},
			store.SequenceError{ExpectedSeq: 14, ReceivedSeq: 20, LastSeq: &last, CurrentEpoch: &epoch},
		},
		"gap of an unknown producer": {
			nothing, attempt(20, 2, 1), store.CodeOutOfOrderSequence,
			[]string{" 20 ahead ", "expected 0;"},
			store.SequenceError{ExpectedSeq: 0, ReceivedSeq: 20},
		},
		"higher epoch that goes on": {
			live, young, store.CodeOutOfOrderSequence,
			[]string{"epoch 4 is new", "sequence 0, not 14"},
			store.SequenceError{ExpectedSeq: 0, ReceivedSeq: 14, LastSeq: &last, CurrentEpoch: &epoch},
		},
		"higher epoch that goes on after expiry": {
			tomb, young, store.CodeOutOfOrderSequence,
			[]string{"epoch 4 is new", "sequence 0, not 14"},
			store.SequenceError{ExpectedSeq: 0, ReceivedSeq: 14, LastSeq: &last, CurrentEpoch: &epoch},
		},
		"fenced": {
			live, old, store.CodeProducerFenced,
			[]string{"epoch 2 ", "epoch 3"},
			store.SequenceError{ReceivedSeq: 14, LastSeq: &last, CurrentEpoch: &epoch},
		},
		"expired": {
			tomb, attempt(14, 1, 1), store.CodeProducerExpired,
			[]string{"sequence 13 ", "epoch 3;"},
			store.SequenceError{ReceivedSeq: 14, LastSeq: &last, CurrentEpoch: &epoch, LastEpoch: 3, ExpiredAt: arrival},
		},
	} {
		v := sequence.Check(&c.state, c.attempt)
		e := store.Refusal(&c.state, v, c.attempt)
		if e.Code != c.code || e.Err != nil {
			t.Errorf("%s: %s (%v), want %s", name, e.Code, e.Err, c.code)
		}
		if d := cmp.Diff(&c.want, e.Sequence); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
		for _, s := range c.says {
			if !strings.Contains(e.Detail, s) {
				t.Errorf("%s: %q does not say %q", name, e.Detail, s)
			}
		}
	}
}

// An answer must not hold on to a state that goes on.
func TestRefusalCopiesState(t *testing.T) {
	s := seven()
	a := attempt(20, 2, 1)
	e := store.Refusal(&s, sequence.Check(&s, a), a)
	s = s.Apply(attempt(14, 6, 1), 200, 0)
	if *e.Sequence.LastSeq != 13 {
		t.Errorf("last sequence %d, want 13", *e.Sequence.LastSeq)
	}
}

// Each verdict is either an ack or has a refusal of its own.
func TestEveryVerdictHasItsAnswer(t *testing.T) {
	var s sequence.State
	codes := map[store.Code]sequence.Kind{}
	for k := sequence.Append; k <= sequence.Expired; k++ {
		e := store.Refusal(&s, sequence.Verdict{Kind: k}, attempt(0, 1, 1))
		switch k {
		case sequence.Append, sequence.Duplicate, sequence.Forgotten:
			if e.Code != store.CodeInternal || e.Err == nil || !strings.Contains(e.Err.Error(), k.String()) || e.Detail != "" {
				t.Errorf("%v is refused: %v", k, e)
			}
		default:
			if other, ok := codes[e.Code]; ok || e.Code == store.CodeInternal || e.Detail == "" {
				t.Errorf("%v: %s, the code of %v; detail %q", k, e.Code, other, e.Detail)
			}
			codes[e.Code] = k
		}
	}
}

// A counter that Add forgets is lost when a producer's partitions are summed up.
func TestCountersAdd(t *testing.T) {
	var a, b store.Counters
	va, vb := reflect.ValueOf(&a).Elem(), reflect.ValueOf(&b).Elem()
	for i := range va.NumField() {
		va.Field(i).SetInt(int64(i + 1))
		vb.Field(i).SetInt(int64(100 * (i + 1)))
	}
	sum := reflect.ValueOf(a.Add(b))
	for i := range sum.NumField() {
		if got, want := sum.Field(i).Int(), int64(101*(i+1)); got != want {
			t.Errorf("%s = %d, want %d", sum.Type().Field(i).Name, got, want)
		}
	}
}

func TestHeaderCount(t *testing.T) {
	if n := (store.BatchHeader{BaseOffset: 7, LastOffset: 7}).Count(); n != 1 {
		t.Errorf("%d, want 1", n)
	}
	if n := (store.BatchHeader{BaseOffset: 7, LastOffset: 9}).Count(); n != 3 {
		t.Errorf("%d, want 3", n)
	}
}
