package openapi

// Limits are what the server allows.
type Limits struct {
	MaxBodyBytes    int64 `json:"maxBodyBytes" validate:"required" format:"int64" example:"16777216"`
	MaxBatchRecords int64 `json:"maxBatchRecords" validate:"required" format:"int64" example:"65536"`
	MaxBatchBytes   int64 `json:"maxBatchBytes" validate:"required" format:"int64" example:"8388608"`
	MaxRecordBytes  int64 `json:"maxRecordBytes" validate:"required" format:"int64" example:"1048576"`
	MaxKeyBytes     int64 `json:"maxKeyBytes" validate:"required" format:"int64" example:"32768"`
	MaxHeaders      int64 `json:"maxHeaders" validate:"required" format:"int64" example:"64"`
	MaxHeaderName   int64 `json:"maxHeaderNameBytes" validate:"required" format:"int64" example:"256"`
	MaxHeaderValue  int64 `json:"maxHeaderValueBytes" validate:"required" format:"int64" example:"8192"`
	MaxTopicName    int64 `json:"maxTopicNameBytes" validate:"required" format:"int64" example:"249"`
	MaxPartitions   int64 `json:"maxPartitions" validate:"required" format:"int64" example:"1024"`
	MaxReadRecords  int64 `json:"maxReadRecords" validate:"required" format:"int64" example:"10000"`
	MaxReadBytes    int64 `json:"maxReadBytes" validate:"required" format:"int64" example:"67108864"`
	MaxWaitMs       int64 `json:"maxWaitMs" validate:"required" format:"int64" example:"60000"`
	MaxPageSize     int64 `json:"maxPageSize" validate:"required" format:"int64" example:"1000"`
	ReorderWaitMs   int64 `json:"reorderWaitMs" validate:"required" format:"int64" example:"100"`
	ProducerWindow  int64 `json:"producerWindow" validate:"required" format:"int64" example:"5"`
	MaxSequence     int64 `json:"maxSequence" validate:"required" format:"int64" example:"9007199254740991"`
} // @name Limits

// Version says what is running.
type Version struct {
	Version  string `json:"version" validate:"required" example:"0.1.0"`
	Revision string `json:"revision" validate:"required" example:"3f2c1a0"`
	Go       string `json:"go" validate:"required" example:"go1.27.3"`
	API      string `json:"api" validate:"required" example:"1"`
} // @name Version

// Health is the answer of a probe.
type Health struct {
	Status string `json:"status" validate:"required" enums:"ok" example:"ok"`
} // @name Health
