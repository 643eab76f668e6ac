package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store/batch"
)

// In the trees each partition has an end of its own, so small batches for many partitions
// would each rewrite pages of two trees. Such groups are written to the tail instead, one
// row behind the other in order of arrival, and what has gathered there is settled, which
// is moved to where it belongs, many batches of each partition at a time. Rows lie in the
// tail or in the trees, never in both; and those of a partition that are in the tail are
// its newest ones.
//
// Only appends know of it. Everything else that is written goes through [Store.update],
// which settles first in the same transaction, and so finds the log in the trees.

var bucketTail = []byte("tail") // born, number, uid, base offset, sum → header and batch

// tailKeyLen is the length of a key: when the tail was born (8), the number of the row in
// it (4), uid and base offset (8 each), and a checksum of all that (4).
const (
	tailKeyLen   = 32
	tailNumberAt = 8
	tailPlaceAt  = 12
	tailSumAt    = tailPlaceAt + offsetKeyLen
)

const (
	// tailPartitions is how many partitions a group must touch to be worth the trouble of
	// moving it later.
	tailPartitions = 8
	// tailRows and tailBytes bound the tail, and with it what one transaction moves.
	tailRows  = 1024
	tailBytes = 2 << 20
	// tailMean and tailLargest are how large the batches of a group may be, together and
	// each: of larger ones it is the records that take the time.
	tailMean    = 8 << 10
	tailLargest = 16 << 10
)

// tailRow is a batch in the tail, as its partition remembers it.
type tailRow struct {
	born   uint64
	number uint32
	base   int64
}

// tail is what the committer knows of the tail.
type tail struct {
	from int // how many partitions a group must touch
	tailEnd
	parts []*partition // that have rows in it
	// damage is why nobody can say what has been in it. It is set before the engine starts,
	// and then nothing is written to the tail or moved.
	damage error
}

// tailEnd says how much is in the tail.
type tailEnd struct {
	born  uint64 // the id of the transaction that made it
	rows  uint32
	bytes int64
}

// writeGroup writes what is staged in one transaction, where it belongs or to the tail.
func (s *Store) writeGroup(g *group) error {
	t := &s.tail
	into, settle := t.plan(g)
	write, end := s.updateBeside, t.tailEnd
	if settle {
		write, end = s.update, tailEnd{}
	}
	err := write(func(tx *bbolt.Tx) error {
		if !into {
			return putGroup(tx, g)
		}
		if err := end.put(tx, g); err != nil {
			return err
		}
		return putMarks(tx, g)
	})
	if err == nil && into {
		t.publish(g, end)
	}
	return err
}

// plan decides whether a group is written to the tail, and whether that is settled first.
func (t *tail) plan(g *group) (into, settle bool) {
	many := len(g.parts) >= t.from
	if !many && t.rows == 0 || t.damage != nil || len(g.batches) == 0 {
		return false, false
	}
	// What is in the tail of a partition must stay its newest.
	touched := t.rows > 0 && slices.ContainsFunc(g.parts, func(p *partition) bool { return len(p.tail) > 0 })
	switch {
	case !many && !touched:
		return false, false
	case !g.small():
		return false, touched
	case int(t.rows)+len(g.batches) <= tailRows && t.bytes+g.bytes <= tailBytes:
		return true, false
	}
	return many && len(g.batches) <= tailRows && g.bytes <= tailBytes, t.rows > 0
}

// small reports whether the batches of a group are small enough for the tail.
func (g *group) small() bool {
	if g.bytes > int64(len(g.batches))*tailMean {
		return false
	}
	return !slices.ContainsFunc(g.batches, func(b stagedBatch) bool { return len(b.r.batch.Bytes) > tailLargest })
}

// put writes the staged batches behind what is in the tail.
func (e *tailEnd) put(tx *bbolt.Tx, g *group) error {
	b := tx.Bucket(bucketTail)
	if b == nil {
		var err error
		if b, err = tx.CreateBucket(bucketTail); err != nil {
			return err
		}
		e.born = uint64(tx.ID()) // a row of an earlier tail, on a page of old, is known by it
	}
	b.FillPercent = 1 // nothing will ever come in between
	g.keys = slices.Grow(g.keys[:0], int(g.bytes)+192*len(g.batches))
	for i := range g.batches {
		sb := &g.batches[i]
		e.rows++
		row := tailRow{born: e.born, number: e.rows, base: sb.base}
		var key, value []byte
		g.keys, key, value = row.append(g.keys, sb)
		if err := b.Put(key, value); err != nil {
			return err
		}
		e.bytes += int64(len(value))
	}
	return b.SetSequence(uint64(e.rows)) // so that rows missing at the end are missed
}

// append appends the key and the value of a row to buf, and some bytes more.
func (r *tailRow) append(buf []byte, sb *stagedBatch) (grown, key, value []byte) {
	at := len(buf)
	buf = appendOffsetKey(buf, sb.r.p.uid, sb.base)
	h := sb.header()
	buf = appendHeader(buf, &h)
	header := buf[at+offsetKeyLen:]
	at = len(buf)
	buf = r.appendKey(buf, sb.r.p.uid)
	end := len(buf)
	buf = binary.AppendUvarint(buf, uint64(len(header)))
	buf = append(append(buf, header...), sb.r.batch.Bytes...)
	return buf, buf[at:end:end], buf[end:len(buf):len(buf)]
}

func (sb *stagedBatch) header() header {
	r := sb.r
	return header{
		count: r.batch.Count, bytes: int64(len(r.batch.Bytes)), appendedAt: sb.at,
		crc: batch.CRC(r.batch.Bytes), idempotent: r.idempotent, producer: r.producer, digest: r.batch.Digest,
	}
}

