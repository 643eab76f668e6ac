package openapi

// ProblemContentType is the media type of every error (RFC 9457).
const ProblemContentType = "application/problem+json"

// Outcome says what became of a request that was answered with a problem.
type Outcome string

// The outcomes.
const (
	NotApplied Outcome = "not-applied" // nothing changed
	Applied    Outcome = "applied"
	Unknown    Outcome = "unknown" // send the same again to find out
)

// Problem is the body of every error. The members after requestId come with some
// codes only.
type Problem struct {
	// A path on this server: the page about the code.
	Type string `json:"type" validate:"required" example:"/problems/out-of-order-sequence"`
	// What the code means, the same for every problem of the code.
	Title string `json:"title" validate:"required" example:"The batch is ahead of its predecessors"`
	// The HTTP status.
	Status int `json:"status" validate:"required" example:"409"`
	// What happened here, in words.
	Detail string `json:"detail" validate:"required" example:"base sequence 5 is 2 ahead of the expected 3; send what is missing first"`
	// The path of the request.
	Instance string `json:"instance" validate:"required" example:"/topics/orders/partitions/0/batches"`
	// What happened, for programs. The list is closed.
	Code string `json:"code" validate:"required" example:"out-of-order-sequence"`
	// Whether the same request, unchanged, may succeed later.
	Retryable bool `json:"retryable" validate:"required" example:"true"`
	// What became of the request.
	Outcome Outcome `json:"outcome" validate:"required" enums:"not-applied,applied,unknown" example:"not-applied"`
	// Names the request in the server's log; as in the header X-Request-Id.
	RequestID string `json:"requestId" validate:"required" example:"0b5c1f2e9d7a4c33"`

	// With sequence codes: the next new sequence.
	ExpectedSeq *int64 `json:"expectedSeq,omitzero" format:"int64"`
	// With sequence codes: the base sequence of the batch.
	ReceivedSeq *int64 `json:"receivedSeq,omitzero" format:"int64"`
	// With sequence codes: the last stored sequence; null for a producer that is new to the
	// partition.
	LastSeq NullableInt `json:"lastSeq,omitzero" swaggertype:"integer" extensions:"x-nullable" format:"int64"`
	// With sequence codes: the producer's epoch in the partition; null for a producer that is
	// new to it.
	CurrentEpoch NullableInt `json:"currentEpoch,omitzero" swaggertype:"integer" extensions:"x-nullable" format:"int64"`
	// With out-of-order-sequence: how many sequences are missing.
	Gap *int64 `json:"gap,omitzero" format:"int64"`
	// With producer-expired, and with unknown-producer-id for one that has expired: the time of it.
	ExpiredAt *string `json:"expiredAt,omitzero" format:"date-time"`
	// With expiredAt: the last epoch.
	LastEpoch *int64 `json:"lastEpoch,omitzero" format:"int64"`
	// With producer-expired: what to do.
	Action *string `json:"action,omitzero" enums:"bump-epoch"`
	// With sequence-reused: the offset of the batch that has the sequences.
	OriginalOffset *int64 `json:"originalOffset,omitzero" format:"int64"`
	// With too-large: the limit.
	Limit *int64 `json:"limit,omitzero" format:"int64"`
	// With too-large: the size, or where reading stopped.
	Actual *int64 `json:"actual,omitzero" format:"int64"`
	// With records-trimmed: the first offset that is kept.
	EarliestOffset *int64 `json:"earliestOffset,omitzero" format:"int64"`
	// With offset-out-of-range: the end of the partition.
	NextOffset *int64 `json:"nextOffset,omitzero" format:"int64"`
	// With malformed-request and invalid-argument: the members at fault.
	Errors []MemberError `json:"errors,omitzero"`
} // @name Problem

// MemberError names a member of the request that is at fault.
type MemberError struct {
	// A JSON pointer (RFC 6901) into the body, or a slash and the name of a query parameter or
	// header field.
	Pointer string `json:"pointer" validate:"required" example:"/records/0/value"`
	// What is wrong with it.
	Detail string `json:"detail" validate:"required" example:"exactly one of value, valueText and valueBase64 is needed"`
} // @name MemberError
