package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
)

func testReads(t *testing.T, f Factory) {
	t.Run("empty", func(t *testing.T) { readEmpty(newEnv(t, f)) })
	t.Run("from-anywhere", func(t *testing.T) { readAnywhere(newEnv(t, f)) })
	t.Run("bounds", func(t *testing.T) { readBounds(newEnv(t, f)) })
	t.Run("limits", func(t *testing.T) { readLimits(newEnv(t, f)) })
	t.Run("owned", func(t *testing.T) { readOwned(newEnv(t, f)) })
}

func readEmpty(e *env) {
	p := e.topic()
	values, r := e.read(store.Read{Partition: p, MaxRecords: 10, MaxBytes: 1000})
	if len(values) != 0 || r.Earliest != 0 || r.HighWatermark != 0 {
		e.t.Errorf("read %+v", r)
	}
}

// sizes stores batches of 1, 3, 1, 5 and 2 records and gives all values.
func (e *env) sizes(p store.Partition) []string {
	e.t.Helper()
	pid := e.pid()
	var values []string
	next := int64(0)
	for _, n := range []int{1, 3, 1, 5, 2} {
		e.stored(seq(p, pid, 0, next, n), next)
		for i := range n {
			values = append(values, fmt.Sprintf("0.%d-%d", next, i))
		}
		next += int64(n)
	}
	return values
}

func readAnywhere(e *env) {
	p := e.topic()
	values := e.sizes(p)
	id := e.bounds(p, 0, 12).TopicID
	for offset := range int64(13) {
		e.holds(p, offset, values[offset:]...)
		got, r := e.read(store.Read{Partition: p, Offset: offset, MaxRecords: 100, MaxBytes: 1 << 20})
		if !slices.Equal(got, values[offset:]) || r.Earliest != 0 || r.HighWatermark != 12 || r.TopicID != id {
			e.t.Errorf("from %d: %v, %+v", offset, got, r)
		}
	}
}

func readBounds(e *env) {
	p := e.topic()
	values := e.sizes(p)
	expect := func(offset int64, code store.Code, earliest int64) {
		e.t.Helper()
		_, err := e.Read(e.ctx, store.Read{Partition: p, Offset: offset, MaxRecords: 1, MaxBytes: 1})
		se := e.coded(fmt.Sprintf("read from %d", offset), err, code)
		want := " up to 12"
		if code == store.CodeRecordsTrimmed {
			want = fmt.Sprintf(" from %d", earliest)
		}
		if got := showBounds(&se); got != want {
			e.t.Errorf("read from %d: bounds%s, want%s", offset, got, want)
		}
	}
	expect(13, store.CodeOffsetOutOfRange, 0)
	expect(1<<40, store.CodeOffsetOutOfRange, 0)
	e.trim(p, 6, 6) // in the middle of a batch
	expect(5, store.CodeRecordsTrimmed, 6)
	expect(0, store.CodeRecordsTrimmed, 6)
	expect(13, store.CodeOffsetOutOfRange, 6)
	e.holds(p, 6, values[6:]...)
	e.holds(p, 12)
	e.trim(p, 12, 12)
	expect(11, store.CodeRecordsTrimmed, 12)
	e.holds(p, 12)
}

// readLimits: the bounds of a read are kept to the batch, and one batch always comes.
func readLimits(e *env) {
	p := e.topic()
	all := e.sizes(p)
	for offset := range int64(12) {
		previous := 0
		for n := 1; n <= 13; n++ {
			values, r := e.read(store.Read{Partition: p, Offset: offset, MaxRecords: n, MaxBytes: 1 << 20})
			if len(values) < min(n, 12-int(offset)) || !slices.Equal(values, all[offset:int(offset)+len(values)]) {
				e.t.Fatalf("%d from %d: %v", n, offset, values)
			}
			if last := r.Batches[len(r.Batches)-1]; len(values)-int(last.Count()) >= n {
				e.t.Errorf("%d from %d: one batch more than needed: %v", n, offset, values)
			}
			if len(values) < previous {
				e.t.Errorf("%d from %d: fewer than for %d", n, offset, n-1)
			}
			previous = len(values)
		}
		values, r := e.read(store.Read{Partition: p, Offset: offset, MaxRecords: 100, MaxBytes: 1})
		if len(r.Batches) != 1 || len(values) == 0 {
			e.t.Errorf("one byte from %d: %d batches, %v", offset, len(r.Batches), values)
		}
	}
}

// readOwned: what was appended and what was read belong to the caller.
func readOwned(e *env) {
	p := e.topic()
	a := plain(p, "first")
	e.stored(a, 0)
	clear(a.Batch.Bytes)
	_, r := e.read(store.Read{Partition: p, MaxRecords: 1, MaxBytes: 100})
	clear(r.Batches[0].Bytes)
	e.holds(p, 0, "first")
}

func testWait(t *testing.T, f Factory) {
	t.Run("above", func(t *testing.T) {
		e := newEnv(t, f)
		p := e.topic()
		e.stored(plain(p, "a", "b"), 0)
		for offset := range int64(2) {
			if err := e.Wait(e.ctx, p, offset); err != nil {
				e.t.Errorf("wait at %d: %v", offset, err)
			}
		}
	})
	t.Run("append", func(t *testing.T) { waitAppend(newEnv(t, f)) })
	t.Run("context", func(t *testing.T) { waitContext(newEnv(t, f)) })
	t.Run("delete", func(t *testing.T) {
		e := newEnv(t, f)
		p := e.topic()
		e.stored(plain(p, "a"), 0)
		err := e.ends(p, 1, func() {
			if err := e.DeleteTopic(e.ctx, p.Topic); err != nil {
				e.t.Error(err)
			}
		})
		e.coded("wait", err, store.CodeUnknownTopic)
	})
	t.Run("close", func(t *testing.T) {
		if f.Traits.NoClose {
			t.Skip("the engine cannot be closed")
		}
		e := newEnv(t, f)
		p := e.topic()
		err := e.ends(p, 0, func() {
			if err := e.Close(); err != nil {
				e.t.Error(err)
			}
		})
		e.coded("wait", err, store.CodeDraining)
	})
}

// ends waits at an offset, does something when the wait has begun, and gives its outcome.
func (e *env) ends(p store.Partition, offset int64, do func()) error {
	e.t.Helper()
	done := make(chan error, 1)
	go func() { done <- e.Wait(e.ctx, p, offset) }()
	select {
	case err := <-done:
		e.t.Fatalf("the wait ended at once: %v", err)
	case <-time.After(20 * time.Millisecond): // nothing tells that a wait has begun
	}
	do()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		e.t.Fatal("the wait does not end")
		return nil
	}
}

func waitAppend(e *env) {
	p, other := e.topic(), e.topic()
	e.stored(plain(p, "a"), 0)
	err := e.ends(p, 1, func() {
		e.stored(plain(other, "x"), 0)
		e.stored(plain(p, "b"), 1)
	})
	if err != nil {
		e.t.Errorf("wait: %v", err)
	}
	e.holds(p, 0, "a", "b")
}

func waitContext(e *env) {
	p := e.topic()
	ctx, cancel := context.WithCancel(e.ctx)
	outer := e.ctx
	e.ctx = ctx
	err := e.ends(p, 0, cancel)
	e.ctx = outer
	if !errors.Is(err, context.Canceled) {
		e.t.Errorf("wait: %v, want %v", err, context.Canceled)
	}
	e.stored(plain(p, "a"), 0)
}
