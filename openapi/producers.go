package openapi

// ProducerID is a newly allocated producer.
type ProducerID struct {
	PID   int64 `json:"pid" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Epoch int64 `json:"epoch" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
} // @name ProducerID

// ProducerCounters count what became of a producer's appends since the server started.
type ProducerCounters struct {
	Accepted   int64 `json:"accepted" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"1"`
	Duplicate  int64 `json:"duplicate" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"1"`
	OutOfOrder int64 `json:"outOfOrder" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Fenced     int64 `json:"fenced" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Reused     int64 `json:"reused" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	// Held counts batches that came ahead of their predecessors and were held for them.
	Held int64 `json:"held" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
} // @name ProducerCounters

// RememberedBatch is one of a producer's last batches.
type RememberedBatch struct {
	BaseSeq    int64 `json:"baseSeq" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	LastSeq    int64 `json:"lastSeq" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"2"`
	BaseOffset int64 `json:"baseOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
} // @name RememberedBatch

// PartitionProducer is what a partition knows of a producer.
type PartitionProducer struct {
	Topic         string            `json:"topic" validate:"required" example:"orders"`
	Partition     int               `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	PID           int64             `json:"pid" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Epoch         int64             `json:"epoch" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	FirstSeq      int64             `json:"firstSeq" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	LastSeq       int64             `json:"lastSeq" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"2"`
	LastOffset    int64             `json:"lastOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"2"`
	LastTimestamp string            `json:"lastTimestamp" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	ExpiresAt     string            `json:"expiresAt" validate:"required" format:"date-time" example:"2026-01-09T03:04:05.678Z"`
	Recent        []RememberedBatch `json:"recent" validate:"required" maxItems:"5"`
	Counters      ProducerCounters  `json:"counters" validate:"required"`
} // @name PartitionProducer

// PartitionProducerList is a page of a partition's producers, by pid.
type PartitionProducerList struct {
	Items         []PartitionProducer `json:"items" validate:"required"`
	NextPageToken *string             `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name PartitionProducerList

// ProducerSummary is one producer over all partitions in which it has live state.
type ProducerSummary struct {
	PID           int64            `json:"pid" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Epoch         int64            `json:"epoch" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Partitions    int              `json:"partitions" validate:"required" minimum:"1" example:"1"`
	LastTimestamp string           `json:"lastTimestamp" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	ExpiresAt     string           `json:"expiresAt" validate:"required" format:"date-time" example:"2026-01-09T03:04:05.678Z"`
	Counters      ProducerCounters `json:"counters" validate:"required"`
} // @name ProducerSummary

// ProducerList is a page of producers, by pid.
type ProducerList struct {
	Items         []ProducerSummary `json:"items" validate:"required"`
	NextPageToken *string           `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name ProducerList

// Producer is one producer and its state in each partition.
type Producer struct {
	PID        int64               `json:"pid" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Partitions []PartitionProducer `json:"partitions" validate:"required"`
} // @name Producer
