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
	Type     string `json:"type" validate:"required" example:"/problems/out-of-order-sequence"`
	Title    string `json:"title" validate:"required" example:"The batch is ahead of its predecessors"`
	Status   int    `json:"status" validate:"required" example:"409"`
	Detail   string `json:"detail" validate:"required" example:"base sequence 5 is 2 ahead of the expected 3; send what is missing first"`
	Instance string `json:"instance" validate:"required" example:"/topics/orders/partitions/0/batches"`
	Code     string `json:"code" validate:"required" example:"out-of-order-sequence"`
	// Retryable: the same request, unchanged, may succeed later.
	Retryable bool    `json:"retryable" validate:"required" example:"true"`
	Outcome   Outcome `json:"outcome" validate:"required" enums:"not-applied,applied,unknown" example:"not-applied"`
	RequestID string  `json:"requestId" validate:"required" example:"0b5c1f2e9d7a4c33"`

	ExpectedSeq    *int64        `json:"expectedSeq,omitzero" format:"int64"`
	ReceivedSeq    *int64        `json:"receivedSeq,omitzero" format:"int64"`
	LastSeq        NullableInt   `json:"lastSeq,omitzero" swaggertype:"integer" extensions:"x-nullable" format:"int64"`
	CurrentEpoch   NullableInt   `json:"currentEpoch,omitzero" swaggertype:"integer" extensions:"x-nullable" format:"int64"`
	Gap            *int64        `json:"gap,omitzero" format:"int64"`
	ExpiredAt      *string       `json:"expiredAt,omitzero" format:"date-time"`
	LastEpoch      *int64        `json:"lastEpoch,omitzero" format:"int64"`
	Action         *string       `json:"action,omitzero" enums:"bump-epoch"`
	OriginalOffset *int64        `json:"originalOffset,omitzero" format:"int64"`
	Limit          *int64        `json:"limit,omitzero" format:"int64"`
	Actual         *int64        `json:"actual,omitzero" format:"int64"`
	EarliestOffset *int64        `json:"earliestOffset,omitzero" format:"int64"`
	NextOffset     *int64        `json:"nextOffset,omitzero" format:"int64"`
	Errors         []MemberError `json:"errors,omitzero"`
} // @name Problem

// MemberError names a member of the request that is at fault.
type MemberError struct {
	// Pointer is a JSON pointer (RFC 6901) into the body, or a slash and the name of a query
	// parameter or header field.
	Pointer string `json:"pointer" validate:"required" example:"/records/0/value"`
	Detail  string `json:"detail" validate:"required" example:"exactly one of value, valueText and valueBase64 is needed"`
} // @name MemberError
