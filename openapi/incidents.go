package openapi

// Incident is what became of an append of a producer that was not simply stored.
type Incident struct {
	// When it arrived or, if it had to wait, when it was decided.
	At string `json:"at" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
	// The topic.
	Topic string `json:"topic" validate:"required" example:"orders"`
	// The partition.
	Partition int `json:"partition" validate:"required" minimum:"0" maximum:"1023" example:"0"`
	// The producer id.
	PID int64 `json:"pid" validate:"required" example:"0"`
	// The epoch that the batch came with.
	Epoch int64 `json:"epoch" validate:"required" example:"0"`
	// The sequence of its first record.
	BaseSeq int64 `json:"baseSeq" validate:"required" example:"5"`
	// The sequence of its last record.
	LastSeq int64 `json:"lastSeq" validate:"required" example:"6"`
	// Whether it had been stored before, was stored after it had waited for its
	// predecessors, or was refused.
	Outcome string `json:"outcome" validate:"required" enums:"duplicate,held,refused" example:"refused"`
	// The problem code of a refusal.
	Code string `json:"code,omitzero" enums:"out-of-order-sequence,sequence-overlap,sequence-reused,producer-fenced,producer-expired" example:"out-of-order-sequence"`
	// Of an out-of-order-sequence: that requests which overtake each other do not explain
	// it, so that records are missing.
	Lasting bool `json:"lasting,omitzero" example:"true"`
	// The sequence that would have been in order.
	ExpectedSeq *int64 `json:"expectedSeq,omitzero" example:"3"`
	// The epoch of the producer in the partition, or the last one if it had expired.
	CurrentEpoch *int64 `json:"currentEpoch,omitzero" example:"0"`
	// Where the batch is stored; of a sequence-reused, the batch that has its sequences.
	Offset *int64 `json:"offset,omitzero" example:"2"`
	// How long it was held for its predecessors.
	WaitedMs *int64 `json:"waitedMs,omitzero" example:"12"`
} // @name Incident

// HeldBatch is a batch that waits for its predecessors.
type HeldBatch struct {
	// The epoch that it came with.
	Epoch int64 `json:"epoch" validate:"required" example:"0"`
	// The sequence of its first record.
	BaseSeq int64 `json:"baseSeq" validate:"required" example:"5"`
	// The sequence of its last record.
	LastSeq int64 `json:"lastSeq" validate:"required" example:"6"`
	// Since when it waits.
	Since string `json:"since" validate:"required" format:"date-time" example:"2026-01-02T03:04:05.678Z"`
} // @name HeldBatch
