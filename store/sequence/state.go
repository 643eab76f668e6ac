package sequence

// State is what a partition knows of one producer. The zero value knows nothing.
// States are values: compare them with ==, copy them freely.
type State struct {
	epoch     int64
	next      int64 // the sequence expected next; the window ends just below it
	expiredAt int64 // milliseconds since 1970; meaningful when expired
	n         uint8 // batches in window
	exists    bool
	expired   bool // a tombstone: epoch, next and expiredAt are all that is left
	window    [Window]slot
}

// slot is one remembered batch, oldest first in the window. Sequences within an
// epoch are contiguous, so a slot needs no base sequence: it follows from next and
// the counts of the slots after it.
type slot struct {
	baseOffset int64
	appendedAt int64
	count      int32
	digest     Digest
}

// Remembered is a batch in the window of a [State].
type Remembered struct {
	BaseSeq    int64
	LastSeq    int64
	BaseOffset int64
	LastOffset int64
	AppendedAt int64 // arrival, milliseconds since 1970
	Digest     Digest
}

// Count is the number of records of the batch.
func (r Remembered) Count() int32 { return int32(r.LastSeq - r.BaseSeq + 1) }

func (b *slot) remembered(baseSeq int64) Remembered {
	return Remembered{
		BaseSeq:    baseSeq,
		LastSeq:    baseSeq + int64(b.count) - 1,
		BaseOffset: b.baseOffset,
		LastOffset: b.baseOffset + int64(b.count) - 1,
		AppendedAt: b.appendedAt,
		Digest:     b.digest,
	}
}

// Exists reports whether anything is known of the producer, be it a tombstone.
func (s *State) Exists() bool { return s.exists }

// Live reports whether the producer is known and not expired.
func (s *State) Live() bool { return s.exists && !s.expired }

// Expired reports whether the state is a tombstone, and since when (milliseconds
// since 1970).
func (s *State) Expired() (at int64, ok bool) { return s.expiredAt, s.expired }

// Epoch is the producer's current epoch, or the last one of a tombstone.
func (s *State) Epoch() int64 { return s.epoch }

// NextSeq is the sequence that the current epoch must go on with.
func (s *State) NextSeq() int64 { return s.next }

// LastSeq is the last stored sequence of the current epoch, −1 when nothing is known.
func (s *State) LastSeq() int64 { return s.next - 1 }

// FirstSeq is the base sequence of the oldest remembered batch, NextSeq when there
// is none.
func (s *State) FirstSeq() int64 {
	first := s.next
	for i := range int(s.n) {
		first -= int64(s.window[i].count)
	}
	return first
}

// LastOffset is the offset of the producer's newest record, −1 when none is remembered.
func (s *State) LastOffset() int64 {
	if s.n == 0 {
		return -1
	}
	b := &s.window[s.n-1]
	return b.baseOffset + int64(b.count) - 1
}

// LastTimestamp is when the producer's newest batch arrived, in milliseconds since
// 1970, 0 when none is remembered.
func (s *State) LastTimestamp() int64 {
	if s.n == 0 {
		return 0
	}
	return s.window[s.n-1].appendedAt
}

// LargestBatch is the record count of the largest remembered batch, 0 when there is none.
func (s *State) LargestBatch() int32 {
	var largest int32
	for i := range int(s.n) {
		largest = max(largest, s.window[i].count)
	}
	return largest
}

// Recent lists the remembered batches, oldest first.
func (s *State) Recent() []Remembered {
	out := make([]Remembered, s.n)
	base := s.next
	for i := int(s.n) - 1; i >= 0; i-- {
		base -= int64(s.window[i].count)
		out[i] = s.window[i].remembered(base)
	}
	return out
}

// Apply gives the state after a was stored at baseOffset, having arrived at the
// given time (milliseconds since 1970). It does not judge: an engine calls it after
// [Check] said Append, and recovery calls it for whatever the log holds, for a
// replay that validates gets stuck where the live path did not (KAFKA-6003).
func (s *State) Apply(a Attempt, baseOffset, at int64) State {
	next := *s
	if !s.exists || s.expired || a.Epoch != s.epoch || a.BaseSeq != s.next {
		next = State{exists: true, epoch: a.Epoch}
	}
	if next.n == Window {
		copy(next.window[:], next.window[1:])
		next.n--
	}
	next.window[next.n] = slot{baseOffset: baseOffset, appendedAt: at, count: a.Count, digest: a.Digest}
	next.n++
	next.next = a.BaseSeq + int64(a.Count)
	return next
}

// Expire gives the tombstone that is left of the producer when its state expires at
// the given time (milliseconds since 1970). Nothing known stays nothing known.
func (s *State) Expire(at int64) State {
	if !s.exists {
		return State{}
	}
	return State{exists: true, expired: true, epoch: s.epoch, next: s.next, expiredAt: at}
}
