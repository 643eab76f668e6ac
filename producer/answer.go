package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/oncelog/oncelog/openapi"
)

// maxProblemBytes bounds what is read of an error's body.
const maxProblemBytes = 1 << 20

// maxRetryAfter bounds what a Retry-After is believed.
const maxRetryAfter = time.Hour

func op(r call) string { return r.method + " " + r.path }

// outcomeOf is what is known of a request whose answer is not.
func outcomeOf(r call) openapi.Outcome {
	if r.method == http.MethodGet || r.method == http.MethodHead {
		return openapi.NotApplied
	}
	return openapi.Unknown
}

// unsent is a request that could not be built.
func unsent(r call, id string, err error) *Error {
	return &Error{Code: CodeInvalidArgument, Op: op(r), Outcome: openapi.NotApplied, RequestID: id, Err: err}
}

// lost is a request without an answer. Whether it was carried out is unknown, unless
// no connection came about.
func lost(ctx context.Context, r call, id string, err error) *Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // Op has said the rest
	}
	e := &Error{Code: CodeUnreachable, Op: op(r), Retryable: true, Outcome: outcomeOf(r), RequestID: id, Err: err}
	e.blameContext(ctx)
	if o, ok := errors.AsType[*net.OpError](err); ok && o.Op == "dial" {
		e.Outcome = openapi.NotApplied
	}
	return e
}

// garbled is a 2xx whose body cannot be read or is no JSON of the contract.
func garbled(ctx context.Context, r call, id string, status int, err error) *Error {
	e := &Error{
		Code: CodeForeignAnswer, Op: op(r), Status: status, Retryable: true, Outcome: outcomeOf(r),
		RequestID: id, Detail: "the answer cannot be read", Err: err,
	}
	e.blameContext(ctx)
	return e
}

// blameContext tells apart a broken connection, the request timeout, and a caller
// that has gone. The context's own error is the cause then, whatever the transport
// made of it.
func (e *Error) blameContext(ctx context.Context) {
	cause := context.Cause(ctx)
	switch {
	case ctx.Err() == nil:
	case errors.Is(cause, CodeRequestTimeout):
		e.Code, e.Detail, e.Err = CodeRequestTimeout, "no answer in time", ctx.Err()
	case errors.Is(cause, ctx.Err()):
		e.Code, e.Err = CodeCanceled, ctx.Err()
	default:
		e.Code, e.Err = CodeCanceled, fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
}

// problem makes an [*Error] of an answer that is not 2xx.
func problem(ctx context.Context, r call, id string, resp *http.Response) *Error {
	e := &Error{
		Code: CodeForeignAnswer, Op: op(r), Status: resp.StatusCode, RequestID: id,
		RetryAfter: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxProblemBytes))
	}
	var p openapi.Problem
	if err == nil && isProblem(resp) && json.Unmarshal(body, &p) == nil && p.Code != "" && known(p.Outcome) {
		e.Code, e.Retryable, e.Outcome, e.Detail = Code(p.Code), p.Retryable, p.Outcome, p.Detail
		e.FromServer, e.Problem = true, &p
		if p.RequestID != "" {
			e.RequestID = p.RequestID
		}
		return e
	}
	e.Outcome, e.Retryable = outcomeOf(r), transient(resp.StatusCode)
	e.Detail = "an answer that is not from an oncelog server: " + resp.Status
	if l := resp.Header.Get("Location"); l != "" {
		e.Detail += ", redirected to " + l
	}
	if err != nil {
		e.Err = err
		e.blameContext(ctx)
	}
	return e
}

// known reports an outcome of the contract. With any other nobody could decide
// whether to send again.
func known(o openapi.Outcome) bool {
	return o == openapi.NotApplied || o == openapi.Applied || o == openapi.Unknown
}

func isProblem(resp *http.Response) bool {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && t == openapi.ProblemContentType
}

// transient reports statuses after which the same request may succeed, whoever sent
// them.
func transient(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooEarly ||
		status == http.StatusTooManyRequests || status >= 500
}

// retryAfter reads a Retry-After field (RFC 9110, section 10.2.3): seconds or a date.
func retryAfter(v string, now time.Time) time.Duration {
	if v == "" {
		return 0
	}
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		return min(time.Duration(s)*time.Second, maxRetryAfter)
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	return min(max(t.Sub(now), 0), maxRetryAfter)
}
