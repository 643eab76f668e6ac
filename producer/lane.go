package producer

import (
	"time"

	"github.com/oncelog/oncelog/store/sequence"
)

// lane is the fate of one partition's batches from their first request to their
// outcome. It knows no goroutine, no clock and no network: the worker tells it what
// came back and what time it is, asks it what to do next, and passes on its events.
//
// sequenced is the lane of exactly-once, plain that of the other modes.
type lane interface {
	// plan says what is to be done now. It changes nothing that plan would not change
	// again, except that what it says to send or ask counts as being out.
	plan(now time.Time) plan
	// room reports whether admit may be called.
	room() bool
	// admit takes over a batch that is being sent for the first time.
	admit(b *outBatch, now time.Time)
	// answered tells what became of a request.
	answered(b *outBatch, r appendResult, now time.Time)
	// found tells what was answered to the question about b.
	found(b *outBatch, r askResult, now time.Time)
	// abandon reports every batch as failed with code. Nothing is sent after it.
	abandon(code Code, detail string, cause *Error)
	// events returns what has happened since the last call.
	events() []event
}

// plan is what a lane wants done.
type plan struct {
	send   *outBatch // send it
	ask    *outBatch // ask the server whether it is stored
	needID bool      // allocate a producer id
	wake   time.Time // when to plan again though nothing has happened; zero: never
}

// event is something that a lane has decided.
type event struct {
	batch *outBatch // with an outcome, or split
	ack   appendResult
	parts []*outBatch // of a batch that was split: it has no outcome of its own
	limit int         // payload bytes that the topic takes, 0: nothing was learned
	reset *Reset
	fatal *Error // the whole producer has to stop
}

// appendResult is the answer to an append request.
type appendResult struct {
	err        *Error // nil: stored
	baseOffset int64  // −1: no longer known
	duplicate  bool
}

// askResult is the answer to the question what a partition knows of the producer.
type askResult struct {
	err    *Error // CodeUnknownProducerID: it knows nothing
	epoch  int64
	first  int64 // sequence of the oldest remembered batch
	last   int64
	recent []sequence.Remembered // their ranges and offsets
}

// laneConfig is what lanes need of the config.
type laneConfig struct {
	topic           string
	partition       int
	maxInFlight     int
	retries         int
	deliveryTimeout time.Duration
	backoff         backoff
	compressor      *compressor
}

// journal gathers events. Both lanes embed it.
type journal struct {
	pending []event
}

func (j *journal) events() []event {
	out := j.pending
	j.pending = nil
	return out
}

// succeed reports that b is stored, unless it has been reported before: the first
// report counts.
func (j *journal) succeed(b *outBatch, r appendResult) {
	if !b.reported {
		b.reported = true
		j.pending = append(j.pending, event{batch: b, ack: r})
	}
}

// fail reports that b has failed, unless it has been reported before.
func (j *journal) fail(b *outBatch, err *Error) {
	if !b.reported {
		b.reported = true
		j.pending = append(j.pending, event{batch: b, ack: appendResult{err: err, baseOffset: -1}})
	}
}

// earlier is the earlier of two times of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// splitLimit is the payload that parts of b may have, from what the refusal said: the
// limit if it was the topic's maxBatchBytes, else 0.
func splitLimit(b *outBatch, e *Error) int {
	if e.Problem == nil || e.Problem.Limit == nil || e.Problem.Actual == nil || *e.Problem.Actual != int64(b.payload) {
		return 0
	}
	return int(*e.Problem.Limit)
}

// replaced gives the flight with the parts of a split batch in its place, to be sent from
// now on.
func replaced(flight []*outBatch, b *outBatch, parts []*outBatch, now time.Time) []*outBatch {
	out := make([]*outBatch, 0, len(flight)+len(parts))
	for _, o := range flight {
		if o != b {
			out = append(out, o)
			continue
		}
		for _, p := range parts {
			p.notBefore = now
		}
		out = append(out, parts...)
	}
	return out
}
