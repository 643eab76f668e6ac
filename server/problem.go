package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
)

// Codes that only the server knows; the engine's are in package store.
const (
	codeMalformed            = "malformed-request"
	codeUnsupportedMediaType = "unsupported-media-type"
	codeNotAcceptable        = "not-acceptable"
	codeNotFound             = "not-found"
	codeMethodNotAllowed     = "method-not-allowed"
	codeHeadersTooLarge      = "headers-too-large"
	codeCrossOrigin          = "cross-origin"
)

const headerRetryAfter = "Retry-After"

// problem is an error with a code that the server itself has found.
type problem struct {
	code   string
	detail string
	errors []openapi.MemberError
	// limit and actual come with too-large.
	limit, actual int64
	header        [2]string // a field for the answer, "" for none
	cause         error     // for the log
}

func (p *problem) Error() string {
	s := p.code + ": " + p.detail
	if p.cause != nil {
		s += ": " + p.cause.Error()
	}
	return s
}

func (p *problem) Unwrap() error { return p.cause }

// malformed is a malformed-request problem about one place.
func malformed(pointer, detail string) *problem {
	return memberProblem(codeMalformed, []openapi.MemberError{{Pointer: pointer, Detail: detail}})
}

// invalid is an invalid-argument problem about one place.
func invalid(pointer, detail string) *problem {
	return memberProblem(string(store.CodeInvalidArgument), []openapi.MemberError{{Pointer: pointer, Detail: detail}})
}

// memberProblem is a problem about the places in errs, of which there is at least one.
func memberProblem(code string, errs []openapi.MemberError) *problem {
	detail := errs[0].Detail
	if errs[0].Pointer != "" {
		detail = errs[0].Pointer + ": " + detail
	}
	if n := len(errs) - 1; n > 0 {
		detail += "; and " + strconv.Itoa(n) + " more"
	}
	return &problem{code: code, detail: detail, errors: errs}
}

// fail answers a request with the problem that err is. When the work was given up
// because the client has gone, or an answer had begun, nothing more is written and the
// connection is cut: a handler that just returned would have net/http send 200.
func (s *Server) fail(x *exchange, r *http.Request, err error) {
	if x.status == 0 && ended(r, err) {
		err = access.Ended()
	}
	if errors.Is(err, errClientGone) || (r.Context().Err() != nil && isContext(err)) {
		x.gone, x.cause = true, err
		panic(http.ErrAbortHandler)
	}
	if x.status != 0 {
		x.cut, x.cause = true, err
		panic(http.ErrAbortHandler)
	}
	body, header := s.problemOf(err)
	x.code = body.Code
	if body.Status >= http.StatusInternalServerError || body.Code == codeMalformed {
		x.cause = err
	}
	body.Instance = r.URL.EscapedPath()
	body.RequestID = x.id
	h := x.Header()
	for _, k := range [...]string{"Etag", "Cache-Control", "Content-Length", "Location"} {
		h.Del(k) // set for an answer that did not come about
	}
	if header[0] != "" {
		h.Set(header[0], header[1])
	}
	if after := s.problems[body.Code].RetryAfter; after > 0 && header[0] != headerRetryAfter {
		h.Set(headerRetryAfter, strconv.Itoa(after))
	}
	x.body.hold.end() // before the rest is waited for
	if r.ProtoMajor == 1 && r.ContentLength != 0 && comeLater(body.Code) {
		if err := x.refuse(r, body); err != nil {
			x.cause = errors.Join(x.cause, err)
			panic(http.ErrAbortHandler)
		}
		return
	}
	if r.ProtoMajor == 1 && !x.drainBody(r) {
		h.Set("Connection", "close")
	}
	h["Content-Type"] = typeProblem
	h["Cache-Control"] = noStore
	if err := writeJSON(x, body.Status, body); err != nil {
		x.cause = errors.Join(x.cause, err)
		panic(http.ErrAbortHandler)
	}
}

// pointed makes JSON pointers of the names of parameters and header fields.
func pointed(errs []openapi.MemberError) []openapi.MemberError {
	out := slices.Clone(errs)
	for i := range out {
		if p := out[i].Pointer; p != "" && p[0] != '/' {
			out[i].Pointer = "/" + p
		}
	}
	return out
}

