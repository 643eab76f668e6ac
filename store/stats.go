package store

// Stats are counters of an engine since it was opened, and its present size.
type Stats struct {
	Accepted   int64 // batches stored
	Records    int64 // records stored
	Bytes      int64 // bytes of encoded batches stored
	Duplicates int64 // batches recognised as stored before
	Held       int64 // batches that were held for their predecessors
	// Gaps are out-of-order refusals. Passing ones lie within the window of batches
	// that may overtake each other; lasting ones do not, or outlived a hold.
	PassingGaps int64
	LastingGaps int64
	Fenced      int64
	Expired     int64
	Reused      int64
	Overlaps    int64

	Commits     int64 // durable transactions
	CommitNanos int64 // spent in them
	CommitTimes Durations
	Parked      int64 // batches held right now
	StoreBytes  int64 // size of the store on disk
	FreeBytes   int64 // of StoreBytes, what is free for new data
	DiskFree    int64 // free on the store's file system, −1 when unknown

	// OutOfService is how many partitions, and topics whose partitions are not known, are
	// out of service because what is stored of them is damaged.
	OutOfService int64

	// Producers and Tombstones are the live and the expired producers that partitions know,
	// each counted as often as there are partitions that know it.
	Producers  int64
	Tombstones int64
	// MaxProducers is the most producers that the engine keeps, 0: no bound.
	MaxProducers int64
	// NearMaxProducers counts partitions that have reached 90 % of their topic's
	// MaxProducers and have not been below 80 % since.
	NearMaxProducers int64
	// ExpiredProducers counts live producers that became tombstones because their time had
	// come, EvictedProducers those that had to make room, CutOffProducers the tombstones
	// that were dropped because there were too many.
	ExpiredProducers int64
	EvictedProducers int64
	CutOffProducers  int64

	ProducerIDMark int64 // below it lie all producer ids that are issued or reserved
}
