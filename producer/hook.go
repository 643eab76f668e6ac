package producer

import "time"

// Hook is told what a [Producer] does. Its methods are called from many goroutines
// and must not block. Embed [NoHook] to implement some of them.
type Hook interface {
	// OnAttempt follows each append request.
	OnAttempt(Attempt)
	// OnBatch follows the outcome of each batch.
	OnBatch(BatchOutcome)
	// OnReset follows each change of a partition's epoch or producer id but the first.
	OnReset(Reset)
}

// Attempt is one append request that is over.
type Attempt struct {
	Topic     string
	Partition int
	Sequence  Sequence // zero without sequences
	Records   int
	Bytes     int // of the body
	Number    int // 1 for the first
	Duration  time.Duration
	Err       *Error // nil: acknowledged
}

// BatchOutcome is the end of a batch.
type BatchOutcome struct {
	Topic     string
	Partition int
	Records   int
	Attempts  int
	Duration  time.Duration // since its first record
	Duplicate bool
	Err       *Error // nil: stored
}

// ResetReason says why a partition got a new epoch or producer id.
type ResetReason string

// The reasons.
const (
	// ResetRefused: a batch was refused for good, its sequences are skipped.
	ResetRefused ResetReason = "refused"
	// ResetGap: the server expects a sequence that it has acknowledged before. It has
	// lost records, or the topic was created anew.
	ResetGap ResetReason = "gap"
	// ResetExpired: the server has let the producer's state expire.
	ResetExpired ResetReason = "expired"
	// ResetUnknownID: the server has never issued the producer id.
	ResetUnknownID ResetReason = "unknown-id"
	// ResetCollision: somebody else has used the producer id.
	ResetCollision ResetReason = "collision"
	// ResetExhausted: the sequences or the epochs have been used up.
	ResetExhausted ResetReason = "exhausted"
)

// Reset is a change of a partition's producer id or epoch.
type Reset struct {
	Topic     string
	Partition int
	Reason    ResetReason
	OldPID    int64
	OldEpoch  int64
	PID       int64
	Epoch     int64
}

// NoHook is a [Hook] that does nothing.
type NoHook struct{}

// OnAttempt does nothing.
func (NoHook) OnAttempt(Attempt) {}

// OnBatch does nothing.
func (NoHook) OnBatch(BatchOutcome) {}

// OnReset does nothing.
func (NoHook) OnReset(Reset) {}
