package bolt

import (
	"cmp"
	"log/slog"
	"slices"
)

// mostEvicted bounds what one newcomer can push out, and so its transaction: a limit that
// was lowered is reached step by step.
const mostEvicted = 4096

// makeRoom keeps a partition within the topic's MaxProducers, and the store within its own,
// when one more producer is about to get live state: those that have been quiet for longest
// are replaced by tombstones, in the transaction of the newcomer. For the store's limit that
// is whoever has been quiet for longest anywhere. In the newcomer's partition alone it could
// be one that is in full swing.
func (s *Store) makeRoom(g *group, p *partition) {
	limit := p.topic.config().MaxProducers
	if over := int64(p.dedup.live+p.staged.live) + 1 - limit; over > 0 {
		s.evict(g, p, over)
		if !p.crowded {
			p.crowded = true
			s.log.Warn("a partition has reached maxProducers, the producers that were quiet for longest are expired",
				p.logTopic(), p.logNumber(), slog.Int64("max.producers", limit))
		}
	}
	if s.opts.MaxProducers <= 0 {
		return
	}
	if over := s.stats.producers.live.Load() + int64(g.live) + 1 - s.opts.MaxProducers; over > 0 {
		s.evictAnywhere(g, over)
		if !s.crowded {
			s.crowded = true
			s.log.Warn("the store has reached its limit of producers, those that were quiet for longest are expired",
				slog.Int64("max.producers", s.opts.MaxProducers))
		}
	}
}

// evict stages the expiry of the n live producers of a partition that have been quiet for
// longest. Those that the group touches have their newest batch in it and so come last.
func (s *Store) evict(g *group, p *partition, n int64) {
	g.overlay(p)
	for n = min(n, mostEvicted); n > 0; n-- {
		pr := p.quietest()
		if pr == nil {
			s.evictTouched(g, n, p)
			return
		}
		s.stageEviction(g, p, pr, &pr.state)
	}
}

// evictAnywhere is evict over all partitions.
func (s *Store) evictAnywhere(g *group, n int64) {
	for n = min(n, mostEvicted); n > 0; n-- {
		p, pr := s.quiet.next(g)
		if pr == nil {
			s.evictTouched(g, n, nil)
			return
		}
		s.stageEviction(g, p, pr, &pr.state)
	}
}

// evictTouched stages the expiry of n producers that the group made live, of a partition or
// of all.
func (s *Store) evictTouched(g *group, n int64, p *partition) {
	var touched []stagedState
	for _, st := range g.states {
		if (p == nil || st.p == p) && st.state.Live() {
			touched = append(touched, st)
		}
	}
	slices.SortFunc(touched, func(a, b stagedState) int {
		return cmp.Or(cmp.Compare(a.state.LastTimestamp(), b.state.LastTimestamp()),
			cmp.Compare(a.p.uid, b.p.uid), cmp.Compare(a.state.LastOffset(), b.state.LastOffset()))
	})
	for _, st := range touched[:min(int(n), len(touched))] {
		s.stageEviction(g, st.p, st.pr, &g.states[st.pr.staged-1].state)
	}
}

// quietest gives the live producer that has been quiet for longest and that the group does
// not touch, nil if there is none. The partition must be one of the group's.
func (p *partition) quietest() *producer {
	st := &p.staged
	if !st.walking {
		st.walking, st.quiet = true, p.dedup.quietest
	}
	for st.quiet != nil && st.quiet.staged > 0 { // and it stays so until the group ends
		st.quiet = st.quiet.newer
	}
	return st.quiet
}
