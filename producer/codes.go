package producer

// Code classifies an [Error]. A Code is itself an error, so that
//
//	errors.Is(err, producer.CodeProducerFenced)
//
// asks for one.
type Code string

// Error gives the code as text.
func (c Code) Error() string { return "oncelog: " + string(c) }

// Codes that the server sends (its closed list; /problems on the server explains
// each one).
const (
	CodeMalformedRequest     Code = "malformed-request"
	CodeInvalidArgument      Code = "invalid-argument"
	CodeUnsupportedMediaType Code = "unsupported-media-type"
	CodeNotAcceptable        Code = "not-acceptable"
	CodeNotFound             Code = "not-found"
	CodeMethodNotAllowed     Code = "method-not-allowed"
	CodeHeadersTooLarge      Code = "headers-too-large"
	CodeTooLarge             Code = "too-large"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeForbidden            Code = "forbidden"
	CodeCrossOrigin          Code = "cross-origin"
	CodeRateLimited          Code = "rate-limited"

	CodeUnknownTopic     Code = "unknown-topic"
	CodeUnknownPartition Code = "unknown-partition"
	CodeTopicExists      Code = "topic-exists"
	CodeTopicDeleting    Code = "topic-deleting"
	CodeVersionMismatch  Code = "version-mismatch"
	CodeRecordsTrimmed   Code = "records-trimmed"
	CodeRecordsDamaged   Code = "records-damaged"
	CodeOffsetOutOfRange Code = "offset-out-of-range"
	CodeUnknownSnapshot  Code = "unknown-snapshot"

	CodeIdempotenceRequired Code = "idempotence-required"
	CodeUnknownProducerID   Code = "unknown-producer-id"
	CodeProducersExhausted  Code = "producers-exhausted"
	CodeSequenceReused      Code = "sequence-reused"
	CodeSequenceOverlap     Code = "sequence-overlap"
	CodeOutOfOrderSequence  Code = "out-of-order-sequence"
	CodeProducerFenced      Code = "producer-fenced"
	CodeProducerExpired     Code = "producer-expired"

	CodeOverloaded    Code = "overloaded"
	CodeStorageFull   Code = "storage-full"
	CodeStorageFailed Code = "storage-failed"
	CodeCommitTimeout Code = "commit-timeout"
	CodeNotReady      Code = "not-ready"
	CodeDraining      Code = "draining"
	CodeInternal      Code = "internal"
)

// Codes that the client itself gives; Error.FromServer is false with them.
const (
	// CodeUnreachable: the request got no answer. The connection could not be made,
	// or it broke.
	CodeUnreachable Code = "unreachable"
	// CodeRequestTimeout: there was no answer within the request timeout.
	CodeRequestTimeout Code = "request-timeout"
	// CodeCanceled: the caller's context ended before there was an answer.
	CodeCanceled Code = "canceled"
	// CodeForeignAnswer: there was an answer that does not come from an oncelog
	// server, such as a proxy's error page, or that was cut off.
	CodeForeignAnswer Code = "foreign-answer"
)

// Codes of a [Producer]; Error.FromServer is false with them, and Error.Err is what
// the last request failed with, if there was one.
const (
	// CodeDeliveryTimeout: the record was not acknowledged within the delivery
	// timeout, or not within the number of retries. Unless the outcome says
	// not-applied it may be stored, now or a moment later.
	CodeDeliveryTimeout Code = "delivery-timeout"
	// CodeUndecided: an earlier batch was refused for good after one of its answers
	// had been lost, so that nobody can know what this one's requests have done.
	CodeUndecided Code = "undecided"
	// CodeBlocked: Send could not hand over the record within the longest time that
	// it may block, for want of room or of the topic's description.
	CodeBlocked Code = "blocked"
	// CodeClosed: the producer was closed before the record was acknowledged.
	CodeClosed Code = "closed"
)
