package bolt

import (
	"context"
	"iter"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// Rows that have been trimmed, or belonged to a deleted topic, are garbage until the reaper
// deletes them, and it does not hurry: bbolt writes the list of all free pages with each
// commit, so some of them are kept ready, and the next ones are made when those have
// been used. Only the bytes of batches are counted, and after a crash a little too many.

// The reaper stops when so many pages are free, and goes on when half of them are left. The
// list of them stays below listedPages.
const enoughFree = 24 << 10

type garbage struct {
	bytes map[uint64]int64 // by uid of the partition; the committer's
	total atomic.Int64
	left  atomic.Bool   // the reaper has stopped before it had come to the end
	due   chan struct{} // it is to go on
}

func newGarbage() garbage {
	return garbage{bytes: map[uint64]int64{}, due: make(chan struct{}, 1)}
}

func (g *garbage) add(uid uint64, n int64) {
	if n != 0 {
		g.bytes[uid] += n
		g.total.Add(n)
	}
}

// deleted takes n bytes off what is known of a partition, or, at the end, all of it.
func (g *garbage) deleted(uid uint64, n int64, end bool) {
	known := g.bytes[uid]
	if end {
		n = known
	}
	g.add(uid, -min(n, known))
	if end {
		delete(g.bytes, uid)
	}
}

// roomEnough reports that the reaper may stop for now.
func (s *Store) roomEnough() bool {
	return s.freePages() >= s.opts.enoughFree && s.refused.Load() == nil
}

// freePages is how many pages of the file are free.
func (s *Store) freePages() int64 { return s.stats.freeBytes.Load() / int64(s.db.Info().PageSize) }

// wakeReaper has it go on, if there is reason to.
func (s *Store) wakeReaper() {
	if s.garbage.left.Load() && (s.freePages() < s.opts.enoughFree/2 || s.refused.Load() != nil) {
		select {
		case s.garbage.due <- struct{}{}:
		default:
		}
	}
}

// recoverTrash loads how much of deleted topics is still there.
func (s *Store) recoverTrash(tx *bbolt.Tx) error {
	return tx.Bucket(bucketTrash).ForEach(func(k, _ []byte) error {
		if len(k) != 8 {
			return nil
		}
		if n, err := readNumber(tx.Bucket(bucketTrash), k); err == nil { // earlier versions wrote none
			s.garbage.add(uidOf(k), int64(n))
		}
		return nil
	})
}

// reapAll is reap by itself, between the rounds of upkeep.
func (s *Store) reapAll(ctx context.Context) error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	return s.reap(ctx)
}

// kept tells which rows of a store are not garbage.
type kept struct {
	floors map[uint64]int64 // by uid: the first segment
	trash  map[uint64]bool
}

func newKept(tx *bbolt.Tx) *kept {
	out := &kept{floors: map[uint64]int64{}, trash: map[uint64]bool{}}
	for k := range keysOf(tx.Bucket(bucketSegments), offsetKeyLen) {
		if _, ok := out.floors[uidOf(k)]; !ok {
			out.floors[uidOf(k)] = offsetOf(k)
		}
	}
	for k := range keysOf(tx.Bucket(bucketTrash), len(uidKey(0))) {
		out.trash[uidOf(k)] = true
	}
	return out
}

// keysOf gives the keys of a bucket that are so long.
func keysOf(b *bbolt.Bucket, length int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := b.Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			if len(k) == length && !yield(k) {
				return
			}
		}
	}
}

// garbage reports that a row of a bucket could be deleted. Headers and marks could only
// when there is a base above them.
func (g *kept) garbage(bucket, k []byte) bool {
	switch string(bucket) {
	case string(bucketTrash):
		return true
	case string(bucketBatches):
		if len(k) >= offsetKeyLen && !g.trash[uidOf(k)] {
			return offsetOf(k) < g.floors[uidOf(k)]
		}
	case string(bucketHeaders), string(bucketMarks), string(bucketSegments), string(bucketSnapshots), string(bucketChunks):
	default:
		return false
	}
	return len(k) >= 8 && g.trash[uidOf(k)]
}

// keptRows goes through the rows of a bucket that are not garbage.
type keptRows struct {
	kept   *kept
	name   []byte
	cursor *bbolt.Cursor
}

func (g *kept) rows(name []byte, b *bbolt.Bucket) *keptRows {
	return &keptRows{g, name, b.Cursor()}
}

func (r *keptRows) first() (k, v []byte) { return r.pass(r.cursor.First()) }
func (r *keptRows) next() (k, v []byte)  { return r.pass(r.cursor.Next()) }

func (r *keptRows) pass(k, v []byte) ([]byte, []byte) {
	for k != nil && r.kept.garbage(r.name, k) {
		k, v = r.cursor.Next()
	}
	return k, v
}
