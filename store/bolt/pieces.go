package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"go.etcd.io/bbolt"
)

// A large batch lies in several rows of its bucket, each of a piece of it: the first one
// under the batch's own key, the others under that key with their number behind it, so that
// they follow each other. bbolt puts at least two rows on a page and gives a page that they
// do not fit on as many pages in a row as they need; with values of 1 MiB those were
// hundreds, and what became free of them fitted nothing that came after: a tenth of the
// file was holes, and the list of them too long to be written with each commit.

// pieceLen is the length of all pieces but the last: two of them fill eight pages of 4 KiB.
const pieceLen = (8*4096-pageHeaderLen)/2 - pageElementLen - pieceKeyLen

const pieceKeyLen = offsetKeyLen + 4

// errPieces: rows of a batch that do not make it up.
var errPieces = errors.New("pieces of the batch are missing or do not belong together")

// putBatch writes an encoded batch under its key. bbolt keeps b until the commit.
func putBatch(batches *bbolt.Bucket, key, b []byte) error {
	if err := batches.Put(key, b[:min(len(b), pieceLen)]); err != nil || len(b) <= pieceLen {
		return err
	}
	pieceKey := make([]byte, offsetKeyLen, pieceKeyLen)
	copy(pieceKey, key)
	for n := uint32(1); ; n++ {
		b = b[pieceLen:]
		pieceKey = binary.BigEndian.AppendUint32(pieceKey[:offsetKeyLen], n)
		if err := batches.Put(pieceKey, b[:min(len(b), pieceLen)]); err != nil || len(b) <= pieceLen {
			return err
		}
	}
}

// bodies goes through the batches of a partition.
type bodies struct {
	cursor *bbolt.Cursor
	k, v   []byte // the row that comes next
}

// bodiesFrom begins at the first row at or above a key.
func bodiesFrom(tx *bbolt.Tx, key []byte) bodies {
	b := bodies{cursor: tx.Bucket(bucketBatches).Cursor()}
	b.k, b.v = b.cursor.Seek(key)
	return b
}

// next appends the batch with a key, which must come next, to to. It must be the one that
// the header describes. Of an error, what was appended is to be taken back.
func (b *bodies) next(to, key []byte, h *header) ([]byte, error) {
	at := len(to)
	to, err := b.join(slices.Grow(to, int(h.bytes)), key, h.bytes)
	if err == nil && !h.describes(to[at:]) {
		err = errPair
	}
	return to, err
}

// join is next for a batch of which only the longest length is known.
func (b *bodies) join(to, key []byte, longest int64) ([]byte, error) {
	if !bytes.Equal(b.k, key) {
		return to, errPair
	}
	at := len(to)
	to = append(to, b.v...)
	b.k, b.v = b.cursor.Next()
	for n := uint32(1); isPiece(b.k) && bytes.Equal(b.k[:offsetKeyLen], key); n++ {
		if binary.BigEndian.Uint32(b.k[offsetKeyLen:]) != n || int64(len(to)-at+len(b.v)) > longest {
			return to, errPieces
		}
		to = append(to, b.v...)
		b.k, b.v = b.cursor.Next()
	}
	return to, nil
}

func isPiece(k []byte) bool { return len(k) == pieceKeyLen }
