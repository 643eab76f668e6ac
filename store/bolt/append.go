package bolt

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

// request is an append that waits for the committer.
type request struct {
	p          *partition
	batch      batch.Batch
	idempotent bool
	producer   store.ProducerSeq
	attempt    sequence.Attempt
	noHold     bool
	// taken is set by whoever gets to the request first: the committer that stages it
	// or the caller that gives it up while it is held.
	taken  atomic.Bool
	heldAt time.Time
	failed error // the roll that had to come first did not succeed
	done   chan result
}

type result struct {
	ack store.Ack
	err error
}

func (r *request) answer(ack store.Ack, err error) { r.done <- result{ack, err} }

// Append stores a batch; see [store.Engine].
func (s *Store) Append(ctx context.Context, a store.Append) (store.Ack, error) {
	p, err := s.inService(a.Partition)
	if err != nil {
		return store.Ack{}, err
	}
	if err := s.admit(p, &a); err != nil {
		return store.Ack{}, err
	}
	r := &request{p: p, batch: a.Batch, noHold: a.NoHold, done: make(chan result, 1)}
	if a.Producer != nil {
		r.idempotent, r.producer, r.attempt = true, *a.Producer, a.Attempt()
	}
	if err := s.enqueue(r); err != nil {
		return store.Ack{}, err
	}
	select {
	case res := <-r.done:
		return res.ack, res.err
	case <-ctx.Done():
		if r.taken.CompareAndSwap(false, true) {
			select {
			case s.cancelled <- r: // so that a held batch is let go of at once
			default:
			}
		}
		return store.Ack{}, ctx.Err()
	}
}

// admit checks what can be judged without knowing what other appends do.
func (s *Store) admit(p *partition, a *store.Append) error {
	c := p.topic.config()
	if a.Producer == nil && c.RequireIdempotence {
		return store.Errorf(store.CodeIdempotenceRequired, "topic %q takes only appends with pid, epoch and baseSeq", p.name.Topic)
	}
	if err := store.CheckSize(*c, &a.Batch); err != nil {
		return err
	}
	if a.Producer != nil {
		if err := store.CheckProducer(a.Producer, a.Batch.Count); err != nil {
			return err
		}
		if err := s.pids.admit(a.Producer.ID, a.Principal); err != nil {
			return err
		}
	}
	// That no writes are taken any more is no reason yet: a duplicate is answered even
	// then, for its sender must learn that the batch is stored.
	return nil
}

// enqueue hands a request to the committer, or refuses it when too much waits already.
func (s *Store) enqueue(r *request) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return errDraining()
	}
	n := int64(len(r.batch.Bytes))
	if s.queued.Add(n) > s.opts.QueueBytes {
		s.queued.Add(-n)
		return overloaded()
	}
	select {
	case s.appends <- r:
		return nil
	default:
		s.queued.Add(-n)
		return overloaded()
	}
}

func overloaded() error {
	return store.Errorf(store.CodeOverloaded, "too many appends are waiting to be written")
}
