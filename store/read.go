package store

import "time"

// Read asks for batches from a partition.
type Read struct {
	Partition Partition
	// Offset is the first record wanted, between the earliest offset and the high
	// watermark.
	Offset int64
	// MaxRecords and MaxBytes bound the answer. At least one batch is given if there
	// is one, whatever its size; the bounds are kept to the batch, not the record.
	MaxRecords int
	MaxBytes   int
	// Buffer is memory that the bytes of the batches may be put into, whatever it holds;
	// nil: memory of their own. What [Records.Buffer] of one read gives back can be lent
	// to the next one when nobody looks at the first one's batches any more.
	Buffer []byte
}

// Records is the answer to a [Read]. The first batch may begin below the offset that
// was asked for, and the last one may end above what the bounds allow.
type Records struct {
	Batches       []StoredBatch
	Earliest      int64
	HighWatermark int64
	// TopicID is that of the topic that was read.
	TopicID string
	// Buffer is the memory that the bytes of the batches lie in, to be lent to another
	// read; nil if there is none to be lent.
	Buffer []byte
}

// StoredBatch is a batch as it lies in the log. Its bytes are whole: their checksum
// has been verified.
type StoredBatch struct {
	BatchHeader
	Bytes []byte // package batch
}

// BatchHeader describes a stored batch.
type BatchHeader struct {
	BaseOffset int64
	LastOffset int64
	Bytes      int64 // length of the encoded batch
	Producer   *ProducerSeq
	AppendedAt time.Time
	CRC        uint32 // CRC32C of the encoded batch
}

// Count is the number of records of the batch.
func (h BatchHeader) Count() int32 { return int32(h.LastOffset - h.BaseOffset + 1) }

// Bounds are the ends of a partition.
type Bounds struct {
	Earliest      int64 // offset of the first record that is kept
	HighWatermark int64 // offset that the next record will get
	TopicID       string
}

// PartitionInfo describes a partition.
type PartitionInfo struct {
	Partition
	Bounds
	Bytes     int64
	Segments  []Segment
	Producers int // with live state
	Parked    int // batches held until their predecessors arrive
	// Damage is why the partition is out of service, "": it is not. Segments and Bytes
	// are then what is known.
	Damage string
}

// Segment is a stretch of a partition, the last one being appended to.
type Segment struct {
	BaseOffset int64
	NextOffset int64
	Bytes      int64 // of the encoded batches
	Batches    int64
	CreatedAt  time.Time
}
