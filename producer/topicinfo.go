package producer

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/oncelog/oncelog/openapi"
)

// topicInfo is what a producer knows of a topic, and where its records without a key
// go for the moment.
type topicInfo struct {
	known chan struct{} // closed when the first lookup is over

	mu         sync.Mutex
	err        *Error // of the first lookup
	partitions int
	asked      time.Time
	asking     bool

	sticky      int // −1: to be picked
	stickyBytes int
}

// topic gives the topic's description, waiting for it the first time.
func (p *Producer) topic(ctx context.Context, name string) (*topicInfo, *Error) {
	p.mu.Lock()
	t := p.topics[name]
	if t == nil {
		if p.ctx.Err() != nil {
			p.mu.Unlock()
			return nil, p.ending()
		}
		t = &topicInfo{known: make(chan struct{}), sticky: -1, asking: true}
		p.topics[name] = t
		p.running.Go(func() { p.lookUp(name, t) })
	}
	p.mu.Unlock()
	if err := t.await(ctx, p.cfg.maxBlock); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil && p.ctx.Err() != nil:
		return nil, p.ending()
	case t.err != nil:
		return nil, t.err
	}
	if !t.asking && time.Since(t.asked) >= p.cfg.metadataAge {
		t.asking = p.start(func() { p.refresh(name, t) })
	}
	return t, nil
}

// await waits until the first lookup is over. Nearly always it is, and then a timeout
// would be all that the call costs.
func (t *topicInfo) await(ctx context.Context, most time.Duration) *Error {
	select {
	case <-t.known:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeoutCause(ctx, most, CodeBlocked)
	defer cancel()
	select {
	case <-t.known:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		return blocked(ctx, "the topic's description has not come", t.err)
	}
}

// lookUp asks for a topic until there is a definite answer. A definite refusal is
// forgotten at once: the topic may be created.
func (p *Producer) lookUp(name string, t *topicInfo) {
	defer close(t.known)
	for failures := 0; ; failures++ {
		d, e := p.describe(name)
		t.mu.Lock()
		t.asked, t.asking, t.partitions, t.err = time.Now(), false, d.Partitions, e
		t.mu.Unlock()
		if e == nil {
			return
		}
		if p.ctx.Err() == nil && e.Retryable && sleep(p.ctx, p.cfg.backoff.delay(failures, e.RetryAfter)) {
			continue
		}
		p.mu.Lock()
		delete(p.topics, name)
		p.mu.Unlock()
		return
	}
}

// refresh asks again. What is known serves meanwhile, for partitions only grow.
func (p *Producer) refresh(name string, t *topicInfo) {
	d, e := p.describe(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked, t.asking = time.Now(), false
	if e == nil {
		t.partitions = d.Partitions
		return
	}
	p.log.Warn("a topic's description could not be refreshed", slog.String("topic", name), slog.Any("error", e))
}

func (p *Producer) describe(name string) (openapi.Topic, *Error) {
	d, err := p.client.Topic(p.ctx, name)
	if err == nil && d.Partitions < 1 {
		err = &Error{
			Code: CodeForeignAnswer, Retryable: true, Outcome: openapi.NotApplied,
			Detail: "the description of a topic without partitions",
		}
	}
	return d, asError(err)
}

// pick gives the partition for a record that holds n bytes and names none.
func (t *topicInfo) pick(r *Record, n int, f func(Record, int) int, batchBytes int) (int, *Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := -1
	switch {
	case f != nil:
		at = f(*r, t.partitions)
	case r.Key != nil:
		at = KeyPartition(r.Key, t.partitions)
	}
	if at >= t.partitions {
		return 0, invalid("the partitioner picked partition %d of %d", at, t.partitions)
	}
	if at >= 0 {
		return at, nil
	}
	// Records without a key stay together for a batch's worth of bytes, which makes
	// fuller batches than dealing them round, and still spreads them evenly (KIP-794).
	if t.sticky < 0 || t.stickyBytes >= batchBytes {
		t.sticky, t.stickyBytes = rand.IntN(t.partitions), 0
	}
	t.stickyBytes += n
	return t.sticky, nil
}

// blocked is the error of a Send that has waited in vain, last being what the wait was
// about.
func blocked(ctx context.Context, why string, last *Error) *Error {
	e := invalid("%s", why)
	e.Code, e.Retryable = CodeBlocked, true
	if last != nil {
		e.Err = last
	}
	if cause := context.Cause(ctx); !errors.Is(cause, CodeBlocked) {
		e.Code, e.Err = CodeCanceled, cause
	}
	return e
}
