package bolt

import (
	"errors"
	"maps"
	"slices"
	"sort"

	"go.etcd.io/bbolt"
)

// recoverTail lists what lies in the tail with the partitions that it belongs to.
func (s *Store) recoverTail(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketTail)
	if b == nil {
		return nil
	}
	parts := map[uint64]*partition{}
	for _, p := range s.allPartitions() {
		parts[p.uid] = p
	}
	var err error
	s.tail.tailEnd, err = walkTail(b, func(uid uint64, r tailRow, _ []byte) {
		if p := parts[uid]; p != nil { // else of a topic whose row is lost; it is moved as well
			s.tail.list(p, r)
		}
	})
	return err
}

// loseTail notes that nobody can say what has been in the tail. Any partition may have lost
// its newest batches.
func (s *Store) loseTail(cause error) {
	s.tail.settled()
	s.tail.damage = &tailError{cause}
}

// tailError is why a partition is out of service whose own rows may be whole.
type tailError struct{ cause error }

func (e *tailError) Error() string {
	return "the tail of the log, where the newest batches of all partitions lie, is damaged: " + describe(e.cause)
}

func (e *tailError) Unwrap() error { return e.cause }

// walkTail examines the tail and notes what partitions have in it.
func (c *checker) walkTail(tx *bbolt.Tx) {
	b := tx.Bucket(bucketTail)
	if b == nil {
		return
	}
	tail := map[uint64][]tailRow{}
	_, err := walkTail(b, func(uid uint64, r tailRow, _ []byte) { tail[uid] = append(tail[uid], r) })
	if err != nil {
		c.report.problem("%v", &tailError{err})
		return
	}
	c.tail = tail
}

// strayRows finds rows of the tail that belong to no partition.
func (c *checker) strayRows() {
	for _, uid := range slices.Sorted(maps.Keys(c.tail)) {
		if !c.uids[uid] {
			c.report.problem("bucket %q holds data of partition uid %d, which is in no topic", bucketTail, uid)
		}
	}
}

var errAbsent = errors.New("it is missing")

// inTail is find for a batch in the tail.
func (c *partitionCheck) inTail(base int64, h *header) (found bool, err error) {
	rows := c.tail[c.uid]
	i := sort.Search(len(rows), func(i int) bool { return rows[i].base >= base })
	if i == len(rows) || rows[i].base != base {
		return false, nil
	}
	_, body := splitTail(c.tx.Bucket(bucketTail).Get(rows[i].appendKey(nil, c.uid)))
	c.buf = append(c.buf[:0], body...)
	if !h.describes(body) {
		err = errPair
	}
	return true, err
}
