package bolt

import (
	"cmp"
	"log/slog"
	"slices"
)

// makeRoom keeps a partition within the topic's MaxProducers when one more is about to
// get live state: those that have been quiet for longest are replaced by tombstones, in
// the transaction of the newcomer.
func (s *Store) makeRoom(g *group, p *partition) {
	limit := p.topic.config().MaxProducers
	over := int64(p.dedup.live+p.staged.live) + 1 - limit
	if over <= 0 {
		return
	}
	s.evict(g, p, over)
	if !p.crowded {
		p.crowded = true
		s.log.Warn("a partition has reached maxProducers, the producers that were quiet for longest are expired",
			p.logTopic(), p.logNumber(), slog.Int64("max.producers", limit))
	}
}

// evict stages the expiry of the n live producers that have been quiet for longest. Those
// that the group touches have their newest batch in it and so come last.
func (s *Store) evict(g *group, p *partition, n int64) {
	n = min(n, mostEvicted)
	for pr := p.dedup.quietest; pr != nil && n > 0; pr = pr.newer {
		if pr.staged == 0 {
			s.stageExpiry(g, p, pr.id, &pr.state, g.now)
			n--
		}
	}
	if n == 0 {
		return
	}
	var touched []*producer
	for i := range g.states {
		if st := &g.states[i]; st.p == p && st.state.Live() {
			touched = append(touched, st.pr)
		}
	}
	last := func(pr *producer) int64 { return g.states[pr.staged-1].state.LastOffset() }
	slices.SortFunc(touched, func(a, b *producer) int { return cmp.Compare(last(a), last(b)) })
	for _, pr := range touched[:min(int(n), len(touched))] {
		s.stageExpiry(g, p, pr.id, &g.states[pr.staged-1].state, g.now)
	}
}

// mostEvicted bounds what one newcomer can push out, and so its transaction: a limit that
// was lowered is reached step by step.
const mostEvicted = 4096
