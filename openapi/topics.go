package openapi

// TopicConfig is what can be set on a topic. A member that is absent keeps its
// default when the topic is created, and its value when it is changed.
type TopicConfig struct {
	// How long records are kept, in milliseconds; −1: for ever. The log is cut by whole
	// segments.
	RetentionMs *int64 `json:"retentionMs,omitzero" validate:"omitnil,min=-1,max=9007199254740991" minimum:"-1" example:"-1"`
	// How much of each partition is kept, in bytes; −1: all.
	RetentionBytes *int64 `json:"retentionBytes,omitzero" validate:"omitnil,min=-1,max=9007199254740991" minimum:"-1" example:"-1"`
	// The size at which a segment is closed.
	SegmentBytes *int64 `json:"segmentBytes,omitzero" validate:"omitnil,min=1024,max=9007199254740991" minimum:"1024" example:"67108864"`
	// The age at which a segment is closed, in milliseconds.
	SegmentMs *int64 `json:"segmentMs,omitzero" validate:"omitnil,min=1,max=9007199254740991" minimum:"1" example:"604800000"`
	// Most bytes of keys, values and headers in one batch.
	MaxBatchBytes *int64 `json:"maxBatchBytes,omitzero" validate:"omitnil,min=1,max=8388608" minimum:"1" maximum:"8388608" format:"int64" example:"1048576"`
	// How long after its last batch a partition remembers a producer, in milliseconds.
	ProducerExpiryMs *int64 `json:"producerExpiryMs,omitzero" validate:"omitnil,min=1,max=9007199254740991" minimum:"1" example:"604800000"`
	// Most producers that a partition remembers; more push out those that were idle longest.
	MaxProducers *int64 `json:"maxProducers,omitzero" validate:"omitnil,min=1,max=9007199254740991" minimum:"1" example:"1000000"`
	// Refuse appends without pid, epoch and baseSeq.
	RequireIdempotence *bool `json:"requireIdempotence,omitzero" example:"false"`
} // @name TopicConfig

// CreateTopicRequest names a new topic.
type CreateTopicRequest struct {
	// The name: letters, digits, dot, underscore and hyphen; neither . nor ..
	Name string `json:"name" validate:"required,topicname" minLength:"1" maxLength:"249" example:"orders"`
	// How many partitions the topic has.
	Partitions *int `json:"partitions,omitzero" validate:"omitnil,min=1,max=1024" minimum:"1" maximum:"1024" example:"1"`
	TopicConfig
} // @name CreateTopicRequest

// PutTopicRequest says what a topic is to be, or is to be found to be.
type PutTopicRequest struct {
	// How many partitions the topic has.
	Partitions *int `json:"partitions,omitzero" validate:"omitnil,min=1,max=1024" minimum:"1" maximum:"1024" example:"1"`
	TopicConfig
} // @name PutTopicRequest

// UpdateTopicRequest is a merge patch (RFC 7396): what is absent stays as it is, null
// goes back to its default. Partitions may only grow.
type UpdateTopicRequest struct {
	// How many partitions the topic is to have; never fewer than now.
	Partitions *int `json:"partitions,omitzero" validate:"omitnil,min=1,max=1024" extensions:"x-nullable" minimum:"1" maximum:"1024" example:"2"`
	// How long records are kept, in milliseconds; −1: for ever. The log is cut by whole
	// segments.
	RetentionMs *int64 `json:"retentionMs,omitzero" validate:"omitnil,min=-1,max=9007199254740991" extensions:"x-nullable" minimum:"-1" example:"-1"`
	// How much of each partition is kept, in bytes; −1: all.
	RetentionBytes *int64 `json:"retentionBytes,omitzero" validate:"omitnil,min=-1,max=9007199254740991" extensions:"x-nullable" minimum:"-1" example:"-1"`
	// The size at which a segment is closed.
	SegmentBytes *int64 `json:"segmentBytes,omitzero" validate:"omitnil,min=1024,max=9007199254740991" extensions:"x-nullable" minimum:"1024" example:"67108864"`
	// The age at which a segment is closed, in milliseconds.
	SegmentMs *int64 `json:"segmentMs,omitzero" validate:"omitnil,min=1,max=9007199254740991" extensions:"x-nullable" minimum:"1" example:"604800000"`
	// Most bytes of keys, values and headers in one batch.
	MaxBatchBytes *int64 `json:"maxBatchBytes,omitzero" validate:"omitnil,min=1,max=8388608" extensions:"x-nullable" minimum:"1" maximum:"8388608" format:"int64" example:"1048576"`
	// How long after its last batch a partition remembers a producer, in milliseconds.
	ProducerExpiryMs *int64 `json:"producerExpiryMs,omitzero" validate:"omitnil,min=1,max=9007199254740991" extensions:"x-nullable" minimum:"1" example:"604800000"`
	// Most producers that a partition remembers; more push out those that were idle longest.
	MaxProducers *int64 `json:"maxProducers,omitzero" validate:"omitnil,min=1,max=9007199254740991" extensions:"x-nullable" minimum:"1" example:"1000000"`
	// Refuse appends without pid, epoch and baseSeq.
	RequireIdempotence *bool `json:"requireIdempotence,omitzero" extensions:"x-nullable" example:"false"`
} // @name UpdateTopicRequest

