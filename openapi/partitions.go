package openapi

// Partition describes one partition of a topic.
type Partition struct {
	Topic          string    `json:"topic" validate:"required" example:"orders"`
	Partition      int       `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	EarliestOffset int64     `json:"earliestOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	NextOffset     int64     `json:"nextOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
	Bytes          int64     `json:"bytes" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"312"`
	Segments       []Segment `json:"segments" validate:"required"`
	// Producers counts those with live state.
	Producers int `json:"producers" validate:"required" minimum:"0" example:"1"`
	// Parked counts batches that are held until their predecessors arrive.
	Parked int `json:"parked" validate:"required" minimum:"0" example:"0"`
} // @name Partition

// Segment is a stretch of a partition that is deleted as a whole.
type Segment struct {
	BaseOffset int64  `json:"baseOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	NextOffset int64  `json:"nextOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
	Bytes      int64  `json:"bytes" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"312"`
	Batches    int64  `json:"batches" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"1"`
	CreatedAt  string `json:"createdAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
} // @name Segment

// BatchHeader describes a stored batch. pid, epoch and baseSeq are null for a plain
// append.
type BatchHeader struct {
	BaseOffset int64  `json:"baseOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	LastOffset int64  `json:"lastOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"2"`
	Count      int32  `json:"count" validate:"required" minimum:"1" maximum:"65536" example:"3"`
	Bytes      int64  `json:"bytes" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"104"`
	PID        *int64 `json:"pid" validate:"required" extensions:"x-nullable" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Epoch      *int64 `json:"epoch" validate:"required" extensions:"x-nullable" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	BaseSeq    *int64 `json:"baseSeq" validate:"required" extensions:"x-nullable" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	AppendedAt string `json:"appendedAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// CRC is the CRC32C of the encoded batch, eight hexadecimal digits.
	CRC string `json:"crc" validate:"required" example:"1f2e3d4c"`
} // @name BatchHeader

// BatchHeaderList is a stretch of batch headers, by offset.
type BatchHeaderList struct {
	Items []BatchHeader `json:"items" validate:"required"`
	// NextOffset is where to go on; it is the high watermark at the end.
	NextOffset    int64 `json:"nextOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
	HighWatermark int64 `json:"highWatermark" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
} // @name BatchHeaderList

// TrimResponse says where a partition begins after a trim.
type TrimResponse struct {
	EarliestOffset int64 `json:"earliestOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
} // @name TrimResponse
