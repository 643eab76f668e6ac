package store

import (
	"errors"
	"fmt"
	"time"
)

// Code classifies an [Error]. Codes are part of the contract: clients act on them.
type Code string

// Codes of topics, partitions and offsets.
const (
	CodeUnknownTopic     Code = "unknown-topic"
	CodeUnknownPartition Code = "unknown-partition"
	CodeTopicExists      Code = "topic-exists"
	CodeTopicDeleting    Code = "topic-deleting"
	CodeInvalidArgument  Code = "invalid-argument"
	CodeTooLarge         Code = "too-large"
	CodeRecordsTrimmed   Code = "records-trimmed"
	CodeOffsetOutOfRange Code = "offset-out-of-range"
	CodeRecordsDamaged   Code = "records-damaged"
	CodeUnknownSnapshot  Code = "unknown-snapshot"
	CodeVersionMismatch  Code = "version-mismatch"
)

// Codes of the append rule (package sequence) and of producers.
const (
	CodeIdempotenceRequired Code = "idempotence-required"
	CodeUnknownProducerID   Code = "unknown-producer-id"
	CodeForbidden           Code = "forbidden" // the id was issued to somebody else
	CodeProducersExhausted  Code = "producers-exhausted"
	CodeSequenceReused      Code = "sequence-reused"
	CodeSequenceOverlap     Code = "sequence-overlap"
	CodeOutOfOrderSequence  Code = "out-of-order-sequence"
	CodeProducerFenced      Code = "producer-fenced"
	CodeProducerExpired     Code = "producer-expired"
)

// Codes of an engine that cannot serve right now.
const (
	CodeOverloaded    Code = "overloaded"
	CodeStorageFull   Code = "storage-full"
	CodeStorageFailed Code = "storage-failed"
	CodeCommitTimeout Code = "commit-timeout"
	CodeNotReady      Code = "not-ready"
	CodeDraining      Code = "draining"
	CodeInternal      Code = "internal"
)

// Error is a failure with a code. Detail may be shown to a client; Err is for the log.
type Error struct {
	Code   Code
	Detail string
	Err    error

	// Sequence is set for the codes of the append rule.
	Sequence *SequenceError
	// Pointer names the member that is at fault, as a JSON pointer (RFC 6901), for
	// CodeInvalidArgument.
	Pointer string
	// Limit and Actual are set for CodeTooLarge, in bytes or records.
	Limit, Actual int64
	// Bounds is set for CodeRecordsTrimmed and CodeOffsetOutOfRange.
	Bounds *Bounds
}

// SequenceError says what a producer needs to know to go on after a refusal. Which
// members are set depends on the code.
type SequenceError struct {
	ExpectedSeq int64 // out-of-order, overlap
	ReceivedSeq int64 // all
	// LastSeq is the last stored sequence, nil when nothing is known of the producer
	// (out-of-order), or nothing any more (expired).
	LastSeq *int64
	// CurrentEpoch is nil when nothing is known of the producer (out-of-order, fenced).
	CurrentEpoch *int64
	// LastEpoch is the producer's last epoch, or, if LastSeq is nil, one that it was not
	// above (expired).
	LastEpoch      int64
	ExpiredAt      time.Time // expired
	OriginalOffset int64     // reused
}

// Error gives code and detail, and the cause for the log.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches an [*Error] target of the same code, so that errors.Is(err,
// &Error{Code: c}) asks for a code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// Errorf makes an [*Error] of a code and a detail for the client.
func Errorf(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Detail: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of err: "" for nil, CodeInternal for an error that has none.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}
