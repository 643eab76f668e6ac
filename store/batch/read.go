package batch

import "fmt"

// Reader walks the records of an encoded batch.
type Reader struct {
	d     decoder
	count int32
	at    int32
}

// NewReader checks frame and checksum of an encoded batch. Errors wrap
// [ErrMalformed] or [ErrChecksum].
func NewReader(data []byte) (*Reader, error) {
	forms, records, err := split(data)
	if err != nil {
		return nil, err
	}
	count := int32(uint32(data[4])<<24 | uint32(data[5])<<16 | uint32(data[6])<<8 | uint32(data[7]))
	return &Reader{d: decoder{forms: forms, records: records}, count: count}, nil
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
