package bolt

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store/sequence"
)

// In files of format 1, which the first version wrote, rows were bare: numbers and JSON
// without a checksum, marks too, and the checksum of a batch header left out its key. Such
// a file is brought to the present format when it is opened, some rows a transaction.
// What ends it in between does no harm: the format is written last, and rows that are
// sealed already are passed over.

// formatBare is the number of that format. In files of formatWhole each batch is one row,
// however large, which this version reads as well: only their number changes.
const (
	formatBare  = 1
	formatWhole = 2
)

// upgradeRows is how many rows one transaction of an upgrade rewrites.
const upgradeRows = 16 << 10

// upgrade brings a file of formatBare to the present format.
func upgrade(db *bbolt.DB, log *slog.Logger) error {
	log.Info("bringing the store to a newer format, older versions of oncelog will not open it any more",
		slog.Int("from", formatBare), slog.Int("to", format))
	for _, b := range bareBuckets() {
		if err := upgradeBucket(db, b.bucket, b.seal); err != nil {
			return fmt.Errorf("upgrade of bucket %q: %w", b.bucket, err)
		}
	}
	return db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		for _, key := range [][]byte{keyPIDMark, keyNextUID} {
			v := bytes.Clone(meta.Get(key))
			if len(v) != 8 {
				continue // not there yet
			}
			if err := meta.Put(key, seal(key, v)); err != nil {
				return err
			}
		}
		return putFormat(tx)
	})
}

// bareBucket is a bucket whose rows were bare, and how to seal one.
type bareBucket struct {
	bucket []byte
	seal   func(k, v []byte) ([]byte, error)
}

func bareBuckets() []bareBucket {
	return []bareBucket{
		{bucketTopics, sealText},
		{bucketParts, sealText},
		{bucketSegments, sealText},
		{bucketSnapshots, sealText},
		{bucketMarks, sealMark},
		{bucketHeaders, sealHeader},
	}
}

// upgradeBucket gives each row of a bucket the value that convert makes of it.
func upgradeBucket(db *bbolt.DB, bucket []byte, convert func(k, v []byte) ([]byte, error)) error {
	var after []byte // the last key that is done
	for more := true; more; {
		err := db.Update(func(tx *bbolt.Tx) (err error) {
			after, more, err = upgradeSlice(tx.Bucket(bucket), after, upgradeRows, convert)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// upgradeSlice does the rows behind a key, at most limit of them.
func upgradeSlice(b *bbolt.Bucket, after []byte, limit int, convert func(k, v []byte) ([]byte, error)) (last []byte, more bool, err error) {
	type row struct{ k, v []byte }
	var rows []row // a cursor must not be used while rows change
	c := b.Cursor()
	k, v := c.Seek(after)
	if k != nil && after != nil && bytes.Equal(k, after) {
		k, v = c.Next()
	}
	last = after
	for ; k != nil; k, v = c.Next() {
		if len(rows) == limit {
			more = true
			break
		}
		sealed, err := convert(k, v)
		if err != nil {
			return nil, false, fmt.Errorf("key %x: %w", k, err)
		}
		last = bytes.Clone(k)
		rows = append(rows, row{last, sealed})
	}
	for _, r := range rows {
		if err := b.Put(r.k, r.v); err != nil {
			return nil, false, err
		}
	}
	return last, more, nil
}

// sealText seals a bare row of JSON.
func sealText(k, v []byte) ([]byte, error) {
	if _, err := unseal(k, v); err == nil {
		return bytes.Clone(v), nil
	}
	if !json.Valid(v) {
		return nil, errRow
	}
	return seal(k, bytes.Clone(v)), nil
}

// sealMark seals a bare mark.
func sealMark(k, v []byte) ([]byte, error) {
	if _, err := unseal(k, v); err == nil {
		return bytes.Clone(v), nil
	}
	rest := v
	if len(rest) == 0 || rest[0] != markExpire {
		return nil, errMark
	}
	rest = rest[1:]
	for range 2 {
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > sequence.Max {
			return nil, errMark
		}
		rest = rest[used:]
	}
	if len(rest) > 0 {
		return nil, errMark
	}
	return seal(k, bytes.Clone(v)), nil
}

// sealHeader takes the key into the checksum of a batch header. A damaged one stays as it
// is, so that it is found to be just as it would have been.
func sealHeader(k, v []byte) ([]byte, error) {
	if n := len(v) - sumLen; n > 0 && crc32.Checksum(v[:n], castagnoli) == binary.BigEndian.Uint32(v[n:]) {
		return seal(k, bytes.Clone(v[:n])), nil
	}
	return bytes.Clone(v), nil
}

// errOldFormat is why a file of formatBare cannot be read without changing it.
var errOldFormat = errors.New("the data has the format of an older version of oncelog; start the server on it once, which brings it to that of this version")
