package store

import (
	"time"

	"github.com/oncelog/oncelog/store/sequence"
)

// Incident is what became of an idempotent append that was not simply stored: it had
// been stored before, it had to wait for its predecessors, or it was refused.
type Incident struct {
	// Number counts the incidents of an engine since it was opened, from 1.
	Number    int64
	At        time.Time
	Partition Partition
	Producer  ProducerSeq
	Count     int32 // records of the batch

	// Code is that of the refusal, "" for a batch that is stored.
	Code Code
	// Lasting says of CodeOutOfOrderSequence that the gap is one that requests which
	// overtake each other do not explain: records are missing.
	Lasting bool
	// ExpectedSeq is the sequence that would have been in order
	// (CodeOutOfOrderSequence, CodeSequenceOverlap), else −1.
	ExpectedSeq int64
	// CurrentEpoch is the producer's epoch in the partition, or, if it has expired, one
	// that its last one was not above; −1 when nothing is known of it.
	CurrentEpoch int64
	// Offset is where the batch is stored, or the batch whose sequences it uses again
	// (CodeSequenceReused); −1 when that is not known.
	Offset int64
	// Waited is how long the batch was held for its predecessors.
	Waited time.Duration
}

// LastSeq is the sequence of the batch's last record.
func (i *Incident) LastSeq() int64 { return i.Producer.BaseSeq + int64(i.Count) - 1 }

// Duplicate reports that the batch had been stored before.
func (i *Incident) Duplicate() bool { return i.Code == "" && i.Waited == 0 }

// IncidentOf describes an attempt that the rule, in state s, did not let append at once.
// For sequence.Append, the batch had to wait. Number, At, Lasting and Waited are left to
// the engine, and Offset for sequence.Append.
func IncidentOf(p Partition, producer ProducerSeq, count int32, s *sequence.State, v sequence.Verdict) Incident {
	i := Incident{
		Partition: p, Producer: producer, Count: count,
		ExpectedSeq: -1, CurrentEpoch: -1, Offset: -1,
	}
	if s.Exists() {
		i.CurrentEpoch = s.Epoch()
	}
	switch v.Kind {
	case sequence.Append, sequence.Forgotten:
	case sequence.Duplicate:
		i.Offset = v.Original.BaseOffset
	case sequence.Reused:
		i.Code, i.Offset = CodeSequenceReused, v.Original.BaseOffset
	case sequence.Overlap:
		i.Code, i.ExpectedSeq = CodeSequenceOverlap, v.Expected
	case sequence.OutOfOrder:
		i.Code, i.ExpectedSeq = CodeOutOfOrderSequence, v.Expected
	case sequence.Fenced:
		i.Code = CodeProducerFenced
	case sequence.Expired:
		i.Code = CodeProducerExpired
	}
	return i
}

// HeldBatch is a batch that waits for its predecessors.
type HeldBatch struct {
	Epoch   int64
	BaseSeq int64
	LastSeq int64
	Since   time.Time
}

// Incidents tells of what was not simply stored, within bounds of memory and since the
// engine was opened.
type Incidents interface {
	// Incidents returns those with numbers above after, oldest first: the last limit of
	// them at most, and none that has been forgotten.
	Incidents(after int64, limit int) []Incident
	// Rejections returns the last refused appends of a producer, newest first.
	Rejections(id int64) []Incident
	// Held returns the batches of a producer that wait in a partition for their
	// predecessors right now, by base sequence.
	Held(p Partition, id int64) []HeldBatch
}
