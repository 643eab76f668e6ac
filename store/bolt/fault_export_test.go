package bolt

import "bytes"

// RecodeSnapshot decodes a snapshot and encodes it again; false: it is refused.
func RecodeSnapshot(b []byte) (again []byte, ok bool) {
	k, err := decodeSnapshot(b)
	if err != nil {
		return nil, false
	}
	again, err = encodeSnapshot(k.contents())
	if err != nil {
		panic(err)
	}
	return again, true
}

// RecodeHeader decodes the header of a batch and encodes it again.
func RecodeHeader(key, v []byte) (again []byte, ok bool) {
	h, err := decodeHeader(key, v)
	if err != nil {
		return nil, false
	}
	return appendHeader(bytes.Clone(key), &h)[len(key):], true
}

// RecodeMark decodes a mark and encodes it again.
func RecodeMark(key, v []byte) (again []byte, ok bool) {
	m, err := decodeMark(key, v)
	if err != nil {
		return nil, false
	}
	return m.encode(key), true
}

// Seal puts the checksum behind a row.
func Seal(key, v []byte) []byte { return seal(key, bytes.Clone(v)) }
