package openapi

// Limits are what the server allows.
type Limits struct {
	// Most bytes of a request body, after decompression.
	MaxBodyBytes int64 `json:"maxBodyBytes" validate:"required" format:"int64" example:"16777216"`
	// Most records in a batch.
	MaxBatchRecords int64 `json:"maxBatchRecords" validate:"required" format:"int64" example:"65536"`
	// Most that a topic's maxBatchBytes can be.
	MaxBatchBytes int64 `json:"maxBatchBytes" validate:"required" format:"int64" example:"8388608"`
	// Most bytes of a record's key, value and headers.
	MaxRecordBytes int64 `json:"maxRecordBytes" validate:"required" format:"int64" example:"1048576"`
	// Most bytes of a key.
	MaxKeyBytes int64 `json:"maxKeyBytes" validate:"required" format:"int64" example:"32768"`
	// Most headers of a record.
	MaxHeaders int64 `json:"maxHeaders" validate:"required" format:"int64" example:"64"`
	// Most bytes of a header's name.
	MaxHeaderName int64 `json:"maxHeaderNameBytes" validate:"required" format:"int64" example:"256"`
	// Most bytes of a header's value.
	MaxHeaderValue int64 `json:"maxHeaderValueBytes" validate:"required" format:"int64" example:"8192"`
	// Most bytes of a topic's name.
	MaxTopicName int64 `json:"maxTopicNameBytes" validate:"required" format:"int64" example:"249"`
	// Most partitions of a topic.
	MaxPartitions int64 `json:"maxPartitions" validate:"required" format:"int64" example:"1024"`
	// Most records of one read.
	MaxReadRecords int64 `json:"maxReadRecords" validate:"required" format:"int64" example:"10000"`
	// Most bytes of one read.
	MaxReadBytes int64 `json:"maxReadBytes" validate:"required" format:"int64" example:"67108864"`
	// Longest wait of a read, in milliseconds.
	MaxWaitMs int64 `json:"maxWaitMs" validate:"required" format:"int64" example:"60000"`
	// Most items on a page of a list.
	MaxPageSize int64 `json:"maxPageSize" validate:"required" format:"int64" example:"1000"`
	// How long a batch ahead of its predecessors is held for them, in milliseconds.
	ReorderWaitMs int64 `json:"reorderWaitMs" validate:"required" format:"int64" example:"100"`
	// How many batches of a producer a partition remembers, and how far ahead one may be to be
	// held.
	ProducerWindow int64 `json:"producerWindow" validate:"required" format:"int64" example:"5"`
	// The highest sequence, offset and producer id.
	MaxSequence int64 `json:"maxSequence" validate:"required" format:"int64" example:"9007199254740991"`
} // @name Limits

// Version says what is running.
type Version struct {
	// The version of the program.
	Version string `json:"version" validate:"required" example:"0.1.0"`
	// The revision of its source.
	Revision string `json:"revision" validate:"required" example:"3f2c1a0"`
	// The version of Go that built it.
	Go string `json:"go" validate:"required" example:"go1.27.3"`
	// The version of this API.
	API string `json:"api" validate:"required" example:"1"`
} // @name Version

// Health is the answer of a probe.
type Health struct {
	// Always ok: another state is a problem.
	Status string `json:"status" validate:"required" enums:"ok" example:"ok"`
} // @name Health
