package producer

import (
	"time"

	"github.com/oncelog/oncelog/openapi"
)

// plain is the lane of the modes without sequences: at-least-once, and at-most-once
// when retries is 0.
type plain struct {
	journal
	cfg    laneConfig
	flight []*outBatch
}

func newPlain(cfg laneConfig) *plain { return &plain{cfg: cfg} }

func (l *plain) plan(now time.Time) plan {
	var p plan
	left := l.flight[:0]
	free := l.cfg.maxInFlight
	for _, b := range l.flight {
		if b.state == inAir {
			free--
		}
	}
	for _, b := range l.flight {
		due := b.created.Add(l.cfg.deliveryTimeout)
		if !b.reported && !now.Before(due) {
			l.fail(b, b.failure(CodeDeliveryTimeout, "no acknowledgement within the delivery timeout"))
		}
		if b.reported && b.state != inAir {
			continue
		}
		left = append(left, b)
		if !b.reported {
			p.wake = earlier(p.wake, due)
		}
		switch {
		case b.state != toSend || free <= 0: // a split may have made more than may be out
		case now.Before(b.notBefore):
			p.wake = earlier(p.wake, b.notBefore)
		case p.send == nil:
			b.state = inAir
			b.attempts++
			p.send = b
			free--
		default:
			p.wake = now // one at a time, and the next at once
		}
	}
	clear(l.flight[len(left):])
	l.flight = left
	return p
}

func (l *plain) room() bool { return len(l.flight) < l.cfg.maxInFlight }

func (l *plain) admit(b *outBatch, _ time.Time) {
	b.state = inAir
	b.attempts++
	l.flight = append(l.flight, b)
}

func (l *plain) answered(b *outBatch, r appendResult, now time.Time) {
	b.last = r.err
	v := judge(r.err)
	b.sent = b.sent || (v != unsentYet && v != later)
	b.state = toSend
	switch v {
	case stored:
		l.succeed(b, r)
	case splittable:
		if b.count > 1 && !b.reported {
			l.split(b, r.err, now)
			return
		}
		l.refuse(b, r.err)
	case unknown, unsentYet, later:
		if l.cfg.retries >= 0 && b.attempts > l.cfg.retries {
			l.refuse(b, r.err)
			return
		}
		b.lostSome = b.lostSome || v == unknown
		b.notBefore = now.Add(l.cfg.backoff.delay(b.failures, r.err.RetryAfter))
		b.failures++
	case fatal:
		l.refuse(b, r.err)
		l.pending = append(l.pending, event{fatal: r.err})
	default:
		l.refuse(b, r.err)
	}
}

// refuse reports e, whose own outcome speaks of the last request only.
func (l *plain) refuse(b *outBatch, e *Error) {
	own := *e
	if b.lostSome {
		own.Outcome = openapi.Unknown
	}
	l.fail(b, &own)
}

func (l *plain) split(b *outBatch, e *Error, now time.Time) {
	limit := splitLimit(b, e)
	parts, err := b.split(limit, l.cfg.compressor)
	if err != nil {
		e.Err = err
		l.refuse(b, e)
		return
	}
	l.flight = replaced(l.flight, b, parts, now)
	l.pending = append(l.pending, event{batch: b, parts: parts, limit: limit})
}

func (l *plain) found(*outBatch, askResult, time.Time) {}

func (l *plain) abandon(code Code, detail string, cause *Error) {
	for _, b := range l.flight {
		e := b.failure(code, detail)
		if cause != nil {
			e.Err = cause
		}
		l.fail(b, e)
	}
	l.flight = nil
}
