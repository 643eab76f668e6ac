package bolt

import (
	"container/heap"
	"encoding/binary"
	"log/slog"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store/sequence"
)

// cutoff is what is left of tombstones that were dropped to keep their number bounded:
// a producer below it of which nothing is known counts as expired, in an epoch that was
// not above that of the cutoff. Whatever it sent before is refused for ever, and whoever
// goes on with a higher epoch, as after any expiry, is let on. Dropped are the tombstones
// with the lowest ids. Ids are given out in rising order, so those are of producers that
// are long gone, as a rule, and new ones lie above the cutoff.
//
// Nothing less would do. Without an epoch, a batch of the second epoch of a dropped
// producer could get in twice; with a bound on ages instead of ids, one could not tell a
// producer that was dropped from one that has yet to send its first batch.
//
// The zero value cuts off nobody.
type cutoff struct {
	below int64 // producer ids
	epoch int64 // the highest of those that were dropped
	at    int64 // when the last ones were (ms)
}

// state is what counts for a producer of which nothing is known.
func (c cutoff) state(pid int64) sequence.State {
	if pid >= c.below {
		return sequence.State{}
	}
	return sequence.Tombstone(c.epoch, 0, c.at)
}

// raise takes a further cut in. One may lie below an earlier one: producers below that
// may be live, and expire.
func (c *cutoff) raise(by cutoff) {
	c.below, c.epoch, c.at = max(c.below, by.below), max(c.epoch, by.epoch), max(c.at, by.at)
}

func (c cutoff) append(b []byte) []byte {
	for _, n := range []int64{c.below, c.epoch, c.at} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// decodeCutoff reads one from the front of b and returns the rest.
func decodeCutoff(b []byte) (c cutoff, rest []byte, ok bool) {
	for _, field := range []*int64{&c.below, &c.epoch, &c.at} {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > sequence.Max+1 {
			return cutoff{}, nil, false
		}
		*field, b = int64(v), b[n:]
	}
	return c, b, c.below > 0
}

const (
	// cutShare is the part of the bound that is dropped beyond what must be, so that not
	// each expiry costs a transaction, and mostCut the most of one transaction.
	cutShare = 16
	mostCut  = 4096
)

// boundProducers looks at what partitions know of producers when that has changed.
func (s *Store) boundProducers(parts []*partition) {
	for _, p := range parts {
		s.boundTombs(p)
	}
	s.watchCrowds(parts)
}

// boundTombs keeps a partition within MaxTombstones, or comes closer to it. It must run on
// the committer, with nothing staged for the partition.
func (s *Store) boundTombs(p *partition) {
	bound := s.opts.MaxTombstones
	over := p.dedup.tombs.Len() - bound
	if over <= 0 {
		return
	}
	cut := p.dedup.lowest(min(over+bound/cutShare, mostCut))
	cut.at = s.clock.millis()
	key := markKey(p.uid, p.next.Load(), p.marks)
	err := s.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketMarks).Put(key, mark{cutoff: cut}.encode(key))
	})
	if err != nil {
		return // it has been logged, or there is no space; the next expiry tries again
	}
	p.mu.Lock()
	dropped := p.dedup.cut(cut)
	p.marks++
	p.lastAt = max(p.lastAt, cut.at)
	p.mu.Unlock()
	if s.stats.cutOff.Add(int64(dropped)) == int64(dropped) { // the first time
		s.log.Warn("a partition has more expired producers than it remembers one by one, those with the lowest ids are treated alike from now on",
			p.logTopic(), p.logNumber(), slog.Int("max.tombstones", bound))
	}
}

// lowest gives the cut that drops the n tombstones with the lowest ids.
func (d *dedup) lowest(n int) cutoff {
	var c cutoff
	d.tombs.Scan(func(t tombstone) bool {
		c.below, c.epoch = t.id+1, max(c.epoch, t.epoch)
		n--
		return n > 0
	})
	return c
}

// cut drops the tombstones below a cutoff and says how many they were.
func (d *dedup) cut(c cutoff) int {
	var doomed []tombstone
	d.tombs.Scan(func(t tombstone) bool {
		if t.id >= c.below {
			return false
		}
		doomed = append(doomed, t)
		return true
	})
	for _, t := range doomed {
		if d.capture != nil {
			d.capture.save(t.id, t.state())
		}
		d.tombs.Delete(t)
	}
	d.cutoff.raise(c)
	d.totals.tombs.Add(-int64(len(doomed)))
	return len(doomed)
}

// known is what a snapshot holds: producer states, tombstones among them, and the cutoff.
type known struct {
	states states
	cutoff cutoff
}

// state is that of a producer, or what its absence means.
func (k *known) state(pid int64) sequence.State {
	if pr := k.states[pid]; pr != nil && pr.state.Exists() {
		return pr.state
	}
	return k.cutoff.state(pid)
}

// expired are the ids of tombstones during a replay, the lowest first. It is filled when
// the first cutoff comes, for most replays meet none. Producers that have come back since
// may be in it, and some twice.
type expired struct {
	ids   []int64
	ready bool
}

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (e *expired) Len() int           { return len(e.ids) }
func (e *expired) Less(i, j int) bool { return e.ids[i] < e.ids[j] }
func (e *expired) Swap(i, j int)      { e.ids[i], e.ids[j] = e.ids[j], e.ids[i] }
func (e *expired) Push(x any)         { e.ids = append(e.ids, x.(int64)) } //nolint:errcheck // nothing else is pushed
func (e *expired) Pop() any {
	last := len(e.ids) - 1
	id := e.ids[last]
	e.ids = e.ids[:last]
	return id
}

// add takes note of a tombstone.
func (e *expired) add(pid int64) {
	if e.ready {
		heap.Push(e, pid)
	}
}

// cut drops the tombstones below a cutoff from what a replay knows.
func (e *expired) cut(k *known, c cutoff) {
	if !e.ready {
		e.ready = true
		for pid, pr := range k.states {
			if pr.state.Exists() && !pr.state.Live() {
				e.ids = append(e.ids, pid)
			}
		}
		slices.Sort(e.ids) // which makes a heap of them
	}
	for len(e.ids) > 0 && e.ids[0] < c.below {
		pid := heap.Pop(e).(int64) //nolint:errcheck // nothing else is in it
		if pr := k.states[pid]; pr != nil && !pr.state.Live() {
			delete(k.states, pid)
		}
	}
	k.cutoff.raise(c)
}
