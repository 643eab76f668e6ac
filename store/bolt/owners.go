package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store/sequence"
)

// bucketOwners says whom blocks of producer ids belong to: first id → row. It is made
// with the first owner, so that a file from before there were owners opens, and one
// without access control looks as ever.
var bucketOwners = []byte("owners")

// nobody is the owner of a block whose row is damaged. No principal has that name.
const nobody = "\x00"

const ownerVersion = 1

var errOwner = errors.New("damaged row of an owner")

// ownerKey is where the row of a block is.
func ownerKey(start int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(start)) }

// encodeOwner encodes a block: version, the end of the block and the first id that may
// not have been given away as varints, and the owner; sealed, for a flipped bit must not
// give a producer to somebody else.
func encodeOwner(b *pidBlock, next int64) []byte {
	v := binary.AppendUvarint([]byte{ownerVersion}, uint64(b.end))
	v = binary.AppendUvarint(v, uint64(next))
	v = append(v, b.owner...)
	return seal(ownerKey(b.start), v)
}

func decodeOwner(key, v []byte) (*pidBlock, error) {
	body, err := unseal(key, v)
	if err != nil || len(key) != 8 || len(body) < 3 || body[0] != ownerVersion {
		return nil, errOwner
	}
	start := int64(binary.BigEndian.Uint64(key))
	end, n := binary.Uvarint(body[1:])
	if n <= 0 {
		return nil, errOwner
	}
	next, m := binary.Uvarint(body[1+n:])
	if m <= 0 || end > sequence.Max+1 || start < 0 || int64(next) < start || next > end {
		return nil, errOwner
	}
	b := newBlock(string(body[1+n+m:]), start, int64(end))
	b.next.Store(int64(next))
	b.idle = next < end
	return b, nil
}

// putReserved writes blocks as given away to the end, and the new mark. A block that
// nobody owns has a row only while it is left over from a shutdown.
func putReserved(tx *bbolt.Tx, blocks []*pidBlock, mark int64) error {
	for _, b := range blocks {
		if b.owner == "" && !b.idle {
			continue
		}
		rows, err := tx.CreateBucketIfNotExists(bucketOwners)
		if err != nil {
			return err
		}
		if b.owner == "" {
			err = rows.Delete(ownerKey(b.start))
		} else {
			err = rows.Put(ownerKey(b.start), encodeOwner(b, b.end))
		}
		if err != nil {
			return err
		}
	}
	return putPIDMark(tx, mark)
}

// putLeft writes what a clean shutdown leaves.
func putLeft(tx *bbolt.Tx, left []*pidBlock, mark int64) error {
	for _, b := range left {
		rows, err := tx.CreateBucketIfNotExists(bucketOwners)
		if err != nil {
			return err
		}
		if err := rows.Put(ownerKey(b.start), encodeOwner(b, b.next.Load())); err != nil {
			return err
		}
	}
	return putPIDMark(tx, mark)
}

func putPIDMark(tx *bbolt.Tx, mark int64) error {
	return putNumber(tx.Bucket(bucketMeta), keyPIDMark, uint64(mark))
}

// pidMark is the first id that is not reserved.
func pidMark(tx *bbolt.Tx) (int64, error) {
	n, err := readNumber(tx.Bucket(bucketMeta), keyPIDMark)
	if err != nil || n > sequence.Max+1 {
		return 0, fmt.Errorf("mark of producer ids: %w", errRow)
	}
	return int64(n), nil
}

// recoverPIDs loads the mark and the owners. A damaged row keeps its ids from everybody
// and the rest of the store in use. With a damaged mark all ids count as issued, so that
// producers that have one go on and no id is given away twice.
func (s *Store) recoverPIDs(tx *bbolt.Tx) {
	mark, err := pidMark(tx)
	if err != nil {
		s.log.Error("which producer ids have been issued cannot be read, no more are", slog.Any("error", err))
		mark = sequence.Max + 1
	}
	var blocks []*pidBlock
	if rows := tx.Bucket(bucketOwners); rows != nil {
		c := rows.Cursor()
		for k, v := c.First(); k != nil; {
			b, err := decodeOwner(k, v)
			key := k
			k, v = c.Next()
			if err != nil {
				if b = damagedBlock(key, k, mark); b == nil {
					continue
				}
				s.log.Error("whom producer ids belong to cannot be read, nobody may use them",
					slog.Int64("from", b.start), slog.Int64("below", b.end), slog.Any("error", err))
			}
			blocks = append(blocks, b)
		}
	}
	s.pids.recovered(mark, blocks)
}

// damagedBlock is the most that the block of a damaged row can be: up to the next row,
// or to the mark.
func damagedBlock(key, next []byte, mark int64) *pidBlock {
	if len(key) != 8 {
		return nil
	}
	start, end := int64(binary.BigEndian.Uint64(key)), mark
	if len(next) == 8 {
		end = int64(binary.BigEndian.Uint64(next))
	}
	if start < 0 || start >= end {
		return nil
	}
	b := newBlock(nobody, start, end)
	b.next.Store(end)
	return b
}

// owners checks that blocks of ids do not overlap, lie below the mark, and can be read.
func (c *checker) owners(tx *bbolt.Tx) {
	mark, err := pidMark(tx)
	if err != nil {
		c.report.problem("%v", err)
	}
	rows := tx.Bucket(bucketOwners)
	if err != nil || rows == nil {
		return
	}
	last := int64(0)
	cur := rows.Cursor()
	for k, v := cur.First(); k != nil; k, v = cur.Next() {
		b, err := decodeOwner(k, v)
		switch {
		case err != nil:
			c.report.problem("owners: key %x: %v", k, err)
			continue
		case b.start < last:
			c.report.problem("owners: the block of producer ids at %d begins within the one before", b.start)
		case b.end > mark:
			c.report.problem("owners: the block of producer ids at %d goes beyond the mark %d", b.start, mark)
		case b.owner == "" && !b.idle:
			c.report.problem("owners: the block of producer ids at %d has no owner and needs no row", b.start)
		}
		last = b.end
	}
}
