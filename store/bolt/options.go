package bolt

import (
	"log/slog"
	"time"
)

// Options configure a [Store]. The zero value is ready for use.
type Options struct {
	// Logger gets what an operator should know. Nil: nothing is logged.
	Logger *slog.Logger
	// ReorderWait is how long a batch that is ahead of its predecessors waits for
	// them. 0: it is refused at once.
	ReorderWait time.Duration
	// MaxBytes bounds the data in the store file; appends beyond it fail with
	// storage-full. 0: no bound.
	MaxBytes int64
	// DiskReserve is the free space on the file system below which appends fail with
	// storage-full. 0: 64 MiB. Negative: none.
	DiskReserve int64
	// RetentionInterval is how often retention and producer expiry are looked after.
	// 0: one second.
	RetentionInterval time.Duration
	// QueueLength and QueueBytes bound the appends that wait for the committer; more
	// are refused as overloaded. 0: 4096 and 256 MiB.
	QueueLength int
	QueueBytes  int64
	// MaxProducers bounds the producers that all partitions know, each counted as often as
	// there are partitions that know it; beyond it those that have been quiet for longest
	// are expired. 0: no bound.
	MaxProducers int64
	// MaxTombstones bounds what a partition remembers, one by one, of producers that have
	// expired. Beyond it those with the lowest ids are treated alike. 0: a million.
	MaxTombstones int
	// Now gives the time. Nil: the time at Open plus what a monotonic clock says has
	// passed since, so that no step of the wall clock expires a producer.
	Now func() time.Time

	// tailFrom is how many partitions a group must touch to be written to the tail. 0:
	// tailPartitions.
	tailFrom int
	// enoughFree is the number of free pages at which the reaper stops. 0: enoughFree.
	enoughFree int64
}

const (
	lockTimeout = time.Second
	fileName    = "oncelog.db"

	// initialMmap is address space, not memory. Growing the map needs every reader
	// gone and copies the open transaction's pages, so it should happen rarely.
	initialMmap int64 = 64 << 30
	// allocSize is the step in which the file grows; each step costs an fsync.
	allocSize = 64 << 20
	// hardSlack is what the file may grow beyond MaxBytes, so that a full store can
	// still be trimmed: a copy-on-write tree needs room to delete.
	hardSlack = 4 * allocSize
	// fillPercent packs pages of keys that come in order; the default leaves half of
	// each page empty.
	fillPercent = 0.95

	// groupBatches and groupBytes bound one transaction.
	groupBatches = 2048
	groupBytes   = 16 << 20

	// keptSnapshots is how many snapshots a partition keeps.
	keptSnapshots = 8
	// snapshotChunk is the size of the values that hold a snapshot.
	snapshotChunk = 256 << 10
	// sliceKeys and sliceBytes bound what one transaction of the reaper deletes.
	// It is as much as a group may add, so that the reaper keeps up with appends.
	sliceKeys  = 1024
	sliceBytes = groupBytes
	// sliceChunks is how many chunks one transaction writes or deletes.
	sliceChunks = 16

	// heldBatches and heldBytes bound what is held per producer and partition.
	heldBatches = 5
	heldBytes   = 8 << 20
)

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.DiskReserve == 0 {
		o.DiskReserve = 64 << 20
	}
	if o.RetentionInterval == 0 {
		o.RetentionInterval = time.Second
	}
	if o.QueueLength == 0 {
		o.QueueLength = 4096
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = 256 << 20
	}
	if o.MaxTombstones == 0 {
		o.MaxTombstones = 1_000_000
	}
	if o.enoughFree == 0 {
		o.enoughFree = enoughFree
	}
	if o.tailFrom == 0 {
		o.tailFrom = tailPartitions
	}
	if o.Now == nil {
		start := time.Now()
		o.Now = func() time.Time { return start.Add(time.Since(start)) }
	}
	return o
}
