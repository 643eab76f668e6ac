package bolt

import (
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// judge decides what becomes of a request: it is staged, held or answered.
func (s *Store) judge(g *group, r *request) {
	p := r.p
	if p.dead.Load() {
		r.taken.Store(true)
		r.answer(store.Ack{}, unknownTopic(p.name.Topic))
		return
	}
	if !r.idempotent {
		if !s.full(r) {
			s.stageInOrder(g, r, nil)
		}
		return
	}
	state, staged := g.lookup(p, r.producer.ID)
	failed := s.failed()
	if at, due := expiry(state, p.topic.config(), g.now); due && !failed {
		state = s.stageExpiry(g, p, r.producer.ID, state, at)
		staged = true
	}
	v := sequence.Check(state, r.attempt)
	if failed && v.Kind != sequence.Duplicate && v.Kind != sequence.Forgotten {
		s.full(r) // what is missing in front of it may be what could not be written
		return
	}
	switch v.Kind {
	case sequence.Append:
		if !s.full(r) {
			s.stageInOrder(g, r, state)
		}
	case sequence.Duplicate, sequence.Forgotten:
		s.count(p, r, v, false)
		s.reply(g, r, staged, store.DuplicateAck(v, r.attempt), nil)
	case sequence.OutOfOrder:
		if s.park(r, state, v) {
			return
		}
		s.refuse(g, r, state, v, staged)
	default:
		s.refuse(g, r, state, v, staged)
	}
}

// full refuses a batch that would have to be written when there is no space, or nothing
// is written any more. It comes after the rule: a duplicate is answered even then, for its
// sender must learn that the batch is stored.
func (s *Store) full(r *request) bool {
	err := s.writable()
	if err == nil {
		return false
	}
	r.taken.Store(true)
	r.answer(store.Ack{}, err)
	return true
}

// stageInOrder stages a batch, and behind it what was held for it.
func (s *Store) stageInOrder(g *group, r *request, state *sequence.State) {
	if s.rollFirst(g, r) {
		s.judge(g, r) // the flush may have failed, and with it what state rests on
		return
	}
	if s.stage(g, r, state) && state != nil {
		s.releaseHeld(g, r.p, r.producer.ID)
	}
}

// refuse answers a request that the rule does not let through.
func (s *Store) refuse(g *group, r *request, state *sequence.State, v sequence.Verdict, staged bool) {
	s.count(r.p, r, v, withinWindow(state, r.attempt, v))
	s.reply(g, r, staged, store.Ack{}, store.Refusal(state, v, r.attempt))
}

// reply answers at once, or with the group if the answer rests on what it staged.
func (s *Store) reply(g *group, r *request, staged bool, ack store.Ack, err error) {
	r.taken.Store(true)
	if staged {
		g.answers = append(g.answers, answer{r, ack, err})
		return
	}
	r.answer(ack, err)
}

// lookup finds what the group in progress knows of a producer, and whether that rests on
// something staged. The state is to be read only, and before anything else is staged.
func (g *group) lookup(p *partition, pid int64) (state *sequence.State, staged bool) {
	pr := p.dedup.byID[pid]
	switch {
	case pr != nil && pr.staged > 0:
		return &g.states[pr.staged-1].state, true
	case pr == nil, !pr.state.Exists(): // or it was to become live, and the write failed
		g.known = p.dedup.state(pid)
		return &g.known, false
	}
	return &pr.state, false
}

// set stages a producer's state.
func (g *group) set(p *partition, pid int64, state sequence.State) *producer {
	pr := p.enter(pid)
	if pr.staged > 0 {
		g.states[pr.staged-1].state = state
		return pr
	}
	g.states = append(g.states, stagedState{p, pr, state})
	pr.staged = int32(len(g.states))
	return pr
}

// expiry reports whether a live state is due to expire, and since when.
func expiry(state *sequence.State, c *store.Config, now int64) (at int64, due bool) {
	if !state.Live() {
		return 0, false
	}
	at = expiresAt(state, c)
	return at, now >= at
}

// expiresAt is when a live state expires (ms).
func expiresAt(state *sequence.State, c *store.Config) int64 {
	if at := state.LastTimestamp() + c.ProducerExpiryMs; at < sequence.Max {
		return at
	}
	return sequence.Max
}

// overlay gives the partition's overlay for the group, beginning it if need be.
func (g *group) overlay(p *partition) *stagedPart {
	st := &p.staged
	if !st.used {
		st.used, st.next, st.lastAt, st.marks = true, p.next.Load(), p.lastAt, p.marks
		g.parts = append(g.parts, p)
	}
	return st
}

// stageExpiry makes a producer's expiry part of the group: it must be durable before
// anybody learns of it, or a clock that was set back could undo it after a restart.
func (s *Store) stageExpiry(g *group, p *partition, pid int64, state *sequence.State, at int64) *sequence.State {
	st := g.overlay(p)
	pr := g.set(p, pid, state.Expire(at))
	g.marks = append(g.marks, stagedMark{p: p, pr: pr, offset: st.next, number: st.marks, mark: mark{pid: pid, at: at}})
	st.marks++
	st.live--
	g.live--
	return &g.states[pr.staged-1].state
}

// stageEviction is stageExpiry of a producer whose time has not come.
func (s *Store) stageEviction(g *group, p *partition, pr *producer, state *sequence.State) {
	s.stageExpiry(g, p, pr.id, state, g.now)
	g.marks[len(g.marks)-1].evicted = true
}

// rollFirst closes the active segment if that has to happen before r is written. It
// returns true if the request must then be judged again.
func (s *Store) rollFirst(g *group, r *request) bool {
	if !r.p.rollDue(int64(len(r.batch.Bytes)), g.now) {
		return false
	}
	s.flush(g) // the snapshot between the segments must not hold what is not durable
	if err := s.rollInPassing(r.p); err != nil {
		r.failed = err
		return false
	}
	return true
}

// stage gives a batch its place in the log. It returns false if that was not possible.
// state is nil for a plain append.
func (s *Store) stage(g *group, r *request, state *sequence.State) bool {
	p := r.p
	if !r.taken.CompareAndSwap(false, true) {
		return false // given up while it was held, or before its turn came
	}
	if r.failed != nil {
		r.answer(store.Ack{}, r.failed)
		return false
	}
	st := g.overlay(p)
	at := max(g.now, st.lastAt)
	base := st.next
	g.bytes += int64(len(r.batch.Bytes))
	st.next += int64(r.batch.Count)
	st.lastAt = at
	st.bytes += int64(len(r.batch.Bytes))
	st.batches++
	ack := store.Ack{BaseOffset: base, LastOffset: st.next - 1, NextSeq: -1, AppendedAt: millis(at)}
	var pr *producer
	if state != nil {
		next := state.Apply(r.attempt, base, at)
		if !state.Live() {
			s.makeRoom(g, p)
			st.live++
			g.live++
		}
		pr = g.set(p, r.producer.ID, next)
		ack.NextSeq = r.attempt.LastSeq() + 1
	}
	g.batches = append(g.batches, stagedBatch{r: r, pr: pr, base: base, at: at})
	g.answers = append(g.answers, answer{r: r, ack: ack})
	return true
}

// rollDue reports whether the active segment must be closed before a batch of n bytes.
func (p *partition) rollDue(n, now int64) bool {
	a, c := p.active(), p.topic.config()
	bytes, batches := a.Bytes+p.staged.bytes, a.Batches+p.staged.batches
	if batches == 0 {
		return false
	}
	return bytes+n > c.SegmentBytes || now-a.CreatedAt >= c.SegmentMs
}

// count counts a verdict other than Append. passing says of a gap that it lies within
// what requests that overtake each other can cause.
func (s *Store) count(p *partition, r *request, v sequence.Verdict, passing bool) {
	s.note(r, v, passing)
	var c counters // of a producer that the partition does not know: nobody looks
	of := &c
	if pr := p.dedup.byID[r.producer.ID]; pr != nil {
		of = &pr.counters
	}
	switch v.Kind {
	case sequence.Duplicate, sequence.Forgotten:
		of.duplicate.Add(1)
		s.stats.duplicates.Add(1)
	case sequence.OutOfOrder:
		of.outOfOrder.Add(1)
		s.countGap(p, r, v, passing)
	case sequence.Fenced:
		of.fenced.Add(1)
		s.stats.fenced.Add(1)
	case sequence.Reused:
		of.reused.Add(1)
		s.stats.reused.Add(1)
	case sequence.Overlap:
		s.stats.overlaps.Add(1)
	case sequence.Expired:
		s.stats.expired.Add(1)
	case sequence.Append:
	}
}