// problemOf makes the body of a problem, and a header field that belongs to it.
func (s *Server) problemOf(err error) (*openapi.Problem, [2]string) {
	if p, ok := errors.AsType[*problem](err); ok {
		body := s.newProblem(p.code, p.detail)
		body.Errors = pointed(p.errors)
		if p.code == string(store.CodeTooLarge) {
			body.Limit, body.Actual = &p.limit, &p.actual
		}
		return body, p.header
	}
	if e, ok := errors.AsType[*store.Error](err); ok {
		return s.storeProblem(e), [2]string{}
	}
	if e, ok := errors.AsType[*access.Error](err); ok {
		return s.accessProblem(e)
	}
	if errors.Is(err, context.Canceled) && s.draining.Err() != nil {
		return s.newProblem(string(store.CodeDraining), "the server is shutting down"), [2]string{}
	}
	return s.newProblem(string(store.CodeInternal), ""), [2]string{}
}

// newProblem starts a problem from the table. A code that is not in it is a bug.
func (s *Server) newProblem(code, detail string) *openapi.Problem {
	t, ok := s.problems[code]
	if !ok || code == string(store.CodeInternal) {
		t = s.problems[string(store.CodeInternal)]
		detail = "the server's log has the details under the request id"
	}
	if detail == "" {
		detail = t.Title
	}
	return &openapi.Problem{
		Type: t.Path(), Title: t.Title, Status: t.Status, Detail: detail,
		Code: t.Code, Retryable: t.Retryable, Outcome: t.Outcome,
	}
}

// accessProblem is the problem that a refusal is, with the challenge or the time to wait.
func (s *Server) accessProblem(e *access.Error) (*openapi.Problem, [2]string) {
	var header [2]string
	switch {
	case e.Challenge != "":
		header = [2]string{"WWW-Authenticate", e.Challenge}
	case e.RetryAfter > 0:
		header = [2]string{headerRetryAfter, strconv.FormatInt(e.RetryAfter, 10)}
	}
	return s.newProblem(e.Code, e.Detail), header
}

// storeProblem is the problem that an error of the engine is.
func (s *Server) storeProblem(e *store.Error) *openapi.Problem {
	p := s.newProblem(string(e.Code), e.Detail)
	switch e.Code {
	case store.CodeInvalidArgument:
		p.Errors = []openapi.MemberError{{Pointer: e.Pointer, Detail: e.Detail}}
	case store.CodeTooLarge:
		p.Limit, p.Actual = &e.Limit, &e.Actual
	case store.CodeRecordsTrimmed:
		if e.Bounds != nil {
			p.EarliestOffset = &e.Bounds.Earliest
		}
	case store.CodeOffsetOutOfRange:
		if e.Bounds != nil {
			p.NextOffset = &e.Bounds.HighWatermark
		}
	default:
		if e.Sequence != nil {
			addSequence(p, e.Code, e.Sequence)
		}
	}
	return p
}

// addSequence adds the members that let a producer go on without a further request.
func addSequence(p *openapi.Problem, code store.Code, q *store.SequenceError) {
	switch code {
	case store.CodeOutOfOrderSequence:
		gap := q.ReceivedSeq - q.ExpectedSeq
		p.ExpectedSeq, p.ReceivedSeq, p.Gap = &q.ExpectedSeq, &q.ReceivedSeq, &gap
		p.LastSeq, p.CurrentEpoch = openapi.NullOr(q.LastSeq), openapi.NullOr(q.CurrentEpoch)
	case store.CodeSequenceOverlap:
		p.ExpectedSeq, p.ReceivedSeq = &q.ExpectedSeq, &q.ReceivedSeq
	case store.CodeSequenceReused:
		p.OriginalOffset = &q.OriginalOffset
	case store.CodeProducerFenced:
		p.CurrentEpoch = openapi.NullOr(q.CurrentEpoch)
	case store.CodeProducerExpired, store.CodeUnknownProducerID:
		at := formatTime(q.ExpiredAt)
		p.ExpiredAt, p.LastEpoch, p.LastSeq = &at, &q.LastEpoch, openapi.NullOr(q.LastSeq)
		if code == store.CodeProducerExpired {
			p.Action = new("bump-epoch")
		}
	default: // no other code has any
	}
}
