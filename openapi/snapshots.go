package openapi

// SnapshotRequest picks the partitions to snapshot: all of them when it is empty.
type SnapshotRequest struct {
	Topic     *string `json:"topic,omitzero" example:"orders"`
	Partition *int    `json:"partition,omitzero" validate:"omitnil,min=0,max=1023" minimum:"0" maximum:"1023" example:"0"`
} // @name SnapshotRequest

// Snapshot is the state of a partition's producers at an offset.
type Snapshot struct {
	Topic     string `json:"topic" validate:"required" example:"orders"`
	Partition int    `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// Offset is exclusive: the state after all records below it.
	Offset    int64  `json:"offset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
	CreatedAt string `json:"createdAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	Reason    string `json:"reason" validate:"required" enums:"roll,shutdown,request,startup" example:"request"`
	Producers int    `json:"producers" validate:"required" minimum:"0" example:"1"`
	Bytes     int64  `json:"bytes" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"75"`
	// CRC is the CRC32C of the snapshot, eight hexadecimal digits.
	CRC string `json:"crc" validate:"required" example:"1f2e3d4c"`
} // @name Snapshot

// SnapshotList is a page of snapshots, by topic, partition and offset.
type SnapshotList struct {
	Items         []Snapshot `json:"items" validate:"required"`
	NextPageToken *string    `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name SnapshotList

// SnapshotsTaken are the snapshots that a request has made.
type SnapshotsTaken struct {
	Items []Snapshot `json:"items" validate:"required"`
} // @name SnapshotsTaken

// SnapshotProducer is one producer in a snapshot.
type SnapshotProducer struct {
	PID           int64             `json:"pid" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	Epoch         int64             `json:"epoch" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	FirstSeq      int64             `json:"firstSeq" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"0"`
	LastSeq       int64             `json:"lastSeq" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"2"`
	LastOffset    int64             `json:"lastOffset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"2"`
	LastTimestamp string            `json:"lastTimestamp" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	Recent        []RememberedBatch `json:"recent" validate:"required" maxItems:"5"`
} // @name SnapshotProducer

// SnapshotDetail is a snapshot with the producers in it.
type SnapshotDetail struct {
	Topic         string             `json:"topic" validate:"required" example:"orders"`
	Partition     int                `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	Offset        int64              `json:"offset" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"3"`
	CreatedAt     string             `json:"createdAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	Reason        string             `json:"reason" validate:"required" enums:"roll,shutdown,request,startup" example:"request"`
	Producers     int                `json:"producers" validate:"required" minimum:"0" example:"1"`
	Bytes         int64              `json:"bytes" validate:"required" minimum:"0" maximum:"9007199254740991" format:"int64" example:"75"`
	CRC           string             `json:"crc" validate:"required" example:"1f2e3d4c"`
	Items         []SnapshotProducer `json:"items" validate:"required"`
	NextPageToken *string            `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name SnapshotDetail

// SnapshotVerification compares a snapshot with the state rebuilt from the log.
type SnapshotVerification struct {
	Match       bool     `json:"match" validate:"required" example:"true"`
	Differences []string `json:"differences" validate:"required"`
} // @name SnapshotVerification
