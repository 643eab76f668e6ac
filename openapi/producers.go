package openapi

// ProducerID is a newly allocated producer.
type ProducerID struct {
	// The producer id, never given out before nor again.
	PID int64 `json:"pid" validate:"required" example:"0"`
	// The first epoch.
	Epoch int64 `json:"epoch" validate:"required" example:"0"`
} // @name ProducerID

// ProducerCounters count what became of a producer's appends since the server started.
type ProducerCounters struct {
	// Batches that were stored.
	Accepted int64 `json:"accepted" validate:"required" example:"1"`
	// Batches that were stored before.
	Duplicate int64 `json:"duplicate" validate:"required" example:"1"`
	// Batches refused for a gap before them.
	OutOfOrder int64 `json:"outOfOrder" validate:"required" example:"0"`
	// Batches refused for an old epoch.
	Fenced int64 `json:"fenced" validate:"required" example:"0"`
	// Batches refused because their sequences were used for another payload.
	Reused int64 `json:"reused" validate:"required" example:"0"`
	// Batches that came ahead of their predecessors and were held for them.
	Held int64 `json:"held" validate:"required" example:"0"`
} // @name ProducerCounters

// RememberedBatch is one of a producer's last batches.
type RememberedBatch struct {
	// The sequence of the first record.
	BaseSeq int64 `json:"baseSeq" validate:"required" example:"0"`
	// The sequence of the last record.
	LastSeq int64 `json:"lastSeq" validate:"required" example:"2"`
	// The offset of the first record.
	BaseOffset int64 `json:"baseOffset" validate:"required" example:"0"`
} // @name RememberedBatch

// PartitionProducer is what a partition knows of a producer.
type PartitionProducer struct {
	// The topic.
	Topic string `json:"topic" validate:"required" example:"orders"`
	// The partition.
	Partition int `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// The producer id.
	PID int64 `json:"pid" validate:"required" example:"0"`
	// The epoch of the last batch.
	Epoch int64 `json:"epoch" validate:"required" example:"0"`
	// The first sequence of the oldest remembered batch.
	FirstSeq int64 `json:"firstSeq" validate:"required" example:"0"`
	// The last sequence that was stored.
	LastSeq int64 `json:"lastSeq" validate:"required" example:"2"`
	// The offset of the last record.
	LastOffset int64 `json:"lastOffset" validate:"required" example:"2"`
	// The time of the last batch.
	LastTimestamp string `json:"lastTimestamp" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// The time when the partition forgets the producer, if it stays idle.
	ExpiresAt string `json:"expiresAt" validate:"required" format:"date-time" example:"2026-01-09T03:04:05.678Z"`
	// The remembered batches, oldest first.
	Recent []RememberedBatch `json:"recent" validate:"required" maxItems:"5"`
	// What became of its appends here since the server started.
	Counters ProducerCounters `json:"counters" validate:"required"`
	// The batches that wait for their predecessors right now, by base sequence; absent
	// when there is none.
	Held []HeldBatch `json:"held,omitempty"`
} // @name PartitionProducer

// PartitionProducerList is a page of a partition's producers, by pid.
type PartitionProducerList struct {
	// The producers.
	Items []PartitionProducer `json:"items" validate:"required"`
	// For the query parameter pageToken of the next page; null on the last.
	NextPageToken *string `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name PartitionProducerList

// ProducerSummary is one producer over all partitions in which it has live state.
type ProducerSummary struct {
	// The producer id.
	PID int64 `json:"pid" validate:"required" example:"0"`
	// The highest epoch in any partition.
	Epoch int64 `json:"epoch" validate:"required" example:"0"`
	// How many partitions know the producer.
	Partitions int `json:"partitions" validate:"required" minimum:"1" example:"1"`
	// The time of its last batch in any partition.
	LastTimestamp string `json:"lastTimestamp" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// The time when the last partition forgets it, if it stays idle.
	ExpiresAt string `json:"expiresAt" validate:"required" format:"date-time" example:"2026-01-09T03:04:05.678Z"`
	// What became of its appends since the server started.
	Counters ProducerCounters `json:"counters" validate:"required"`
	// The end of its newest batch; only when the list is sorted or filtered.
	Newest *NewestBatch `json:"newest,omitzero"`
} // @name ProducerSummary

// NewestBatch is the end of the batch that a producer has stored last.
type NewestBatch struct {
	// The topic.
	Topic string `json:"topic" validate:"required" example:"orders"`
	// The partition.
	Partition int `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// The sequence of its last record.
	LastSeq int64 `json:"lastSeq" validate:"required" example:"2"`
	// The offset of its last record.
	LastOffset int64 `json:"lastOffset" validate:"required" example:"2"`
} // @name NewestBatch

// ProducerList is a page of producers, by pid.
type ProducerList struct {
	// The producers.
	Items []ProducerSummary `json:"items" validate:"required"`
	// For the query parameter pageToken of the next page; null on the last.
	NextPageToken *string `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name ProducerList

// Producer is one producer and its state in each partition.
type Producer struct {
	// The producer id.
	PID int64 `json:"pid" validate:"required" example:"0"`
	// Its state in each partition that knows it, by topic and partition.
	Partitions []PartitionProducer `json:"partitions" validate:"required"`
	// Its last refused appends since the server started, newest first; what is long ago
	// may be forgotten.
	Rejected []Incident `json:"rejected" validate:"required" maxItems:"16"`
} // @name Producer
