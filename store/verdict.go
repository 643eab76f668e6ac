package store

import (
	"fmt"
	"time"

	"github.com/oncelog/oncelog/store/sequence"
)

// Attempt is what the append rule judges of an idempotent append.
func (a *Append) Attempt() sequence.Attempt {
	return sequence.Attempt{
		Epoch:   a.Producer.Epoch,
		BaseSeq: a.Producer.BaseSeq,
		Count:   a.Batch.Count,
		Digest:  a.Batch.Digest,
	}
}

// DuplicateAck is the answer to an append that the rule found to be stored already:
// for sequence.Duplicate that of the first time, for sequence.Forgotten one without
// offsets.
func DuplicateAck(v sequence.Verdict, a sequence.Attempt) Ack {
	ack := Ack{BaseOffset: -1, LastOffset: -1, NextSeq: a.LastSeq() + 1, Duplicate: true}
	if v.Kind == sequence.Duplicate {
		ack.BaseOffset = v.Original.BaseOffset
		ack.LastOffset = v.Original.LastOffset
		ack.AppendedAt = time.UnixMilli(v.Original.AppendedAt).UTC()
	}
	return ack
}

// Refusal is the error for an attempt that the rule refused in state s.
func Refusal(s *sequence.State, v sequence.Verdict, a sequence.Attempt) *Error {
	d := &SequenceError{ExpectedSeq: v.Expected, ReceivedSeq: a.BaseSeq}
	known := s.Exists() && s.NextSeq() > 0 // not a tombstone that stands for many
	if known {
		last, epoch := s.LastSeq(), s.Epoch()
		d.LastSeq, d.CurrentEpoch = &last, &epoch
	}
	e := &Error{Sequence: d}
	switch v.Kind {
	case sequence.Reused:
		d.OriginalOffset = v.Original.BaseOffset
		e.Code = CodeSequenceReused
		e.Detail = fmt.Sprintf("sequences %d to %d are stored at offset %d with another payload; never use a sequence twice",
			a.BaseSeq, a.LastSeq(), v.Original.BaseOffset)
	case sequence.Overlap:
		e.Code = CodeSequenceOverlap
		e.Detail = fmt.Sprintf("sequences %d to %d cover stored ones without being a stored batch; the next new one is %d",
			a.BaseSeq, a.LastSeq(), v.Expected)
	case sequence.Fenced:
		e.Code = CodeProducerFenced
		e.Detail = fmt.Sprintf("epoch %d has been replaced by epoch %d", a.Epoch, s.Epoch())
	case sequence.Expired:
		at, _ := s.Expired()
		d.ExpiredAt, d.LastEpoch = time.UnixMilli(at).UTC(), s.Epoch()
		e.Code = CodeProducerExpired
		e.Detail = fmt.Sprintf("the producer's state expired after sequence %d of epoch %d; go on with a higher epoch and sequence 0",
			s.LastSeq(), s.Epoch())
		if !known {
			e.Detail = fmt.Sprintf("nothing is known any more of what old producers like this one stored here; go on with an epoch above %d and sequence 0",
				s.Epoch())
		}
	case sequence.OutOfOrder:
		e.Code = CodeOutOfOrderSequence
		e.Detail = fmt.Sprintf("base sequence %d is %d ahead of the expected %d; send what is missing first",
			a.BaseSeq, a.BaseSeq-v.Expected, v.Expected)
		if known && a.Epoch > s.Epoch() {
			e.Detail = fmt.Sprintf("epoch %d is new here and begins at sequence 0, not %d", a.Epoch, a.BaseSeq)
		}
	default:
		e.Code = CodeInternal
		e.Err = fmt.Errorf("verdict %v is no refusal", v.Kind)
	}
	return e
}

// NoState is the answer to a look at a producer that has no live state in a partition. s is
// what is left of it: nothing, or a tombstone, and then the error has its sequence part.
func NoState(p Partition, pid int64, s *sequence.State) *Error {
	e := Errorf(CodeUnknownProducerID, "producer %d has no state in topic %q partition %d", pid, p.Topic, p.Number)
	at, expired := s.Expired()
	if !expired {
		return e
	}
	d := &SequenceError{ExpiredAt: time.UnixMilli(at).UTC(), LastEpoch: s.Epoch()}
	e.Detail += fmt.Sprintf(", for it expired at %s", d.ExpiredAt.Format("2006-01-02T15:04:05.000Z"))
	if s.NextSeq() > 0 { // not a tombstone that stands for many
		last := s.LastSeq()
		d.LastSeq = &last
	}
	e.Sequence = d
	return e
}
