package store

import "time"

// SnapshotReason says why a snapshot was taken.
type SnapshotReason string

// The reasons.
const (
	SnapshotRoll     SnapshotReason = "roll"
	SnapshotShutdown SnapshotReason = "shutdown"
	SnapshotRequest  SnapshotReason = "request"
	SnapshotStartup  SnapshotReason = "startup"
)

// Snapshot is the state of a partition's producers at an offset.
type Snapshot struct {
	Partition Partition
	// Offset is exclusive: the snapshot holds the state after all records below it.
	Offset    int64
	CreatedAt time.Time
	Reason    SnapshotReason
	Producers int // tombstones not counted
	Bytes     int64
	CRC       uint32 // CRC32C of its bytes
}

// SnapshotFilter picks partitions. The zero value picks all of them.
type SnapshotFilter struct {
	Topic     string // "": every topic
	Partition *int   // nil: every partition of Topic
}

// SnapshotDiff is the outcome of verifying a snapshot against the log.
type SnapshotDiff struct {
	// Differences are sentences, one a producer that differs.
	Differences []string
}
