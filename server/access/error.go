package access

import (
	"fmt"
	"strings"
)

// Codes of an [Error]. They are problem codes of the HTTP contract.
const (
	CodeUnauthenticated = "unauthenticated"
	CodeForbidden       = "forbidden"
	CodeRateLimited     = "rate-limited"
)

// Error is why a request is refused.
type Error struct {
	Code   string
	Detail string // for the caller; it never has a secret in it
	// Challenge is the value of WWW-Authenticate, "" for none (RFC 6750 section 3).
	Challenge string
	// RetryAfter is in seconds; 0: no use in waiting.
	RetryAfter int64
}

// Error gives code and detail.
func (e *Error) Error() string { return e.Code + ": " + e.Detail }

const challenge = `Bearer realm="oncelog"`

// unauthenticated refuses credentials that are missing or not valid. Without any the
// challenge names no error.
func unauthenticated(detail string, given bool) *Error {
	e := &Error{Code: CodeUnauthenticated, Detail: detail, Challenge: challenge}
	if given {
		e.Challenge += fmt.Sprintf(`, error="invalid_token", error_description="%s"`, detail)
	}
	return e
}

// forbidden refuses what the caller's scopes and topic prefixes do not cover.
func forbidden(need Scope, detail string) *Error {
	return &Error{
		Code: CodeForbidden, Detail: detail,
		Challenge: fmt.Sprintf(`%s, error="insufficient_scope", scope="%s"`, challenge, strings.Join(need.Names(), " ")),
	}
}
