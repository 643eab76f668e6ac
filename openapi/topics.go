package openapi

// TopicConfig is what can be set on a topic. A member that is absent keeps its
// default when the topic is created, and its value when it is changed.
type TopicConfig struct {
	// RetentionMs and RetentionBytes bound each partition; −1 keeps everything.
	RetentionMs    *int64 `json:"retentionMs,omitzero" validate:"omitnil,min=-1,max=9007199254740991" minimum:"-1" maximum:"9007199254740991" format:"int64" example:"-1"`
	RetentionBytes *int64 `json:"retentionBytes,omitzero" validate:"omitnil,min=-1,max=9007199254740991" minimum:"-1" maximum:"9007199254740991" format:"int64" example:"-1"`
	SegmentBytes   *int64 `json:"segmentBytes,omitzero" validate:"omitnil,min=1024,max=9007199254740991" minimum:"1024" maximum:"9007199254740991" format:"int64" example:"67108864"`
	SegmentMs      *int64 `json:"segmentMs,omitzero" validate:"omitnil,min=1,max=9007199254740991" minimum:"1" maximum:"9007199254740991" format:"int64" example:"604800000"`
	// MaxBatchBytes bounds the keys, values and headers of one batch.
	MaxBatchBytes *int64 `json:"maxBatchBytes,omitzero" validate:"omitnil,min=1,max=8388608" minimum:"1" maximum:"8388608" format:"int64" example:"1048576"`
	// ProducerExpiryMs is how long after its last batch a producer is remembered.
	ProducerExpiryMs   *int64 `json:"producerExpiryMs,omitzero" validate:"omitnil,min=1,max=9007199254740991" minimum:"1" maximum:"9007199254740991" format:"int64" example:"604800000"`
	MaxProducers       *int64 `json:"maxProducers,omitzero" validate:"omitnil,min=1,max=9007199254740991" minimum:"1" maximum:"9007199254740991" format:"int64" example:"1000000"`
	RequireIdempotence *bool  `json:"requireIdempotence,omitzero" example:"false"`
} // @name TopicConfig

// CreateTopicRequest names a new topic.
type CreateTopicRequest struct {
	Name       string `json:"name" validate:"required,topicname" minLength:"1" maxLength:"249" example:"orders"`
	Partitions *int   `json:"partitions,omitzero" validate:"omitnil,min=1,max=1024" minimum:"1" maximum:"1024" example:"1"`
	TopicConfig
} // @name CreateTopicRequest

// PutTopicRequest says what a topic is to be, or is to be found to be.
type PutTopicRequest struct {
	Partitions *int `json:"partitions,omitzero" validate:"omitnil,min=1,max=1024" minimum:"1" maximum:"1024" example:"1"`
	TopicConfig
} // @name PutTopicRequest

// UpdateTopicRequest is a merge patch (RFC 7396): what is absent stays as it is, null
// goes back to its default. Partitions may only grow.
type UpdateTopicRequest struct {
	Partitions         *int   `json:"partitions,omitzero" validate:"omitnil,min=1,max=1024" extensions:"x-nullable" minimum:"1" maximum:"1024" example:"2"`
	RetentionMs        *int64 `json:"retentionMs,omitzero" validate:"omitnil,min=-1,max=9007199254740991" extensions:"x-nullable" minimum:"-1" maximum:"9007199254740991" format:"int64" example:"-1"`
	RetentionBytes     *int64 `json:"retentionBytes,omitzero" validate:"omitnil,min=-1,max=9007199254740991" extensions:"x-nullable" minimum:"-1" maximum:"9007199254740991" format:"int64" example:"-1"`
	SegmentBytes       *int64 `json:"segmentBytes,omitzero" validate:"omitnil,min=1024,max=9007199254740991" extensions:"x-nullable" minimum:"1024" maximum:"9007199254740991" format:"int64" example:"67108864"`
	SegmentMs          *int64 `json:"segmentMs,omitzero" validate:"omitnil,min=1,max=9007199254740991" extensions:"x-nullable" minimum:"1" maximum:"9007199254740991" format:"int64" example:"604800000"`
	MaxBatchBytes      *int64 `json:"maxBatchBytes,omitzero" validate:"omitnil,min=1,max=8388608" extensions:"x-nullable" minimum:"1" maximum:"8388608" format:"int64" example:"1048576"`
	ProducerExpiryMs   *int64 `json:"producerExpiryMs,omitzero" validate:"omitnil,min=1,max=9007199254740991" extensions:"x-nullable" minimum:"1" maximum:"9007199254740991" format:"int64" example:"604800000"`
	MaxProducers       *int64 `json:"maxProducers,omitzero" validate:"omitnil,min=1,max=9007199254740991" extensions:"x-nullable" minimum:"1" maximum:"9007199254740991" format:"int64" example:"1000000"`
	RequireIdempotence *bool  `json:"requireIdempotence,omitzero" extensions:"x-nullable" example:"false"`
} // @name UpdateTopicRequest

// Topic describes a topic.
type Topic struct {
	Name string `json:"name" validate:"required" example:"orders"`
	// ID tells apart topics that have had the same name.
	ID                 string `json:"id" validate:"required" example:"6f1d0b2a9c3e4d58"`
	Partitions         int    `json:"partitions" validate:"required" minimum:"1" maximum:"1024" example:"1"`
	RetentionMs        int64  `json:"retentionMs" validate:"required" minimum:"-1" maximum:"9007199254740991" format:"int64" example:"-1"`
	RetentionBytes     int64  `json:"retentionBytes" validate:"required" minimum:"-1" maximum:"9007199254740991" format:"int64" example:"-1"`
	SegmentBytes       int64  `json:"segmentBytes" validate:"required" minimum:"1024" maximum:"9007199254740991" format:"int64" example:"67108864"`
	SegmentMs          int64  `json:"segmentMs" validate:"required" minimum:"1" maximum:"9007199254740991" format:"int64" example:"604800000"`
	MaxBatchBytes      int64  `json:"maxBatchBytes" validate:"required" minimum:"1" maximum:"8388608" format:"int64" example:"1048576"`
	ProducerExpiryMs   int64  `json:"producerExpiryMs" validate:"required" minimum:"1" maximum:"9007199254740991" format:"int64" example:"604800000"`
	MaxProducers       int64  `json:"maxProducers" validate:"required" minimum:"1" maximum:"9007199254740991" format:"int64" example:"1000000"`
	RequireIdempotence bool   `json:"requireIdempotence" validate:"required" example:"false"`
	Version            int64  `json:"version" validate:"required" minimum:"1" maximum:"9007199254740991" format:"int64" example:"1"`
	CreatedAt          string `json:"createdAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
} // @name Topic

// TopicList is a page of topics, by name.
type TopicList struct {
	Items         []Topic `json:"items" validate:"required"`
	NextPageToken *string `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name TopicList
