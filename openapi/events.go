package openapi

// ServerEvent is what GET /events tells every second.
type ServerEvent struct {
	// Another one each time that the server starts: numbers of events and totals begin anew.
	Instance string `json:"instance" validate:"required" example:"5f0c1b2a9c3e4d58"`
	// When the server started.
	StartedAt string `json:"startedAt" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// When the event was made.
	At string `json:"at" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// The time since the event before, in milliseconds.
	IntervalMs int64 `json:"intervalMs" validate:"required" example:"1000"`
	// Whether all is well and, if not, what to do.
	Diagnosis Diagnosis `json:"diagnosis" validate:"required"`
	// Counts since the server started.
	Totals EventTotals `json:"totals" validate:"required"`
	// Since the event before, a second.
	PerSecond EventRates `json:"perSecond" validate:"required"`
	// The commits since the event before.
	Commits EventCommits `json:"commits" validate:"required"`
	// Sizes of the store and the disk.
	Store EventStore `json:"store" validate:"required"`
	// How many event streams are open, of records or of these events.
	Streams int64 `json:"streams" validate:"required" example:"1"`
	// How many batches are held for their predecessors.
	Parked int64 `json:"parked" validate:"required" example:"0"`
	// Below it lie all producer ids that are issued or reserved.
	ProducerIDMark int64 `json:"producerIdMark" validate:"required" example:"1000"`
	// What was not simply stored since the event before, oldest first: the last few.
	Incidents []Incident `json:"incidents" validate:"required" maxItems:"8"`
} // @name ServerEvent

// Diagnosis says in plain sentences how the server is doing.
type Diagnosis struct {
	// The worst level of its findings; ok when there is none.
	Level string `json:"level" validate:"required" enums:"ok,attention,trouble" example:"ok"`
	// A sentence that says it all.
	Sentence string `json:"sentence" validate:"required" example:"Nothing lost, nothing doubled."`
	// What to do, or what else there is to know.
	Advice string `json:"advice" validate:"required" example:"37 duplicates were absorbed since the server started."`
	// What is not well, worst first.
	Findings []Finding `json:"findings" validate:"required" maxItems:"16"`
} // @name Diagnosis

// Finding is one thing that is not well.
type Finding struct {
	// Whether something has to be done about it.
	Level string `json:"level" validate:"required" enums:"attention,trouble" example:"trouble"`
	// What it is: a problem code, or one of lasting-gap, disk-low, commits-slow and
	// producers-many.
	Code string `json:"code" validate:"required" example:"lasting-gap"`
	// What is the matter.
	Sentence string `json:"sentence" validate:"required" example:"Producer 7 has left a gap in orders/0: sequences 3 to 4 are missing."`
	// What to do.
	Advice string `json:"advice" validate:"required" example:"Its sender has to send them again, from sequence 3 on."`
	// The topic that it is about.
	Topic string `json:"topic,omitzero" example:"orders"`
	// The partition that it is about.
	Partition *int `json:"partition,omitzero" minimum:"0" maximum:"1023" example:"0"`
	// The producer that it is about.
	PID *int64 `json:"pid,omitzero" example:"7"`
} // @name Finding

// EventTotals count since the server started.
type EventTotals struct {
	// Batches stored.
	Appends int64 `json:"appends" validate:"required" example:"1"`
	// Records stored.
	Records int64 `json:"records" validate:"required" example:"3"`
	// Bytes stored.
	Bytes int64 `json:"bytes" validate:"required" example:"312"`
	// Batches recognised as stored before.
	Duplicates int64 `json:"duplicates" validate:"required" example:"1"`
	// Batches that were held for their predecessors.
	Held int64 `json:"held" validate:"required" example:"0"`
	// Refusals of batches that may have overtaken others.
	PassingGaps int64 `json:"passingGaps" validate:"required" example:"0"`
	// Refusals that mean missing records.
	LastingGaps int64 `json:"lastingGaps" validate:"required" example:"0"`
	// Batches refused because of a newer epoch.
	Fenced int64 `json:"fenced" validate:"required" example:"0"`
	// Batches refused because their producer had expired.
	Expired int64 `json:"expired" validate:"required" example:"0"`
	// Batches refused because their sequences are those of another payload.
	Reused int64 `json:"reused" validate:"required" example:"0"`
	// Batches refused because they overlap stored ones.
	Overlaps int64 `json:"overlaps" validate:"required" example:"0"`
	// Durable transactions.
	Commits int64 `json:"commits" validate:"required" example:"1"`
} // @name EventTotals

// EventRates count a second, rounded.
type EventRates struct {
	// Batches stored.
	Appends int64 `json:"appends" validate:"required" example:"1"`
	// Records stored.
	Records int64 `json:"records" validate:"required" example:"3"`
	// Bytes stored.
	Bytes int64 `json:"bytes" validate:"required" example:"312"`
} // @name EventRates

// EventCommits describes durable transactions.
type EventCommits struct {
	// How many there were.
	Count int64 `json:"count" validate:"required" example:"1"`
	// How long one took on average, in microseconds; 0 when there was none.
	MeanMicros int64 `json:"meanMicros" validate:"required" example:"812"`
	// What 99 % of them did not exceed, in microseconds; 0 when there was none.
	P99Micros int64 `json:"p99Micros" validate:"required" example:"1400"`
} // @name EventCommits

// EventStore tells sizes in bytes.
type EventStore struct {
	// The size of the store on disk.
	Bytes int64 `json:"bytes" validate:"required" example:"16777216"`
	// What of it is free for new data.
	FreeBytes int64 `json:"freeBytes" validate:"required" example:"16384000"`
	// What is free on the disk; absent when that is not known.
	DiskFreeBytes *int64 `json:"diskFreeBytes,omitzero" example:"1073741824"`
} // @name EventStore

// PartitionEvent is what GET /events tells of the partition that is looked at, when it
// changes.
type PartitionEvent struct {
	// The topic.
	Topic string `json:"topic" validate:"required" example:"orders"`
	// The partition.
	Partition int `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// The first offset that is kept.
	EarliestOffset int64 `json:"earliestOffset" validate:"required" example:"0"`
	// The offset that the next record will get: the high watermark.
	NextOffset int64 `json:"nextOffset" validate:"required" example:"3"`
	// The stored bytes.
	Bytes int64 `json:"bytes" validate:"required" example:"312"`
	// How many segments there are.
	Segments int `json:"segments" validate:"required" example:"1"`
	// How many producers have live state.
	Producers int `json:"producers" validate:"required" example:"1"`
	// How many batches are held for their predecessors.
	Parked int `json:"parked" validate:"required" example:"0"`
	// Producers that have written lately or been refused, by pid.
	Lines []ProducerLine `json:"lines" validate:"required" maxItems:"16"`
} // @name PartitionEvent

// ProducerEvent is what GET /events tells of the producer that is looked at, when it
// changes.
type ProducerEvent struct {
	// The producer id.
	PID int64 `json:"pid" validate:"required" example:"7"`
	// Its state in the partitions that know it, by topic and partition.
	Lines []ProducerLine `json:"lines" validate:"required" maxItems:"64"`
	// In how many partitions it has state.
	Partitions int `json:"partitions" validate:"required" example:"1"`
	// Its last refused appends, newest first.
	Rejected []Incident `json:"rejected" validate:"required" maxItems:"16"`
} // @name ProducerEvent

// ProducerLine is a producer in a partition and what happened to it there lately.
type ProducerLine struct {
	PartitionProducer
	// What of it was not simply stored, newest first.
	Incidents []Incident `json:"incidents" validate:"required" maxItems:"8"`
} // @name ProducerLine
