package bolt

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// dedup is what a partition knows of its producers. There may be a million of them, so
// whatever happens all the time must not walk over all: a batch finds its producer by
// id, expiry and eviction begin with the one that has been quiet for longest, and a page
// of a listing begins at an id.
//
// It is guarded by the partition's mu like the rest: only the committer writes, so it
// alone reads without the lock.
type dedup struct {
	byID  map[int64]*producer
	inOrd *btree.BTreeG[*producer] // the live ones in the order of their ids
	live  int
	// The live ones form a list from the one whose newest batch is the oldest to the one
	// whose newest batch is the newest. Offsets grow with arrivals, so it is ordered by
	// both.
	quietest, latest *producer
	tombs            *btree.BTreeG[tombstone] // in the order of ids
	cutoff           cutoff                   // what is left of further ones
	capture          *capture                 // of these states, if one is being taken
	totals           *totals
}

// totals count the producers of all partitions, each as often as there are partitions that
// know it.
type totals struct{ live, tombs atomic.Int64 }

// producer is a live producer's state in a partition, with counters since start; or one
// that is about to be live, known to the committer only. It is kept within 256 bytes, a
// size class of the allocator.
type producer struct {
	state sequence.State
	id    int64
	older *producer // neighbours in the list
	newer *producer
	counters
}

// tombstone is what is left of an expired producer.
type tombstone struct{ id, epoch, next, at int64 }

func (t tombstone) state() sequence.State { return sequence.Tombstone(t.epoch, t.next, t.at) }

// counters go round at 2^32, but for accepted.
type counters struct {
	accepted                                    atomic.Int64
	duplicate, outOfOrder, fenced, reused, held atomic.Uint32
	// staged, which only the committer uses, is 1 + the place of the producer among the
	// states of the group in progress. It lies here because it would be padded elsewhere.
	staged int32
}

func (c *counters) public() store.Counters {
	return store.Counters{
		Accepted: c.accepted.Load(), Duplicate: int64(c.duplicate.Load()), OutOfOrder: int64(c.outOfOrder.Load()),
		Fenced: int64(c.fenced.Load()), Reused: int64(c.reused.Load()), Held: int64(c.held.Load()),
	}
}

func (c *counters) reset() {
	c.accepted.Store(0)
	for _, n := range []*atomic.Uint32{&c.duplicate, &c.outOfOrder, &c.fenced, &c.reused, &c.held} {
		n.Store(0)
	}
}

func newDedup(t *totals) dedup {
	less := func(a, b *producer) bool { return a.id < b.id }
	return dedup{
		byID:   map[int64]*producer{},
		inOrd:  btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}),
		totals: t,
		tombs:  btree.NewBTreeGOptions(func(a, b tombstone) bool { return a.id < b.id }, btree.Options{NoLocks: true}),
	}
}

// state is what is durable of a producer, or what its absence means.
func (d *dedup) state(pid int64) sequence.State {
	st := d.stored(pid)
	if !st.Exists() {
		st = d.cutoff.state(pid)
	}
	return st
}

// stored is what a snapshot holds of a producer.
func (d *dedup) stored(pid int64) sequence.State {
	if pr := d.byID[pid]; pr != nil && pr.state.Exists() {
		return pr.state
	}
	if t, ok := d.tombs.Get(tombstone{id: pid}); ok {
		return t.state()
	}
	return sequence.State{}
}

// fill takes over the states that recovery found.
func (d *dedup) fill(k known) {
	found := k.states
	d.cutoff = k.cutoff
	type arrival struct {
		offset int64
		pr     *producer
	}
	live := make([]arrival, 0, len(found))
	for _, pid := range slices.Sorted(maps.Keys(found)) {
		pr := found[pid]
		if !pr.state.Live() {
			d.bury(pid, &pr.state)
			delete(found, pid)
			continue
		}
		d.inOrd.Load(pr)
		live = append(live, arrival{pr.state.LastOffset(), pr})
	}
	slices.SortFunc(live, func(a, b arrival) int { return cmp.Compare(a.offset, b.offset) })
	for _, a := range live {
		d.link(a.pr)
	}
	d.live, d.byID = len(live), found
	d.totals.live.Add(int64(d.live))
}