// Topic describes a topic.
type Topic struct {
	// The name.
	Name string `json:"name" validate:"required" example:"orders"`
	// Tells apart topics that have had the same name.
	ID string `json:"id" validate:"required" example:"6f1d0b2a9c3e4d58"`
	// How many partitions the topic has.
	Partitions int `json:"partitions" validate:"required" minimum:"1" maximum:"1024" example:"1"`
	// How long records are kept, in milliseconds; −1: for ever. The log is cut by whole
	// segments.
	RetentionMs int64 `json:"retentionMs" validate:"required" minimum:"-1" example:"-1"`
	// How much of each partition is kept, in bytes; −1: all.
	RetentionBytes int64 `json:"retentionBytes" validate:"required" minimum:"-1" example:"-1"`
	// The size at which a segment is closed.
	SegmentBytes int64 `json:"segmentBytes" validate:"required" minimum:"1024" example:"67108864"`
	// The age at which a segment is closed, in milliseconds.
	SegmentMs int64 `json:"segmentMs" validate:"required" minimum:"1" example:"604800000"`
	// Most bytes of keys, values and headers in one batch.
	MaxBatchBytes int64 `json:"maxBatchBytes" validate:"required" minimum:"1" maximum:"8388608" format:"int64" example:"1048576"`
	// How long after its last batch a partition remembers a producer, in milliseconds.
	ProducerExpiryMs int64 `json:"producerExpiryMs" validate:"required" minimum:"1" example:"604800000"`
	// Most producers that a partition remembers; more push out those that were idle longest.
	MaxProducers int64 `json:"maxProducers" validate:"required" minimum:"1" example:"1000000"`
	// Refuse appends without pid, epoch and baseSeq.
	RequireIdempotence bool `json:"requireIdempotence" validate:"required" example:"false"`
	// Grows with each change of the configuration; the ETag is made of it.
	Version int64 `json:"version" validate:"required" minimum:"1" example:"1"`
	// The time when the topic was created.
	CreatedAt string `json:"createdAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// What its partitions hold together; only in a list with totals=true.
	Totals *TopicTotals `json:"totals,omitzero"`
} // @name Topic

// TopicTotals sums up the partitions of a topic.
type TopicTotals struct {
	// The records that are kept.
	Records int64 `json:"records" validate:"required" example:"3"`
	// The records that were ever stored.
	Appended int64 `json:"appended" validate:"required" example:"3"`
	// The stored bytes.
	Bytes int64 `json:"bytes" validate:"required" example:"312"`
	// How many batches are held until their predecessors arrive.
	Parked int `json:"parked" validate:"required" minimum:"0" example:"0"`
} // @name TopicTotals

// TopicList is a page of topics, by name.
type TopicList struct {
	// The topics.
	Items []Topic `json:"items" validate:"required"`
	// For the query parameter pageToken of the next page; null on the last.
	NextPageToken *string `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name TopicList
