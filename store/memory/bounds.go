package memory

import (
	"cmp"
	"maps"
	"slices"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// state is what a partition knows of a producer. One that it no longer knows because there
// were too many tombstones counts as expired, in an epoch that was at most the highest of
// those that were dropped.
func (p *partition) state(id int64) sequence.State {
	state := p.producers[id]
	if !state.Exists() && id < p.dropped.below {
		return sequence.Tombstone(p.dropped.epoch, 0, p.dropped.at)
	}
	return state
}

// dropped is what is left of tombstones that a partition has dropped.
type dropped struct{ below, epoch, at int64 }

// boundTombstones drops the tombstones of the lowest ids until the rest is within the bound.
func (s *Store) boundTombstones(p *partition) {
	most := s.options.MaxTombstones
	if most == 0 {
		return
	}
	var tombs []int64
	for _, id := range slices.Sorted(maps.Keys(p.producers)) {
		if state := p.producers[id]; !state.Live() {
			tombs = append(tombs, id)
		}
	}
	for _, id := range tombs[:max(0, len(tombs)-most)] {
		state := p.producers[id]
		p.dropped.below = max(p.dropped.below, id+1)
		p.dropped.epoch = max(p.dropped.epoch, state.Epoch())
		p.dropped.at = s.clock
		delete(p.producers, id)
		p.expiries++
		s.stats.CutOffProducers++
	}
}

// makeRoom evicts the producers that have been quiet for longest until one more fits, in
// the partition and in the store.
func (s *Store) makeRoom(p *partition, c store.Config) {
	for int64(p.live()) >= c.MaxProducers {
		s.evict(p)
	}
	for most := s.options.MaxProducers; most > 0 && s.live() >= most; {
		s.evict(s.quietest())
	}
}

// live counts the producers of all partitions.
func (s *Store) live() int64 {
	n := int64(0)
	for _, t := range s.topics {
		for _, p := range t.partitions {
			n += int64(p.live())
		}
	}
	return n
}

// quietest is the partition of the producer that has been quiet for longest.
func (s *Store) quietest() *partition {
	var found *partition
	var since int64
	for _, t := range s.topics {
		for _, p := range t.partitions {
			id := p.quietest()
			if id < 0 {
				continue
			}
			state := p.producers[id]
			at := state.LastTimestamp()
			if found == nil || cmp.Or(cmp.Compare(at, since), cmp.Compare(p.number, found.number)) < 0 {
				found, since = p, at
			}
		}
	}
	return found
}

// quietest is the live producer whose newest batch is the oldest, −1 if there is none.
func (p *partition) quietest() int64 {
	quietest, lowest := int64(-1), int64(-1)
	for id, state := range p.producers {
		if state.Live() && (lowest < 0 || state.LastOffset() < lowest) {
			quietest, lowest = id, state.LastOffset()
		}
	}
	return quietest
}

func (s *Store) evict(p *partition) {
	p.expire(p.quietest(), s.clock)
	s.stats.EvictedProducers++
}
