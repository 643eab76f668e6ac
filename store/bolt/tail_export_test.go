package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

// BucketTail is the tail, for tests that damage it.
var BucketTail = bucketTail

// TailRows is how many rows the tail takes.
const TailRows = tailRows

// WithTail makes every group of small batches go to the tail.
func WithTail(o Options) Options {
	o.tailFrom = 1
	return o
}

// InTail is how many batches of a partition lie in the tail, and how many there are of all.
func (s *Store) InTail(p store.Partition) (n, all int) {
	pt, err := s.partition(p)
	if err != nil {
		panic(err)
	}
	_ = s.control(context.Background(), func() error {
		n, all = len(pt.tail), int(s.tail.rows)
		return nil
	})
	return n, all
}

// Settle moves what lies in the tail.
func (s *Store) Settle() error {
	return s.control(context.Background(), func() error { return s.update(nothing) })
}

// TailValue is the value of a row in the tail, and where in it the header and the batch begin.
func TailValue(v []byte) (header, body int) {
	h, b := splitTail(v)
	return len(v) - len(b) - len(h), len(v) - len(b)
}

// Rekey gives the key of a row in the tail with another number.
func Rekey(k []byte, number uint32) []byte {
	uid, r, err := decodeTailKey(k)
	if err != nil {
		panic(err)
	}
	r.number = number
	return r.appendKey(nil, uid)
}

// Ends looks where the batches of a partition are, as a reader does, and gives a function
// that lists them in a transaction that began later.
func (s *Store) Ends(p store.Partition) func(tx *bbolt.Tx) (bases []int64) {
	pt, err := s.partition(p)
	if err != nil {
		panic(err)
	}
	b, rows := pt.ends()
	return func(tx *bbolt.Tx) (bases []int64) {
		c := newLogCursor(tx, pt.uid, rows)
		for k, _ := c.seek(b.Earliest); k != nil; k, _ = c.next() {
			bases = append(bases, offsetOf(k))
		}
		return bases
	}
}

// BeginRead begins a read transaction.
func (s *Store) BeginRead() (*bbolt.Tx, error) { return s.db.Begin(false) }
