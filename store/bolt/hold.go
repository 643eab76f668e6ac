package bolt

import (
	"log/slog"
	"slices"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// Over HTTP the requests of one producer may overtake each other. A batch that comes
// ahead of its predecessors by no more than the producer's window is therefore held for
// a moment; when what was missing has been staged, it is staged right behind it. A gap
// that is larger, or that outlasts the hold, is no overtaking: something was lost.

// holds are the held requests of all partitions. It belongs to the committer.
type holds struct {
	timer *time.Timer
	list  []*request // in order of their deadlines
}

// expired fires when the oldest hold is over; nil, and so never, when none is held.
func (h *holds) expired() <-chan time.Time {
	if h.timer == nil {
		return nil
	}
	return h.timer.C
}

// park holds a request that is ahead of its turn, if it may be held.
func (s *Store) park(r *request, state *sequence.State, v sequence.Verdict) bool {
	if s.opts.ReorderWait <= 0 || r.noHold || r.taken.Load() || !withinWindow(state, r.attempt, v) {
		return false
	}
	p := r.p
	held := p.held[r.producer.ID]
	bytes := int64(len(r.batch.Bytes))
	for _, h := range held {
		bytes += int64(len(h.batch.Bytes))
	}
	if len(held) >= heldBatches || bytes > heldBytes {
		return false
	}
	r.heldAt = time.Now()
	p.setHeld(r.producer.ID, append(held, r))
	p.parked.Add(1)
	s.stats.parked.Add(1)
	s.stats.held.Add(1)
	s.holds.list = append(s.holds.list, r)
	if s.holds.timer == nil {
		s.holds.timer = time.NewTimer(s.opts.ReorderWait)
	}
	return true
}

// unknownBatch is how many records a batch may have of a producer of whose epoch no
// batch is known yet.
const unknownBatch = 1000

// withinWindow reports whether a gap is one that requests which overtake each other can
// leave: no more records than a window of batches as large as those that we know of.
func withinWindow(state *sequence.State, a sequence.Attempt, v sequence.Verdict) bool {
	if v.Kind != sequence.OutOfOrder {
		return false
	}
	largest := max(a.Count, state.LargestBatch())
	if !state.Live() || state.Epoch() != a.Epoch {
		largest = max(largest, unknownBatch)
	}
	return a.BaseSeq-v.Expected <= int64(largest)*sequence.Window
}

// releaseHeld stages the held batches whose turn has come.
func (s *Store) releaseHeld(g *group, p *partition, pid int64) {
	for {
		held := p.held[pid]
		i := slices.IndexFunc(held, func(r *request) bool {
			state, _ := g.lookup(p, pid)
			return sequence.Check(state, r.attempt).Kind != sequence.OutOfOrder
		})
		if i < 0 {
			return
		}
		r := held[i]
		s.unhold(r)
		if !r.taken.Load() {
			s.judge(g, r)
		}
	}
}

// unhold takes a request out of the books, if it is in them.
func (s *Store) unhold(r *request) {
	p := r.p
	held := p.held[r.producer.ID]
	i := slices.Index(held, r)
	if i < 0 {
		return
	}
	p.setHeld(r.producer.ID, slices.Delete(slices.Clone(held), i, i+1))
	p.parked.Add(-1)
	s.stats.parked.Add(-1)
	if j := slices.Index(s.holds.list, r); j >= 0 {
		s.holds.list = slices.Delete(s.holds.list, j, j+1)
	}
	if len(s.holds.list) == 0 && s.holds.timer != nil {
		s.holds.timer.Stop()
		s.holds.timer = nil
	}
}

// expireHolds refuses what has been held for long enough.
func (s *Store) expireHolds() {
	for len(s.holds.list) > 0 {
		r := s.holds.list[0]
		if left := s.opts.ReorderWait - time.Since(r.heldAt); left > 0 {
			s.holds.timer.Reset(left)
			return
		}
		s.endHold(r, false)
	}
}

// refuseHeld refuses everything that is held, for the engine is closing.
func (s *Store) refuseHeld() {
	for len(s.holds.list) > 0 {
		s.endHold(s.holds.list[0], true)
	}
}

// endHold refuses a held request. passing says that its gap proves no loss.
func (s *Store) endHold(r *request, passing bool) {
	s.unhold(r)
	if !r.taken.CompareAndSwap(false, true) {
		return
	}
	if r.p.dead.Load() {
		r.answer(store.Ack{}, unknownTopic(r.p.name.Topic))
		return
	}
	if pr := r.p.dedup.byID[r.producer.ID]; pr != nil {
		pr.counters.held.Add(1)
	}
	state, _ := s.group.lookup(r.p, r.producer.ID)
	v := sequence.Check(state, r.attempt)
	s.count(r.p, r, v, passing)
	r.answer(store.Ack{}, store.Refusal(state, v, r.attempt))
}

// countGap counts a gap and says once per producer and partition that one lasts.
func (s *Store) countGap(p *partition, r *request, v sequence.Verdict, passing bool) {
	if passing {
		s.stats.passingGaps.Add(1)
		return
	}
	s.stats.lastingGaps.Add(1)
	const most = 1000 // a bound on memory; beyond it the metric still counts
	if _, logged := p.gaps[r.producer.ID]; logged || len(p.gaps) >= most {
		return
	}
	if p.gaps == nil {
		p.gaps = map[int64]struct{}{}
	}
	p.gaps[r.producer.ID] = struct{}{}
	s.log.Warn("a producer has left a gap, records are missing",
		p.logTopic(), p.logNumber(), slog.Int64("producer.id", r.producer.ID),
		slog.Int64("producer.epoch", r.producer.Epoch), slog.Int64("expected.seq", v.Expected), slog.Int64("received.seq", r.attempt.BaseSeq))
}
