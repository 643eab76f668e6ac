package sequence

import (
	"encoding/binary"
	"errors"
)

// ErrEncoding means that bytes are not the encoding of a [State].
var ErrEncoding = errors.New("sequence: not an encoded state")

// encodingVersion is the first byte of every encoded state.
const encodingVersion = 1

const (
	flagExpired = 1 << 0
	flagsKnown  = flagExpired
)

// AppendBinary appends the encoding of s to b: a version byte, a flag byte, then
// unsigned varints and digests. A tombstone is its epoch, next sequence and expiry
// time; a live state its epoch, next sequence, the number of remembered batches and
// for each, oldest first, base offset, arrival time, count and digest. Each state
// has exactly one encoding. A state that does not exist has none and must not be
// passed.
func (s *State) AppendBinary(b []byte) ([]byte, error) {
	if !s.exists {
		return b, errors.New("sequence: nothing to encode")
	}
	if s.expired {
		b = append(b, encodingVersion, flagExpired)
		b = binary.AppendUvarint(b, uint64(s.epoch))
		b = binary.AppendUvarint(b, uint64(s.next))
		return binary.AppendUvarint(b, uint64(s.times[0])), nil
	}
	b = append(b, encodingVersion, 0)
	b = binary.AppendUvarint(b, uint64(s.epoch))
	b = binary.AppendUvarint(b, uint64(s.next))
	b = append(b, s.n)
	for i := range int(s.n) {
		b = binary.AppendUvarint(b, uint64(s.offsets[i]))
		b = binary.AppendUvarint(b, uint64(s.times[i]))
		b = binary.AppendUvarint(b, uint64(s.counts[i]))
		b = append(b, s.digests[i][:]...)
	}
	return b, nil
}

// DecodeState reads one state from the front of b and returns the rest. It accepts
// exactly what [State.AppendBinary] writes and fails with [ErrEncoding] otherwise.
func DecodeState(b []byte) (State, []byte, error) {
	if len(b) < 2 || b[0] != encodingVersion || b[1]&^flagsKnown != 0 {
		return State{}, nil, ErrEncoding
	}
	r := reader{rest: b[2:]}
	s := State{exists: true, expired: b[1]&flagExpired != 0}
	s.epoch = r.uvarint(Max)
	s.next = r.uvarint(Max + 1)
	if s.expired {
		s.times[0] = r.uvarint(Max)
	} else {
		r.window(&s)
	}
	if r.err != nil {
		return State{}, nil, r.err
	}
	return s, r.rest, nil
}

// reader takes fields from the front of a byte slice and remembers the first fault.
type reader struct {
	rest []byte
	err  error
}

// window reads the remembered batches of a live state.
func (r *reader) window(s *State) {
	s.n = r.byte()
	if s.n == 0 || s.n > Window {
		r.err = ErrEncoding
		return
	}
	for i := range int(s.n) {
		s.offsets[i] = r.uvarint(Max)
		s.times[i] = r.uvarint(Max)
		s.counts[i] = int32(r.uvarint(1<<31 - 1))
		r.copy(s.digests[i][:])
		if s.counts[i] == 0 {
			r.err = ErrEncoding
		}
	}
	if r.err == nil && s.FirstSeq() < 0 {
		r.err = ErrEncoding
	}
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.err = ErrEncoding
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

// uvarint reads a varint of the shortest form that is at most limit.
func (r *reader) uvarint(limit uint64) int64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > limit || (n > 1 && r.rest[n-1] == 0) {
		r.err = ErrEncoding
		r.rest = nil
		return 0
	}
	r.rest = r.rest[n:]
	return int64(v)
}

func (r *reader) copy(dst []byte) {
	if len(r.rest) < len(dst) {
		r.err = ErrEncoding
		r.rest = nil
		return
	}
	copy(dst, r.rest)
	r.rest = r.rest[len(dst):]
}
