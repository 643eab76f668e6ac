package bolt

import (
	"cmp"
	"container/heap"
	"log/slog"
)

// quietQueue orders partitions by how long their quietest producer has been quiet, to find
// the one that has been quiet for longest of all. That changes with almost every batch, so
// what the queue knows of a partition may be old. But it only ever changes one way: it is a
// bound, and is brought up to date when the partition comes to the front. It belongs to the
// committer, and is empty unless the store has a limit.
type quietQueue []quietEntry

type quietEntry struct {
	p  *partition
	at int64 // no live producer of p has been quiet since before that (ms)
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (q quietQueue) Len() int { return len(q) }

func (q quietQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].p.uid, q[j].p.uid)) < 0
}
func (q quietQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *quietQueue) Push(x any)   { *q = append(*q, x.(quietEntry)) } //nolint:errcheck // nothing else is pushed
func (q *quietQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = quietEntry{}
	*q = (*q)[:last]
	e.p.queued = false
	return e
}

// add puts a partition that has live producers into the queue, if it is not in it.
func (q *quietQueue) add(p *partition) {
	if !p.queued && p.dedup.live > 0 && !p.dead.Load() {
		p.queued = true
		heap.Push(q, quietEntry{p, p.dedup.quietest.state.LastTimestamp()})
	}
}

// next gives the live producer that has been quiet for longest and that the group does not
// touch. A partition that has no such producer leaves the queue until the group is
// published.
func (q *quietQueue) next(g *group) (*partition, *producer) {
	for len(*q) > 0 {
		top := &(*q)[0]
		if top.p.dead.Load() {
			heap.Pop(q)
			continue
		}
		g.overlay(top.p)
		pr := top.p.quietest()
		if pr == nil {
			heap.Pop(q)
			continue
		}
		at := pr.state.LastTimestamp()
		if at <= top.at {
			return top.p, pr
		}
		top.at = at
		heap.Fix(q, 0)
	}
	return nil, nil
}

// requeue brings the queue into line with partitions whose producers have changed. After a
// write that failed, nothing that it knows is a bound any more.
func (s *Store) requeue(parts []*partition, failed bool) {
	if s.opts.MaxProducers <= 0 {
		return
	}
	if failed {
		for len(s.quiet) > 0 {
			heap.Pop(&s.quiet)
		}
		parts = s.serving()
	}
	for _, p := range parts {
		s.quiet.add(p)
	}
}

// Shares of a limit, in percent: from nearPercent on a partition is near it, until it is
// below clearPercent again.
const (
	nearPercent  = 90
	clearPercent = 80
)

// near says whether n of at most limit is near it, given whether it was.
func near(n, limit int64, was bool) bool {
	percent := int64(nearPercent)
	if was {
		percent = clearPercent
	}
	return n > 0 && float64(n)*100 >= float64(limit)*float64(percent)
}

// watchCrowd notes whether a partition is near its limit of producers, and warns before
// that is reached.
func (s *Store) watchCrowd(p *partition) {
	limit := p.topic.config().MaxProducers
	is := near(int64(p.dedup.live), limit, p.near) && !p.dead.Load()
	if is == p.near {
		return
	}
	p.near = is
	if !is {
		s.stats.near.Add(-1)
		p.crowded = false
		return
	}
	s.stats.near.Add(1)
	s.log.Warn("a partition is near maxProducers; beyond it the producers that were quiet for longest are expired",
		p.logTopic(), p.logNumber(), slog.Int("producers", p.dedup.live), slog.Int64("max.producers", limit))
}

// watchCrowds does the same for the store.
func (s *Store) watchCrowds(parts []*partition) {
	for _, p := range parts {
		s.watchCrowd(p)
	}
	live, limit := s.stats.producers.live.Load(), s.opts.MaxProducers
	is := limit > 0 && near(live, limit, s.near)
	if is && !s.near {
		s.log.Warn("the store is near its limit of producers; beyond it those that were quiet for longest are expired",
			slog.Int64("producers", live), slog.Int64("max.producers", limit))
	}
	s.near = is
	s.crowded = s.crowded && is
}
