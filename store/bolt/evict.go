package bolt

import (
	"cmp"
	"log/slog"
	"slices"
)

// mostEvicted bounds what one newcomer can push out, and so its transaction.
const mostEvicted = 4096

// idle is a live producer with the offset of its newest record, which orders producers
// by how long they have been quiet.
type idle struct {
	pid  int64
	last int64
}

// makeRoom keeps a partition within the topic's MaxProducers when one more is about to
// get live state: those that have been quiet for longest are replaced by tombstones, in
// the transaction of the newcomer. Finding them takes a walk over all, so in a large
// partition some more go than must.
func (s *Store) makeRoom(g *group, p *partition) {
	limit := p.topic.config().MaxProducers
	over := int64(p.live+p.staged.live) + 1 - limit
	if over <= 0 {
		return
	}
	over = min(max(over, limit/1000), mostEvicted)
	all := p.idles()
	slices.SortFunc(all, func(a, b idle) int { return cmp.Compare(a.last, b.last) })
	for _, i := range all[:min(int(over), len(all))] {
		state, _ := p.state(i.pid)
		s.stageExpiry(g, p, i.pid, &state, g.now)
	}
	if !p.crowded {
		p.crowded = true
		s.log.Warn("a partition has reached maxProducers, the producers that were quiet for longest are expired",
			p.logTopic(), p.logNumber(), slog.Int64("max.producers", limit))
	}
}

// idles lists the live producers as the group in progress sees them.
func (p *partition) idles() []idle {
	all := make([]idle, 0, p.live+len(p.staged.states))
	for pid, pr := range p.producers {
		if _, staged := p.staged.states[pid]; !staged && pr.state.Live() {
			all = append(all, idle{pid, pr.state.LastOffset()})
		}
	}
	for pid, st := range p.staged.states {
		if st.Live() {
			all = append(all, idle{pid, st.LastOffset()})
		}
	}
	return all
}
