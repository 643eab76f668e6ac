package openapi

// Partition describes one partition of a topic.
type Partition struct {
	// The topic.
	Topic string `json:"topic" validate:"required" example:"orders"`
	// The number of the partition, from 0.
	Partition int `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// The first offset that is kept.
	EarliestOffset int64 `json:"earliestOffset" validate:"required" example:"0"`
	// The offset that the next record will get: the high watermark.
	NextOffset int64 `json:"nextOffset" validate:"required" example:"3"`
	// The stored bytes.
	Bytes int64 `json:"bytes" validate:"required" example:"312"`
	// The segments, oldest first.
	Segments []Segment `json:"segments" validate:"required"`
	// How many producers have live state.
	Producers int `json:"producers" validate:"required" minimum:"0" example:"1"`
	// How many batches are held until their predecessors arrive.
	Parked int `json:"parked" validate:"required" minimum:"0" example:"0"`
} // @name Partition

// PartitionList is a page of a topic's partitions, by number.
type PartitionList struct {
	// The partitions.
	Items []Partition `json:"items" validate:"required"`
	// For the query parameter pageToken of the next page; null on the last.
	NextPageToken *string `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name PartitionList

// Segment is a stretch of a partition that is deleted as a whole.
type Segment struct {
	// The first offset.
	BaseOffset int64 `json:"baseOffset" validate:"required" example:"0"`
	// The offset after the last record.
	NextOffset int64 `json:"nextOffset" validate:"required" example:"3"`
	// The stored bytes.
	Bytes int64 `json:"bytes" validate:"required" example:"312"`
	// How many batches are in it.
	Batches int64 `json:"batches" validate:"required" example:"1"`
	// The time when it was opened.
	CreatedAt string `json:"createdAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
} // @name Segment

// BatchHeader describes a stored batch. pid, epoch and baseSeq are null for a plain
// append.
type BatchHeader struct {
	// The offset of the first record.
	BaseOffset int64 `json:"baseOffset" validate:"required" example:"0"`
	// The offset of the last record.
	LastOffset int64 `json:"lastOffset" validate:"required" example:"2"`
	// How many records are in it.
	Count int32 `json:"count" validate:"required" minimum:"1" maximum:"65536" example:"3"`
	// The bytes of the encoded batch.
	Bytes int64 `json:"bytes" validate:"required" example:"104"`
	// The producer; null for a plain append.
	PID *int64 `json:"pid" validate:"required" extensions:"x-nullable" example:"0"`
	// The producer's epoch; null for a plain append.
	Epoch *int64 `json:"epoch" validate:"required" extensions:"x-nullable" example:"0"`
	// The sequence of the first record; null for a plain append.
	BaseSeq *int64 `json:"baseSeq" validate:"required" extensions:"x-nullable" example:"0"`
	// The time when it was stored.
	AppendedAt string `json:"appendedAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// The CRC32C of the encoded batch, eight hexadecimal digits.
	CRC string `json:"crc" validate:"required" example:"1f2e3d4c"`
} // @name BatchHeader

// BatchHeaderList is a stretch of batch headers, by offset.
type BatchHeaderList struct {
	// The headers.
	Items []BatchHeader `json:"items" validate:"required"`
	// Where to go on; the high watermark at the end.
	NextOffset int64 `json:"nextOffset" validate:"required" example:"3"`
	// The offset that the next record will get.
	HighWatermark int64 `json:"highWatermark" validate:"required" example:"3"`
} // @name BatchHeaderList

// TrimResponse says where a partition begins after a trim.
type TrimResponse struct {
	// The first offset that is kept.
	EarliestOffset int64 `json:"earliestOffset" validate:"required" example:"3"`
} // @name TrimResponse
