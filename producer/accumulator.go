package producer

import (
	"sync"
	"time"

	"github.com/oncelog/oncelog/store/batch"
)

// accumulator gathers the records of one partition into batches, in the order of the
// sends. Its batches have no sequences yet.
type accumulator struct {
	topic     string
	partition int
	linger    time.Duration
	full      int // bytes at which a batch is full

	mu      sync.Mutex
	open    *outBatch   // the one that records are added to, nil when there is none
	sealed  []*outBatch // that get no more records, oldest first
	limit   int         // payload bytes that the topic takes, as far as it is known
	spare   *batch.Builder
	stopped *Error // set: nothing is taken any more
	// pending are the deliveries without an outcome, for Flush.
	pending map[*delivery]struct{}
}

// add appends a record that holds n bytes of the buffer. It reports whether the
// partition's worker has to look.
func (a *accumulator) add(r *batch.Record, n int, call func(Ack, error)) (f Future, wake bool, err *Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped != nil {
		return Future{}, false, a.stopped
	}
	payload := r.PayloadBytes()
	if b := a.open; b != nil && (b.builder.EncodedLen()+n > a.full || b.payload+payload > a.limit || b.count == maxBatchCount) {
		a.seal()
		wake = true
	}
	if a.open == nil {
		a.begin()
		wake = true
	}
	b := a.open
	b.builder.Add(r)
	if call != nil && b.calls == nil {
		b.calls = make([]func(Ack, error), b.count, max(b.count+1, 16))
	}
	if b.calls != nil {
		b.calls = append(b.calls, call)
	}
	f = Future{d: b.delivery, index: b.count}
	b.count++
	b.payload += payload
	b.held += n
	if b.builder.EncodedLen() >= a.full {
		a.seal()
		wake = true
	}
	return f, wake, nil
}

func (a *accumulator) begin() {
	builder := a.spare
	a.spare = nil
	if builder == nil {
		builder = new(batch.Builder)
	}
	d := &delivery{done: make(chan struct{}), topic: a.topic, partition: a.partition, baseOffset: -1}
	a.open = &outBatch{delivery: d, builder: builder, created: time.Now()}
	a.pending[d] = struct{}{}
}

func (a *accumulator) seal() {
	if a.open != nil {
		a.sealed = append(a.sealed, a.open)
		a.open = nil
	}
}

// take removes the oldest batch that is ready to be sent, nil when there is none.
func (a *accumulator) take(now time.Time) *outBatch {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sealed) == 0 && a.open != nil && !now.Before(a.open.created.Add(a.linger)) {
		a.seal()
	}
	return a.pop()
}

func (a *accumulator) pop() *outBatch {
	if len(a.sealed) == 0 {
		return nil
	}
	b := a.sealed[0]
	a.sealed[0] = nil
	a.sealed = a.sealed[1:]
	return b
}

// lapsed removes the batches that were begun before the given time, oldest first.
func (a *accumulator) lapsed(before time.Time) []*outBatch {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open != nil && !a.open.created.After(before) {
		a.seal()
	}
	var out []*outBatch
	for len(a.sealed) > 0 && !a.sealed[0].created.After(before) {
		out = append(out, a.pop())
	}
	return out
}

// oldest gives when the oldest batch was begun, and when there will be one ready to
// be sent; zero times when there is none.
func (a *accumulator) oldest() (begun, ready time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case len(a.sealed) > 0:
		return a.sealed[0].created, a.sealed[0].created
	case a.open != nil:
		return a.open.created, a.open.created.Add(a.linger)
	}
	return time.Time{}, time.Time{}
}

// flush makes everything ready and lists what has no outcome yet.
func (a *accumulator) flush() []*delivery {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seal()
	out := make([]*delivery, 0, len(a.pending))
	for d := range a.pending {
		out = append(out, d)
	}
	return out
}

// stop refuses records from now on.
func (a *accumulator) stop(err *Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped == nil {
		a.stopped = err
	}
}

// drain removes everything that has not been sent.
func (a *accumulator) drain() []*outBatch {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seal()
	out := a.sealed
	a.sealed = nil
	return out
}

// decided forgets a delivery that has its outcome, in favour of its parts if it was
// split.
func (a *accumulator) decided(d *delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pending, d)
	for _, p := range d.parts {
		a.pending[p.d] = struct{}{}
	}
}

// learn keeps later batches below what the topic has said it takes.
func (a *accumulator) learn(limit int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = min(a.limit, limit)
}

// reuse keeps a builder for the next batch. Its memory is not part of any batch that
// is being sent: building copies.
func (a *accumulator) reuse(b *batch.Builder) {
	b.Reset()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spare = b
}
