package bolt

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"

	"go.etcd.io/bbolt"
)

// bbolt's pages have no checksums, so every row brings its own: a CRC32C of its key and
// its value behind the value. The key is in it because a flipped bit there would put the
// row somewhere else, where it looks as good as any.

const sumLen = 4

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errRow     = errors.New("damaged row")
)

func sum(key, v []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, v)
}

// seal appends the checksum of key and v to v.
func seal(key, v []byte) []byte { return binary.BigEndian.AppendUint32(v, sum(key, v)) }

// unseal checks a value that was sealed and returns it without its checksum.
func unseal(key, v []byte) ([]byte, error) {
	n := len(v) - sumLen
	if n < 0 || sum(key, v[:n]) != binary.BigEndian.Uint32(v[n:]) {
		return nil, errRow
	}
	return v[:n], nil
}

// putRow writes a row as sealed JSON.
func putRow(b *bbolt.Bucket, key []byte, row any) error {
	v, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return b.Put(key, seal(key, v))
}

// readRow decodes what putRow wrote.
func readRow(key, v []byte, row any) error {
	text, err := unseal(key, v)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, row)
}

// putNumber writes a number.
func putNumber(b *bbolt.Bucket, key []byte, n uint64) error {
	return b.Put(key, seal(key, binary.BigEndian.AppendUint64(nil, n)))
}

// readNumber reads what putNumber wrote, 0 if nothing.
func readNumber(b *bbolt.Bucket, key []byte) (uint64, error) {
	v := b.Get(key)
	if v == nil {
		return 0, nil
	}
	v, err := unseal(key, v)
	if err != nil || len(v) != 8 {
		return 0, errRow
	}
	return binary.BigEndian.Uint64(v), nil
}