func (r *tailRow) appendKey(buf []byte, uid uint64) []byte {
	at := len(buf)
	buf = binary.BigEndian.AppendUint64(buf, r.born)
	buf = binary.BigEndian.AppendUint32(buf, r.number)
	buf = appendOffsetKey(buf, uid, r.base)
	return binary.BigEndian.AppendUint32(buf, sum(buf[at:], nil))
}

var errTailKey = errors.New("a key in it is damaged")

// decodeTailKey reads a key. It has a checksum of its own: whose newest batch a row is must
// be known even if nothing else of it can be read.
func decodeTailKey(k []byte) (uid uint64, r tailRow, err error) {
	if len(k) != tailKeyLen || sum(k[:tailSumAt], nil) != binary.BigEndian.Uint32(k[tailSumAt:]) {
		return 0, tailRow{}, errTailKey
	}
	place := tailPlace(k)
	return uidOf(place), tailRow{
		born:   binary.BigEndian.Uint64(k),
		number: binary.BigEndian.Uint32(k[tailNumberAt:]),
		base:   offsetOf(place),
	}, nil
}

// tailPlace is the part of a key that will be the key of the batch in the trees.
func tailPlace(k []byte) []byte { return k[tailPlaceAt:tailSumAt:tailSumAt] }

// splitTail takes a value apart into header and batch. Of one that is damaged nothing is
// left out: what is moved stays as damaged as it was.
func splitTail(v []byte) (header, body []byte) {
	n, used := binary.Uvarint(v)
	if used <= 0 || n > uint64(len(v)-used) {
		return nil, v
	}
	end := used + int(n)
	return v[used:end:end], v[end:]
}

// walkTail shows every row of the tail to each. It fails where one is missing, or in the
// place of another: then nobody can say whose newest batches have been lost.
func walkTail(b *bbolt.Bucket, each func(uid uint64, r tailRow, v []byte)) (tailEnd, error) {
	var end tailEnd
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		uid, row, err := decodeTailKey(k)
		if err != nil {
			return end, err
		}
		if end.rows == 0 {
			end.born = row.born
		}
		end.rows++
		end.bytes += int64(len(v))
		if row.born != end.born || row.number != end.rows {
			return end, fmt.Errorf("in the place of row %d is another", end.rows)
		}
		each(uid, row, v)
	}
	if n := b.Sequence(); n != uint64(end.rows) {
		return end, fmt.Errorf("it has %d rows and should have %d", end.rows, n)
	}
	return end, nil
}

// settleTail moves what is in the tail to the trees, in their order, as it is.
func settleTail(tx *bbolt.Tx) error {
	b := tx.Bucket(bucketTail)
	if b == nil {
		return nil
	}
	type row struct{ place, header, body []byte }
	var rows []row
	_, err := walkTail(b, func(uid uint64, r tailRow, v []byte) {
		header, body := splitTail(v)
		rows = append(rows, row{offsetKey(uid, r.base), header, body})
	})
	if err != nil {
		return fmt.Errorf("tail of the log: %w", err)
	}
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(a.place, b.place) })
	batches, headers := tx.Bucket(bucketBatches), tx.Bucket(bucketHeaders)
	batches.FillPercent, headers.FillPercent = fillPercent, fillPercent
	for _, r := range rows {
		// Of a partition that is out of service there may be something: it stays.
		if headers.Get(r.place) != nil || batches.Get(r.place) != nil {
			continue
		}
		if err := headers.Put(r.place, r.header); err != nil {
			return err
		}
		if err := putBatch(batches, r.place, r.body); err != nil {
			return err
		}
	}
	return tx.DeleteBucket(bucketTail)
}

// update runs a write transaction, and settles the tail in it first. It must be called on
// the committer, or where there is none.
//
// An error of fn itself may make bbolt read the whole tree to find the free pages again
// (see freelist.go), so fn should fail only where nothing else is left.
func (s *Store) update(fn func(tx *bbolt.Tx) error) error {
	if s.tail.rows == 0 {
		return s.commit(fn, false)
	}
	err := s.commit(func(tx *bbolt.Tx) error {
		if err := settleTail(tx); err != nil {
			return err
		}
		return fn(tx)
	}, false)
	if err == nil {
		s.tail.settled()
	}
	return err
}

// nothing is for a transaction that does nothing of its own.
func nothing(*bbolt.Tx) error { return nil }

// updateBeside is update for what does not care where batches lie: expiries, which come all
// the time, what makes room, which there must be no need of room for, and appends that go on
// in the tail or have nothing to do with it.
func (s *Store) updateBeside(fn func(tx *bbolt.Tx) error) error { return s.commit(fn, false) }

// settled notes that the rows are in the trees. Whoever reads with a list of before finds
// them there, or still in the tail, as his transaction is older.
func (t *tail) settled() {
	for i, p := range t.parts {
		p.mu.Lock()
		p.tail = nil // not used again: readers have it
		p.mu.Unlock()
		t.parts[i] = nil
	}
	t.parts, t.tailEnd = t.parts[:0], tailEnd{}
}

// publish lists the rows of a group with their partitions. They lie above the high
// watermark, so nobody sees them yet.
func (t *tail) publish(g *group, end tailEnd) {
	number := end.rows - uint32(len(g.batches))
	for i := range g.batches {
		b := &g.batches[i]
		number++
		t.list(b.r.p, tailRow{born: end.born, number: number, base: b.base})
	}
	t.tailEnd = end
}

func (t *tail) list(p *partition, r tailRow) {
	if len(p.tail) == 0 {
		t.parts = append(t.parts, p)
	}
	p.mu.Lock()
	p.tail = append(p.tail, r)
	p.mu.Unlock()
}