// contents is what a snapshot of the state holds. The committer, or Open and Close, which
// run without it, may call it.
func (d *dedup) contents() contents {
	const step = 1024
	all := func(yield func(int64, *sequence.State) bool) {
		for after := int64(-1); ; {
			ids := d.above(after, step)
			for _, pid := range ids {
				if st := d.stored(pid); !yield(pid, &st) {
					return
				}
			}
			if len(ids) < step {
				return
			}
			after = ids[step-1]
		}
	}
	return contents{count: d.size(), live: d.live, cutoff: d.cutoff, all: all}
}

// publish replaces the state of a producer that byID has.
func (d *dedup) publish(pr *producer, st *sequence.State) {
	if d.capture != nil {
		d.capture.save(pr.id, d.stored(pr.id))
	}
	was := pr.state.Live()
	if was {
		d.unlink(pr)
	}
	pr.state = *st
	if !st.Live() {
		d.bury(pr.id, st)
		delete(d.byID, pr.id)
		if was {
			d.inOrd.Delete(pr)
			d.live--
			d.totals.live.Add(-1)
		}
		return
	}
	d.link(pr)
	if !was {
		if _, was := d.tombs.Delete(tombstone{id: pr.id}); was {
			d.totals.tombs.Add(-1)
		}
		d.inOrd.Set(pr)
		d.live++
		d.totals.live.Add(1)
	}
}

func (d *dedup) bury(pid int64, st *sequence.State) {
	at, _ := st.Expired()
	if _, was := d.tombs.Set(tombstone{pid, st.Epoch(), st.NextSeq(), at}); !was {
		d.totals.tombs.Add(1)
	}
}

// size is how many producers a snapshot has to hold.
func (d *dedup) size() int { return d.live + d.tombs.Len() }

// above gives the ids above after, in order, at most limit.
func (d *dedup) above(after int64, limit int) []int64 {
	ids := make([]int64, 0, 2*limit)
	d.inOrd.Ascend(&producer{id: after + 1}, func(pr *producer) bool {
		ids = append(ids, pr.id)
		return len(ids) < limit
	})
	n := len(ids)
	d.tombs.Ascend(tombstone{id: after + 1}, func(t tombstone) bool {
		ids = append(ids, t.id)
		return len(ids)-n < limit
	})
	slices.Sort(ids)
	return ids[:min(limit, len(ids))]
}

// link puts a producer at the newer end of the list.
func (d *dedup) link(pr *producer) {
	pr.older, pr.newer = d.latest, nil
	if d.latest != nil {
		d.latest.newer = pr
	} else {
		d.quietest = pr
	}
	d.latest = pr
}

func (d *dedup) unlink(pr *producer) {
	if pr.older != nil {
		pr.older.newer = pr.newer
	} else {
		d.quietest = pr.newer
	}
	if pr.newer != nil {
		pr.newer.older = pr.older
	} else {
		d.latest = pr.older
	}
}

// enter gives the producer of an id, making it known to the committer if need be.
func (p *partition) enter(pid int64) *producer {
	if pr := p.dedup.byID[pid]; pr != nil {
		return pr
	}
	pr := &producer{id: pid}
	p.mu.Lock()
	p.dedup.byID[pid] = pr
	p.mu.Unlock()
	return pr
}

// idsAfter gives the ids of the live producers above after, in order, at most limit.
func (p *partition) idsAfter(after int64, limit int) []int64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var ids []int64
	p.dedup.inOrd.Ascend(&producer{id: after + 1}, func(pr *producer) bool {
		if len(ids) == limit {
			return false
		}
		ids = append(ids, pr.id)
		return true
	})
	return ids
}
