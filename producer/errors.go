package producer

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/oncelog/oncelog/openapi"
)

// Error is every failure of a request. errors.Is matches it with a [Code], and with
// an *Error of the same code.
type Error struct {
	Code Code
	// Op is the method and path of the request, without its query.
	Op string
	// Status is that of the answer, 0 when there was none.
	Status int
	// Retryable: the same request, unchanged, may succeed later.
	Retryable bool
	// Outcome says whether the request took effect. Unknown means that it may have:
	// only the same request again, with the same sequence and the same bytes, is safe.
	Outcome openapi.Outcome
	// RequestID is what the server has logged the request under.
	RequestID string
	Detail    string
	// RetryAfter is how long the server asks to be left alone, 0 when it does not say.
	RetryAfter time.Duration
	// FromServer: an oncelog server said so. False: the client or a proxy did.
	FromServer bool
	// Problem is the answer's body when FromServer is true, else nil.
	Problem *openapi.Problem
	// Err is the cause, when the client knows one.
	Err error
}

// Error gives operation, code, detail, outcome and request id on one line.
func (e *Error) Error() string {
	var s strings.Builder
	if e.Op != "" {
		s.WriteString(e.Op + ": ")
	}
	s.WriteString(string(e.Code))
	if e.Status != 0 {
		s.WriteString(" (" + strconv.Itoa(e.Status) + ")")
	}
	if e.Detail != "" {
		s.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		s.WriteString(": " + e.Err.Error())
	}
	if e.Outcome != "" {
		s.WriteString(" [outcome " + string(e.Outcome))
		if e.RequestID != "" {
			s.WriteString(", request " + e.RequestID)
		}
		s.WriteString("]")
	}
	return s.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches a [Code], and an *Error by its code.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case Code:
		return t == e.Code
	case *Error:
		return t.Code == e.Code
	}
	return false
}

// OutcomeOf says whether what failed with err took effect: openapi.Applied for nil,
// Unknown for an error that does not know.
func OutcomeOf(err error) openapi.Outcome {
	if err == nil {
		return openapi.Applied
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Outcome != "" {
		return e.Outcome
	}
	return openapi.Unknown
}
