package sequence

// State is what a partition knows of one producer. The zero value knows nothing.
// States are values: compare them with ==, copy them freely.
//
// A partition may know a million producers, so the window is kept as arrays: a slice of
// structs would be padded, a slice would need memory of its own. Of the batches of an
// epoch, oldest first, no base sequences are kept: sequences are contiguous, so they
// follow from next and the counts.
type State struct {
	epoch   int64
	next    int64          // the sequence expected next; the window ends just below it
	offsets [Window]int64  // base offsets
	times   [Window]int64  // arrivals; of a tombstone the first is when it expired (ms)
	digests [Window]Digest // of the payloads
	counts  [Window]int32  // records
	n       uint8          // batches in the window
	exists  bool
	expired bool // a tombstone: epoch, next and the time are all that is left
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

// remembered is the i-th batch of the window, which begins at baseSeq.
func (s *State) remembered(i int, baseSeq int64) Remembered {
	count := int64(s.counts[i])
	return Remembered{
		BaseSeq:    baseSeq,
		LastSeq:    baseSeq + count - 1,
		BaseOffset: s.offsets[i],
		LastOffset: s.offsets[i] + count - 1,
		AppendedAt: s.times[i],
		Digest:     s.digests[i],
	}
}

// Exists reports whether anything is known of the producer, be it a tombstone.
func (s *State) Exists() bool { return s.exists }

// Live reports whether the producer is known and not expired.
func (s *State) Live() bool { return s.exists && !s.expired }

// Expired reports whether the state is a tombstone, and since when (milliseconds
// since 1970).
func (s *State) Expired() (at int64, ok bool) {
	if !s.expired {
		return 0, false
	}
	return s.times[0], true
}

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
		first -= int64(s.counts[i])
	}
	return first
}

// LastOffset is the offset of the producer's newest record, −1 when none is remembered.
func (s *State) LastOffset() int64 {
	if s.n == 0 {
		return -1
	}
	return s.offsets[s.n-1] + int64(s.counts[s.n-1]) - 1
}

// LastTimestamp is when the producer's newest batch arrived, in milliseconds since
// 1970, 0 when none is remembered.
func (s *State) LastTimestamp() int64 {
	if s.n == 0 {
		return 0
	}
	return s.times[s.n-1]
}

// LargestBatch is the record count of the largest remembered batch, 0 when there is none.
func (s *State) LargestBatch() int32 {
	var largest int32
	for i := range int(s.n) {
		largest = max(largest, s.counts[i])
	}
	return largest
}

// Recent lists the remembered batches, oldest first.
func (s *State) Recent() []Remembered {
	out := make([]Remembered, s.n)
	base := s.next
	for i := int(s.n) - 1; i >= 0; i-- {
		base -= int64(s.counts[i])
		out[i] = s.remembered(i, base)
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
		next.forgetOldest()
	}
	i := next.n
	next.offsets[i], next.times[i], next.counts[i], next.digests[i] = baseOffset, at, a.Count, a.Digest
	next.n++
	next.next = a.BaseSeq + int64(a.Count)
	return next
}

func (s *State) forgetOldest() {
	copy(s.offsets[:], s.offsets[1:])
	copy(s.times[:], s.times[1:])
	copy(s.counts[:], s.counts[1:])
	copy(s.digests[:], s.digests[1:])
	s.n--
}

// Expire gives the tombstone that is left of the producer when its state expires at
// the given time (milliseconds since 1970). Nothing known stays nothing known.
func (s *State) Expire(at int64) State {
	if !s.exists {
		return State{}
	}
	return Tombstone(s.epoch, s.next, at)
}

// Tombstone is what is left of a producer whose state expired at the given time
// (milliseconds since 1970) in that epoch, when it was expected to go on with next.
func Tombstone(epoch, next, at int64) State {
	s := State{exists: true, expired: true, epoch: epoch, next: next}
	s.times[0] = at
	return s
}
