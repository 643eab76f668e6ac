package bolt

import (
	"context"
	"math"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// expiryDue reports whether a producer is due to expire.
func (p *partition) expiryDue(now int64) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pr := p.dedup.quietest
	return pr != nil && now >= expiresAt(&pr.state, p.topic.config())
}

// settle makes the expiry of producers that are due durable, so that what is shown
// next cannot be undone by a restart.
func (s *Store) settle(ctx context.Context, p *partition) error {
	if !p.expiryDue(s.clock.millis()) || s.failed() {
		return nil
	}
	err := s.control(ctx, func() error { return s.expireDue(p) })
	switch store.CodeOf(err) {
	case store.CodeStorageFull, store.CodeStorageFailed:
		return nil // reads go on: the producer is shown until its expiry can be written
	default:
		return err
	}
}

// settleAll is settle until nothing is due, with appends between the steps.
func (s *Store) settleAll(ctx context.Context, p *partition) error {
	for left := math.MaxInt; ; {
		if err := s.settle(ctx, p); err != nil {
			return err
		}
		p.mu.RLock()
		live := p.dedup.live
		p.mu.RUnlock()
		if !p.expiryDue(s.clock.millis()) || live >= left || p.dead.Load() {
			return nil
		}
		left = live
	}
}

// expireDue replaces the producers that are due by tombstones, on the committer. What
// one transaction does not hold is left for the next call.
func (s *Store) expireDue(p *partition) error {
	if p.dead.Load() {
		return nil
	}
	const most = 4096
	now, c := s.clock.millis(), p.topic.config()
	var due []stagedMark
	for pr := p.dedup.quietest; pr != nil && len(due) < most; pr = pr.newer {
		at, is := expiry(&pr.state, c, now)
		if !is {
			break
		}
		due = append(due, stagedMark{p: p, pr: pr, offset: p.next.Load(), number: p.marks + uint64(len(due)), mark: mark{pid: pr.id, at: at}})
	}
	return s.expire(p, due)
}

// expireAllDue is expireDue until nothing is left for another call.
func (s *Store) expireAllDue(p *partition) error {
	for !p.dead.Load() && p.expiryDue(s.clock.millis()) {
		if err := s.expireDue(p); err != nil {
			return err
		}
	}
	return nil
}

// expire writes marks and makes the tombstones visible.
func (s *Store) expire(p *partition, due []stagedMark) error {
	if len(due) == 0 {
		return nil
	}
	err := s.updateBeside(func(tx *bbolt.Tx) error { return putMarks(tx, &group{marks: due}) })
	if err != nil {
		return err
	}
	p.mu.Lock()
	for _, m := range due {
		tomb := m.pr.state.Expire(m.mark.at)
		p.dedup.publish(m.pr, &tomb)
		p.marks = m.number + 1
		p.lastAt = max(p.lastAt, m.mark.at)
	}
	p.mu.Unlock()
	s.stats.expirations.Add(int64(len(due)))
	s.boundProducers([]*partition{p})
	return nil
}

func (p *partition) producerState(pid int64, st *sequence.State, c store.Counters) store.ProducerState {
	return store.ProducerState{
		Partition: p.name, ID: pid, State: *st, ExpiresAt: millis(expiresAt(st, p.topic.config())), Counters: c,
	}
}

// lookup gives a producer's live state.
func (p *partition) lookup(pid int64) (store.ProducerState, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	pr := p.dedup.byID[pid]
	if pr == nil || !pr.state.Live() {
		return store.ProducerState{}, false
	}
	return p.producerState(pid, &pr.state, pr.counters.public()), true
}

// notInPartition is the answer to a look at a producer without live state.
func (p *partition) notInPartition(pid int64) error {
	p.mu.RLock()
	st := p.dedup.state(pid)
	p.mu.RUnlock()
	return store.NoState(p.name, pid, &st)
}

// PartitionProducers lists the live producers of a partition; see [store.Producers].
func (s *Store) PartitionProducers(ctx context.Context, p store.Partition, after int64, limit int) ([]store.ProducerState, error) {
	pt, err := s.inService(p)
	if err != nil {
		return nil, err
	}
	if err := s.settle(ctx, pt); err != nil {
		return nil, err
	}
	var out []store.ProducerState
	for _, pid := range pt.idsAfter(after, limit) {
		if st, ok := pt.lookup(pid); ok {
			out = append(out, st)
		}
	}
	return out, nil
}

// RecentProducers lists the producers of a partition by their newest batches; see
// [store.Producers].
func (s *Store) RecentProducers(ctx context.Context, p store.Partition, limit int) ([]store.ProducerState, error) {
	pt, err := s.inService(p)
	if err != nil {
		return nil, err
	}
	if err := s.settle(ctx, pt); err != nil {
		return nil, err
	}
	pt.mu.RLock()
	defer pt.mu.RUnlock()
	var out []store.ProducerState
	for pr := pt.dedup.latest; pr != nil && len(out) < limit; pr = pr.older {
		out = append(out, pt.producerState(pr.id, &pr.state, pr.counters.public()))
	}
	return out, nil
}

// PartitionProducer shows a producer in a partition; see [store.Producers].
func (s *Store) PartitionProducer(ctx context.Context, p store.Partition, pid int64) (store.ProducerState, error) {
	pt, err := s.inService(p)
	if err != nil {
		return store.ProducerState{}, err
	}
	if err := s.settle(ctx, pt); err != nil {
		return store.ProducerState{}, err
	}
	st, ok := pt.lookup(pid)
	if !ok {
		return store.ProducerState{}, pt.notInPartition(pid)
	}
	return st, nil
}

// ExpireProducer leaves a tombstone; see [store.Producers].
func (s *Store) ExpireProducer(ctx context.Context, p store.Partition, pid int64) error {
	pt, err := s.inService(p)
	if err != nil {
		return err
	}
	return s.control(ctx, func() error {
		if pt.dead.Load() {
			return unknownTopic(p.Topic)
		}
		pr := pt.dedup.byID[pid]
		now := s.clock.millis()
		if pr == nil || !pr.state.Live() {
			return pt.notInPartition(pid)
		}
		if _, due := expiry(&pr.state, pt.topic.config(), now); due {
			if err := s.expireDue(pt); err != nil {
				return err
			}
			return pt.notInPartition(pid)
		}
		return s.expire(pt, []stagedMark{{p: pt, pr: pr, offset: pt.next.Load(), number: pt.marks, mark: mark{pid: pid, at: now}}})
	})
}

// Producer shows a producer in every partition; see [store.Producers].
func (s *Store) Producer(ctx context.Context, pid int64) ([]store.ProducerState, error) {
	if err := s.pids.issued(pid); err != nil {
		return nil, err
	}
	var out []store.ProducerState
	parts, err := s.pick(store.SnapshotFilter{})
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if err := s.settle(ctx, p); err != nil {
			return nil, err
		}
		if st, ok := p.lookup(pid); ok {
			out = append(out, st)
		}
	}
	return out, nil
}
