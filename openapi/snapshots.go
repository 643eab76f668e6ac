package openapi

// SnapshotRequest picks the partitions to snapshot: all of them when it is empty.
type SnapshotRequest struct {
	// Only partitions of this topic.
	Topic *string `json:"topic,omitzero" example:"orders"`
	// Only this partition of the topic.
	Partition *int `json:"partition,omitzero" validate:"omitnil,min=0,max=1023" minimum:"0" maximum:"1023" example:"0"`
} // @name SnapshotRequest

// Snapshot is the state of a partition's producers at an offset.
type Snapshot struct {
	// The topic.
	Topic string `json:"topic" validate:"required" example:"orders"`
	// The partition.
	Partition int `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// Exclusive: the state after all records below this offset.
	Offset int64 `json:"offset" validate:"required" example:"3"`
	// The time when it was taken.
	CreatedAt string `json:"createdAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// Why it was taken.
	Reason string `json:"reason" validate:"required" enums:"roll,shutdown,request,startup" example:"request"`
	// How many producers are in it.
	Producers int `json:"producers" validate:"required" minimum:"0" example:"1"`
	// The stored bytes.
	Bytes int64 `json:"bytes" validate:"required" example:"75"`
	// The CRC32C of the snapshot, eight hexadecimal digits.
	CRC string `json:"crc" validate:"required" example:"1f2e3d4c"`
} // @name Snapshot

// SnapshotList is a page of snapshots, by topic, partition and offset.
type SnapshotList struct {
	// The snapshots.
	Items []Snapshot `json:"items" validate:"required"`
	// For the query parameter pageToken of the next page; null on the last.
	NextPageToken *string `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name SnapshotList

// SnapshotsTaken are the snapshots that a request has made.
type SnapshotsTaken struct {
	// The snapshots.
	Items []Snapshot `json:"items" validate:"required"`
} // @name SnapshotsTaken

// SnapshotProducer is one producer in a snapshot.
type SnapshotProducer struct {
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
	// The remembered batches, oldest first.
	Recent []RememberedBatch `json:"recent" validate:"required" maxItems:"5"`
} // @name SnapshotProducer

// SnapshotDetail is a snapshot with the producers in it.
type SnapshotDetail struct {
	// The topic.
	Topic string `json:"topic" validate:"required" example:"orders"`
	// The partition.
	Partition int `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// Exclusive: the state after all records below this offset.
	Offset int64 `json:"offset" validate:"required" example:"3"`
	// The time when it was taken.
	CreatedAt string `json:"createdAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// Why it was taken.
	Reason string `json:"reason" validate:"required" enums:"roll,shutdown,request,startup" example:"request"`
	// How many producers are in it.
	Producers int `json:"producers" validate:"required" minimum:"0" example:"1"`
	// The stored bytes.
	Bytes int64 `json:"bytes" validate:"required" example:"75"`
	// The CRC32C of the snapshot, eight hexadecimal digits.
	CRC string `json:"crc" validate:"required" example:"1f2e3d4c"`
	// A page of the producers in it, by pid.
	Items []SnapshotProducer `json:"items" validate:"required"`
	// For the query parameter pageToken of the next page; null on the last.
	NextPageToken *string `json:"nextPageToken" validate:"required" extensions:"x-nullable"`
} // @name SnapshotDetail

// SnapshotVerification compares a snapshot with the state rebuilt from the log.
type SnapshotVerification struct {
	// Whether the snapshot is what the log says.
	Match bool `json:"match" validate:"required" example:"true"`
	// One sentence for each producer that differs.
	Differences []string `json:"differences" validate:"required"`
} // @name SnapshotVerification
