package sequence_test

import (
	"fmt"

	"github.com/oncelog/oncelog/store/sequence"
)

// twin is the rule once more, written from the table of outcomes in the HTTP contract
// and kept as dumb as can be: it forgets nothing, so it looks things up where package
// sequence reckons.
type twin struct {
	stored  []stored // every batch of the producer, oldest first
	expired bool     // since the last of them
	at      int64    // when it expired
}

type stored struct {
	epoch       int64
	first, last int64
	digest      sequence.Digest
	offset      int64
	at          int64
}

// current lists the batches of the current epoch.
func (w *twin) current() []stored {
	n := len(w.stored)
	from := n
	for from > 0 && w.stored[from-1].epoch == w.stored[n-1].epoch {
		from--
	}
	return w.stored[from:]
}

// remembered lists those of the current epoch that the contract calls remembered.
func (w *twin) remembered() []stored {
	mine := w.current()
	if w.expired {
		return nil
	}
	return mine[max(0, len(mine)-5):]
}

func (w *twin) judge(a sequence.Attempt) sequence.Verdict {
	first, last := a.BaseSeq, a.BaseSeq+int64(a.Count)-1
	anew := func() sequence.Verdict {
		if first == 0 {
			return sequence.Verdict{Kind: sequence.Append}
		}
		return sequence.Verdict{Kind: sequence.OutOfOrder}
	}
	if len(w.stored) == 0 {
		return anew() // "a producer new to this partition with baseSeq ≠ 0" is out of order
	}
	newest := w.stored[len(w.stored)-1]
	if w.expired {
		if a.Epoch > newest.epoch {
			return anew()
		}
		return sequence.Verdict{Kind: sequence.Expired}
	}
	if a.Epoch < newest.epoch {
		return sequence.Verdict{Kind: sequence.Fenced}
	}
	if a.Epoch > newest.epoch {
		return anew()
	}
	next := newest.last + 1
	if first == next {
		return sequence.Verdict{Kind: sequence.Append, Expected: next}
	}
	if first > next {
		return sequence.Verdict{Kind: sequence.OutOfOrder, Expected: next}
	}
	for _, b := range w.remembered() {
		if b.first == first && b.last == last && b.digest == a.Digest {
			return sequence.Verdict{Kind: sequence.Duplicate, Original: b.original()}
		}
		if b.first == first && b.last == last {
			return sequence.Verdict{Kind: sequence.Reused, Original: b.original()}
		}
	}
	if first < w.remembered()[0].first && last < next {
		return sequence.Verdict{Kind: sequence.Forgotten}
	}
	return sequence.Verdict{Kind: sequence.Overlap, Expected: next}
}

func (b stored) original() sequence.Remembered {
	return sequence.Remembered{
		BaseSeq: b.first, LastSeq: b.last,
		BaseOffset: b.offset, LastOffset: b.offset + b.last - b.first,
		AppendedAt: b.at, Digest: b.digest,
	}
}

// store notes a batch. It copies the list, so that histories may branch.
func (w *twin) store(a sequence.Attempt, offset, at int64) twin {
	b := stored{a.Epoch, a.BaseSeq, a.BaseSeq + int64(a.Count) - 1, a.Digest, offset, at}
	return twin{stored: append(append([]stored(nil), w.stored...), b)}
}

func (w *twin) expire(at int64) twin {
	if len(w.stored) == 0 {
		return *w
	}
	return twin{stored: w.stored, expired: true, at: at}
}

// differs says in what s is not the state after the twin's history, "" for nothing.
func (w *twin) differs(s *sequence.State) string {
	at, expired := s.Expired()
	known := len(w.stored) > 0
	switch {
	case s.Exists() != known, s.Live() != (known && !w.expired), expired != w.expired, at != w.at:
		return fmt.Sprintf("exists %v, live %v, expired %v at %d", s.Exists(), s.Live(), expired, at)
	case !known:
		if *s != (sequence.State{}) {
			return "a state of nothing that is not zero"
		}
		return ""
	}
	newest := w.stored[len(w.stored)-1]
	if s.Epoch() != newest.epoch || s.LastSeq() != newest.last || s.NextSeq() != newest.last+1 {
		return fmt.Sprintf("epoch %d, last sequence %d, next %d", s.Epoch(), s.LastSeq(), s.NextSeq())
	}
	want := w.remembered()
	got := s.Recent()
	if len(got) != len(want) {
		return fmt.Sprintf("%d remembered batches, not %d", len(got), len(want))
	}
	first, lastOffset, lastAt, largest := s.NextSeq(), int64(-1), int64(0), int32(0)
	for i, b := range want {
		if got[i] != b.original() || got[i].Count() != int32(b.last-b.first+1) {
			return fmt.Sprintf("remembered batch %d is %+v, not %+v", i, got[i], b.original())
		}
		first = want[0].first
		lastOffset, lastAt, largest = b.original().LastOffset, b.at, max(largest, got[i].Count())
	}
	if s.FirstSeq() != first || s.LastOffset() != lastOffset || s.LastTimestamp() != lastAt || s.LargestBatch() != largest {
		return fmt.Sprintf("first sequence %d, last offset %d, last time %d, largest batch %d",
			s.FirstSeq(), s.LastOffset(), s.LastTimestamp(), s.LargestBatch())
	}
	return ""
}

// invariant says what is wrong with a state whatever its history, "" for nothing.
func invariant(s *sequence.State) string {
	recent := s.Recent()
	if len(recent) > sequence.Window {
		return fmt.Sprintf("%d batches in the window", len(recent))
	}
	if s.Live() != (len(recent) > 0) {
		return fmt.Sprintf("live is %v with %d batches", s.Live(), len(recent))
	}
	next := s.FirstSeq()
	for _, b := range recent {
		if b.BaseSeq != next || b.LastSeq < b.BaseSeq || b.LastOffset-b.BaseOffset != b.LastSeq-b.BaseSeq {
			return fmt.Sprintf("batch %+v does not go on at %d", b, next)
		}
		next = b.LastSeq + 1
	}
	if next != s.NextSeq() {
		return fmt.Sprintf("the window ends below %d, next is %d", next, s.NextSeq())
	}
	return ""
}
