package store

import (
	"time"

	"github.com/oncelog/oncelog/store/batch"
)

// Append asks for a batch to be appended to a partition.
type Append struct {
	Partition Partition
	// Producer is nil for a plain append, which may be stored twice if it is retried.
	Producer *ProducerSeq
	// Principal is who asks; a producer id may be used only by the one that it was
	// issued to. "": nobody in particular.
	Principal string
	Batch     batch.Batch
	// NoHold answers a batch that is ahead of its predecessors at once, instead of
	// holding it for a moment until they come.
	NoHold bool
}

// ProducerSeq names a producer and its place in the producer's sequence. All three
// are 0 … sequence.Max.
type ProducerSeq struct {
	ID      int64
	Epoch   int64
	BaseSeq int64
}

// Ack says where a batch is stored. It is given only when the batch is durable.
type Ack struct {
	// BaseOffset and LastOffset are −1 for a duplicate of a batch so old that its
	// offsets are no longer remembered; AppendedAt is zero then.
	BaseOffset int64
	LastOffset int64
	// NextSeq is the sequence after the batch, −1 for a plain append.
	NextSeq    int64
	AppendedAt time.Time
	// Duplicate reports that the batch had been stored before and was not stored again.
	Duplicate bool
}
