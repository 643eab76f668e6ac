package producer

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/oncelog/oncelog/openapi"
)

// verdict is what an answer means for the batch that was sent.
type verdict uint8

const (
	// stored: now or before.
	stored verdict = iota
	// unknown: it may be stored. Only the same again finds out.
	unknown
	// unsentYet: the request did not leave this machine.
	unsentYet
	// later: refused, and the same may be taken in a moment.
	later
	// ahead: refused because an earlier sequence is missing.
	ahead
	// splittable: refused as too large.
	splittable
	// refused: for good, by what it is.
	refused
	// expired: refused because the server has let the producer's state go, and has
	// said what it had stored.
	expired
	// neverIssued: the server does not know the producer id.
	neverIssued
	// collided: the sequences are taken by another payload or other boundaries.
	collided
	// fatal: nothing that this producer sends will be taken any more.
	fatal
)

// judge is the retry table. Statuses that a proxy may have sent, or that a server
// may send after the commit, all mean unknown, whatever their text: a request that
// was doubled on its way has two outcomes and one answer.
func judge(e *Error) verdict {
	switch {
	case e == nil:
		return stored
	case !e.FromServer:
		return judgeForeign(e)
	case e.Status == http.StatusRequestTimeout, e.Status == http.StatusTooManyRequests, e.Status >= 500:
		if e.Code == CodeProducersExhausted {
			return fatal
		}
		return unknown
	case e.Outcome != openapi.NotApplied:
		return unknown
	}
	switch e.Code {
	case CodeOutOfOrderSequence:
		return ahead
	case CodeTooLarge:
		return splittable
	case CodeProducerExpired:
		return expired
	case CodeUnknownProducerID:
		return neverIssued
	case CodeSequenceReused, CodeSequenceOverlap:
		return collided
	case CodeProducerFenced, CodeUnauthenticated:
		return fatal
	default:
		if e.Retryable {
			return later
		}
		return refused
	}
}

// judgeForeign judges what no oncelog server has said. A proxy's 4xx is no proof that
// an earlier request was not carried out, and may pass, so it counts as unknown.
func judgeForeign(e *Error) verdict {
	switch {
	case e.Code == CodeInvalidArgument:
		return refused
	case e.Status == http.StatusRequestEntityTooLarge && e.Err == nil:
		return splittable // of an answer that was cut off, the status alone proves nothing
	case e.Status == 0 && e.Outcome == openapi.NotApplied:
		return unsentYet
	}
	return unknown
}

// backoff is how long to wait before trying again: base, doubled per failure up to
// max, plus or minus a fifth, so that many clients do not come back as one (Kafka's
// retry.backoff.ms, KIP-580).
type backoff struct {
	base, max time.Duration
}

var defaultBackoff = backoff{base: 100 * time.Millisecond, max: time.Second}

// delay is the wait after so many earlier failures. The server's own word counts
// when it asks for longer.
func (b backoff) delay(failures int, retryAfter time.Duration) time.Duration {
	d := b.max
	if failures < 30 && b.base<<failures < b.max {
		d = b.base << failures
	}
	d += time.Duration((rand.Float64()*0.4 - 0.2) * float64(d))
	return max(d, retryAfter)
}
