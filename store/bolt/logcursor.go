package bolt

import (
	"encoding/binary"
	"math"
	"sort"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

// logCursor walks the batches of one partition: those in the trees, and behind them those
// in the tail.
type logCursor struct {
	tx      *bbolt.Tx
	uid     uint64
	headers *bbolt.Cursor
	bodies  bodies // of the trees, once one has been asked for
	tail    *bbolt.Bucket
	rows    []tailRow // that lie in the tail
	at      int       // the row that comes next
	inTail  bool
	beside  []byte // the batch of the row before
}

// newLogCursor makes a cursor over headers. rows are those that lay in the tail at some
// time before tx began. They all lie there still, or else they have all been settled.
func newLogCursor(tx *bbolt.Tx, uid uint64, rows []tailRow) *logCursor {
	c := &logCursor{tx: tx, uid: uid, headers: tx.Bucket(bucketHeaders).Cursor()}
	if len(rows) == 0 {
		return c
	}
	if b := tx.Bucket(bucketTail); b != nil {
		if k, _ := b.Cursor().First(); len(k) == tailKeyLen && binary.BigEndian.Uint64(k) == rows[0].born {
			c.tail, c.rows = b, rows
		}
	}
	return c
}

// seek finds the batch that holds offset: the last one that begins at or below it. k is nil
// if there is none. At the end of the log it is the last batch.
func (c *logCursor) seek(offset int64) (k, v []byte) {
	i := sort.Search(len(c.rows), func(i int) bool { return c.rows[i].base > offset })
	if c.at = max(0, i-1); i > 0 {
		return c.row()
	}
	c.inTail, c.bodies = false, bodies{}
	return seekBatch(c.headers, c.uid, offset)
}

// seekFrom finds the first batch that begins at or above offset.
func (c *logCursor) seekFrom(offset int64) (k, v []byte) {
	c.at = sort.Search(len(c.rows), func(i int) bool { return c.rows[i].base >= offset })
	if k, v = c.headers.Seek(offsetKey(c.uid, offset)); !hasUID(k, c.uid) {
		return c.row()
	}
	c.inTail, c.bodies = false, bodies{}
	return k, v
}

// next goes on to the next batch; k is nil behind the last one.
func (c *logCursor) next() (k, v []byte) {
	if !c.inTail {
		if k, v = c.headers.Next(); hasUID(k, c.uid) {
			return k, v
		}
	}
	return c.row()
}

// row gives the row of the tail that comes next.
func (c *logCursor) row() (k, v []byte) {
	c.inTail = true
	if c.at >= len(c.rows) {
		c.beside = nil
		return nil, nil
	}
	r := &c.rows[c.at]
	c.at++
	key := r.appendKey(make([]byte, 0, tailKeyLen), c.uid)
	v, c.beside = splitTail(c.tail.Get(key))
	return tailPlace(key), v
}

// ends gives the bounds and what then lies in the tail. Read before a transaction begins,
// they tell that where all records below the high watermark are.
func (p *partition) ends() (store.Bounds, []tailRow) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.bounds(), p.tail
}

// body appends the batch that lies beside the header with a key, which is the one that the
// cursor is at. Of an error, what was appended is to be taken back.
func (c *logCursor) body(to, key []byte, h *header) ([]byte, error) {
	if !c.inTail {
		if c.bodies.cursor == nil {
			c.bodies = bodiesFrom(c.tx, key)
		}
		return c.bodies.next(to, key, h)
	}
	if !h.describes(c.beside) {
		return to, errPair
	}
	return append(to, c.beside...), nil
}

// count is how many records the batch has that the cursor is at, whose header is of no use.
func (c *logCursor) count(key []byte) (int32, error) {
	b := c.beside
	if !c.inTail {
		rows := bodiesFrom(c.tx, key)
		var err error
		if b, err = rows.join(nil, key, math.MaxInt64); err != nil {
			return 0, err
		}
	}
	parsed, err := batch.Parse(b)
	return parsed.Count, err
}
