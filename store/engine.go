package store

import "context"

// Engine stores batches. All methods may be called at the same time from many
// goroutines. They fail with an [*Error] whose code is among those in errors.go, or
// with the error of ctx when that ended first. A call that is cancelled may still
// take effect.
type Engine interface {
	// Append must not return a nil error before the batch would survive loss of
	// power, nor let any other call show a trace of it before. It judges idempotent
	// batches by package sequence; a duplicate is an Ack, not an error. It checks, in
	// this order: topic and partition, idempotence required, size against the topic's
	// MaxBatchBytes, that the id was issued, that it was issued to a.Principal
	// (CodeForbidden), then the sequence rule. When ctx ends
	// while the batch waits, the batch may be stored all the same; a batch that is
	// held for its predecessors is dropped.
	Append(ctx context.Context, a Append) (Ack, error)

	// Read returns batches from an offset on, and none at the high watermark. An
	// offset outside the bounds fails with CodeRecordsTrimmed or
	// CodeOffsetOutOfRange, a damaged batch with CodeRecordsDamaged when it is the
	// first one wanted. The caller owns what is returned.
	Read(ctx context.Context, r Read) (Records, error)

	// Bounds returns the ends of a partition. It is cheap.
	Bounds(ctx context.Context, p Partition) (Bounds, error)

	// Wait returns when the high watermark of p is above offset, or fails: with the
	// error of ctx, when the topic is deleted, or when the engine closes.
	Wait(ctx context.Context, p Partition, offset int64) error

	// AllocateProducer returns an id that was never returned before and never will
	// be, across restarts and crashes. That it belongs to owner is as durable before
	// the id is returned, and never changes. The owner "" is whoever gives no
	// credentials; see [CheckOwner] for what else one may be.
	AllocateProducer(ctx context.Context, owner string) (ProducerID, error)

	// Ready returns nil while the engine takes writes, else why it does not.
	Ready() error

	// Stats is cheap enough to be asked for every second.
	Stats() Stats

	// Close stops taking writes, finishes those that it took, takes a snapshot of each
	// partition that has changed since the last one, and waits for all of that.
	// Calls during and after it fail with CodeDraining. It may be called twice.
	Close() error
}

// Topics manages topics. An engine that implements [Engine] implements it too.
type Topics interface {
	// CreateTopic fails with CodeTopicExists when the name is taken.
	CreateTopic(ctx context.Context, name string, partitions int, c Config) (Topic, error)
	Topic(ctx context.Context, name string) (Topic, error)
	// Topics returns, in the order of their names, at most limit topics whose names
	// are above after.
	Topics(ctx context.Context, after string, limit int) ([]Topic, error)
	// UpdateTopic sets partitions and config to what change makes of the topic as it
	// is. It runs change once, with no other update in between, and gives its error
	// back. Partitions may only grow: CodeInvalidArgument.
	UpdateTopic(ctx context.Context, name string, change func(Topic) (Topic, error)) (Topic, error)
	// DeleteTopic makes the topic and everything of it unreachable at once; a topic
	// created under the same name starts empty.
	DeleteTopic(ctx context.Context, name string) error
}

// Partitions looks into partitions and cuts them.
type Partitions interface {
	Partition(ctx context.Context, p Partition) (PartitionInfo, error)
	// Headers returns at most limit batch headers, the first one being that of the
	// batch that holds offset. Offsets are bounded as in Engine.Read.
	Headers(ctx context.Context, p Partition, offset int64, limit int) ([]BatchHeader, error)
	// Trim removes all records below the offset before, and returns the earliest
	// offset that is left. Trimming what is trimmed already does nothing; above the
	// high watermark it fails with CodeOffsetOutOfRange. Producer state is kept.
	Trim(ctx context.Context, p Partition, before int64) (earliest int64, err error)
	// Roll closes the active segment and opens a new one, with a snapshot between
	// them. An empty active segment is left as it is.
	Roll(ctx context.Context, p Partition) (PartitionInfo, error)
}

// Producers looks up producers and expires them.
type Producers interface {
	// Producers returns, in the order of their ids, at most limit producers with live
	// state anywhere whose ids are above after.
	Producers(ctx context.Context, after int64, limit int) ([]ProducerSummary, error)
	// VisitProducers calls visit for each producer with live state in a topic, or in any
	// one for "", in the order of their ids, until that fails. The summaries are of what
	// is looked at. What begins or expires meanwhile may be visited or not.
	VisitProducers(ctx context.Context, topic string, visit func(*ProducerSummary) error) error
	// Producer returns the state of one producer wherever it is live, by topic name
	// and partition. It fails with CodeUnknownProducerID only for an id that was
	// never issued.
	Producer(ctx context.Context, id int64) ([]ProducerState, error)
	// ProducerOwner says whom an id was issued to. It fails like Producer, and is cheap.
	ProducerOwner(ctx context.Context, id int64) (string, error)
	// PartitionProducers is Producers for one partition.
	PartitionProducers(ctx context.Context, p Partition, after int64, limit int) ([]ProducerState, error)
	// RecentProducers returns the live producers of a partition whose newest batches came
	// last, newest first. It is cheap, however many there are.
	RecentProducers(ctx context.Context, p Partition, limit int) ([]ProducerState, error)
	// PartitionProducer fails with CodeUnknownProducerID when the producer has no
	// live state in the partition.
	PartitionProducer(ctx context.Context, p Partition, id int64) (ProducerState, error)
	// ExpireProducer replaces the producer's state by a tombstone, durably. It fails
	// like PartitionProducer.
	ExpireProducer(ctx context.Context, p Partition, id int64) error
}

// Snapshots takes, lists and verifies snapshots of producer state.
type Snapshots interface {
	// TakeSnapshots snapshots the partitions that f picks, now. A partition that has a
	// snapshot at its high watermark gets it replaced.
	TakeSnapshots(ctx context.Context, f SnapshotFilter) ([]Snapshot, error)
	// Snapshots lists them by topic name, partition and offset.
	Snapshots(ctx context.Context, f SnapshotFilter) ([]Snapshot, error)
	// Snapshot also returns the producers in it, tombstones left out, by id. It fails
	// with CodeUnknownSnapshot when there is none at the offset.
	Snapshot(ctx context.Context, p Partition, offset int64) (Snapshot, []ProducerState, error)
	DeleteSnapshot(ctx context.Context, p Partition, offset int64) error
	// VerifySnapshot rebuilds the state from the log up to the snapshot's offset,
	// from the newest older snapshot if the log no longer begins at 0, and compares.
	VerifySnapshot(ctx context.Context, p Partition, offset int64) (SnapshotDiff, error)
}

// Store is everything that a server needs of an engine.
type Store interface {
	Engine
	Topics
	Partitions
	Producers
	Snapshots
	Incidents
}
