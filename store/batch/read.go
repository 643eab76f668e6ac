package batch

import (
	"encoding/binary"
	"fmt"
)

// Reader walks the records of an encoded batch.
type Reader struct {
	d     decoder
	count int32
	at    int32
}

// NewReader checks frame and checksum of an encoded batch. Errors wrap
// [ErrMalformed] or [ErrChecksum].
func NewReader(data []byte) (*Reader, error) {
	r := &Reader{}
	if err := r.ResetVerified(data); err != nil {
		return nil, err
	}
	if checksum(data) != CRC(data) {
		return nil, ErrChecksum
	}
	return r, nil
}

// ResetVerified makes r walk another batch, whose checksum has been verified already: a
// read of an engine gives nothing else. Errors wrap [ErrMalformed].
func (r *Reader) ResetVerified(data []byte) error {
	forms, records, err := split(data)
	if err != nil {
		return err
	}
	*r = Reader{d: decoder{forms: forms, records: records, media: r.d.media}, count: int32(binary.BigEndian.Uint32(data[4:]))}
	return nil
}

// Len is the number of records of the batch.
func (r *Reader) Len() int { return int(r.count) }

// Next decodes the next record into rec, whose key and value then refer to the
// batch's bytes and whose header slice is used again. It returns false after the
// last record.
func (r *Reader) Next(rec *Record) (bool, error) {
	if r.at == r.count {
		return false, nil
	}
	if err := r.d.next(rec); err != nil {
		return false, fmt.Errorf("record %d: %w", r.at, err)
	}
	r.at++
	return true, nil
}
