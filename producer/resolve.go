package producer

import (
	"time"

	"github.com/oncelog/oncelog/openapi"
)

// This file is the part of [sequenced] that resolves what is not known and gives
// sequences anew.

// want asks for a reset: new epoch or id, sequences from 0. The first one comes at
// once, a repeated one backs off.
func (l *sequenced) want(why ResetReason, newID bool, now time.Time) {
	if l.reset == "" {
		l.reset = why
		l.resetAt = now
		if l.resets > 0 {
			l.resetAt = now.Add(l.cfg.backoff.delay(l.resets-1, 0))
		}
	}
	l.newID = l.newID || newID
}

// resetWanted reports whether the flight cannot go on under its sequences. A hole
// waits until all before it are decided.
func (l *sequenced) resetWanted() bool {
	return l.reset != "" || (len(l.flight) > 0 && l.flight[0].state == hole)
}

// renumber moves what is left of the flight to a new identity, from sequence 0 on. No
// request is out, and nothing of what is left is stored or can be: the sequences
// before it are missing for good. It reports false when an id has to be allocated
// first.
func (l *sequenced) renumber() bool {
	why := l.reset
	switch {
	case why != "":
	case l.newID:
		why = ResetCollision
	default:
		why = ResetRefused
	}
	id, ok := l.id, false
	l.note(why, func() bool {
		if l.newID {
			id, ok = l.ids.replace(l.id)
		} else {
			id, ok = l.ids.bump(l.id, l.above)
		}
		return ok
	}, &id)
	if !ok {
		return false
	}
	l.id, l.next = id, 0
	l.reset, l.newID, l.above = "", false, -1
	l.resets++
	var left []*outBatch
	for _, b := range l.flight {
		if b.refusal != nil && !b.reported {
			l.fail(b, b.refusal)
		}
		if b.reported {
			continue // holes, and those given up on
		}
		b.seq = Sequence{PID: id.pid, Epoch: id.epoch, BaseSeq: l.next}
		l.next += int64(b.count)
		b.state, b.sent, b.lostSome, b.asHead = toSend, false, false, false
		left = append(left, b)
	}
	l.flight = left
	return true
}

// forgotten goes on where the server no longer knows what old producers have stored, only
// that none of them got beyond an epoch. It may be that this one never was there. Whether
// an earlier request of a batch was carried out will never be known then, so that batch must
// not be sent again.
func (l *sequenced) forgotten(b *outBatch, epoch int64, now time.Time) {
	l.above = max(l.above, epoch)
	l.requeue(b, now)
	l.want(ResetExpired, false, now)
	for _, o := range l.flight {
		if o.lostSome && o.state != acked && o.state != hole && o.state != inAir {
			l.undecidable(o) // and what may be stored behind it
			return
		}
	}
}

// found takes the answer to the question whether b, the lowest in flight, is stored.
func (l *sequenced) found(b *outBatch, r askResult, now time.Time) {
	if b.state != asking {
		return
	}
	switch {
	case r.err == nil && r.epoch > l.id.epoch:
		l.fatal(b, &Error{
			Code: CodeProducerFenced, Outcome: openapi.Unknown, FromServer: true,
			Detail: "a higher epoch of the same producer id is in use",
		})
	case r.err == nil && r.epoch == l.id.epoch && r.last >= b.lastSeq():
		l.foundStored(b, r)
	case r.err == nil, r.err.Code == CodeUnknownProducerID:
		l.notFound(b, now)
	case judge(r.err) == fatal:
		l.fatal(b, r.err)
	case judge(r.err) == refused && b.refusal == nil:
		b.state, b.notBefore = toSend, now // it may not be asked, so send it again
		b.failures++
	case judge(r.err) == refused:
		l.undecidable(b)
	default:
		b.state, b.notBefore = toAsk, now.Add(l.cfg.backoff.delay(b.failures, r.err.RetryAfter))
		b.failures++
	}
}

// foundStored takes b as stored if the remembered batches do not contradict it.
func (l *sequenced) foundStored(b *outBatch, r askResult) {
	offset := int64(-1)
	for _, k := range r.recent {
		if k.BaseSeq == b.seq.BaseSeq && k.LastSeq == b.lastSeq() {
			offset = k.BaseOffset
		}
	}
	if offset < 0 && b.seq.BaseSeq >= r.first {
		l.newID = true // its sequences are taken by something else
		l.undecidable(b)
		return
	}
	b.state = acked
	l.resets = 0
	l.succeed(b, appendResult{baseOffset: offset, duplicate: true})
}

// notFound goes on without b, of which the server has nothing. A request that is
// still under way may yet store it, until the next epoch fences it. So what follows
// under the same epoch must not be given new sequences if it may be stored behind b.
func (l *sequenced) notFound(b *outBatch, now time.Time) {
	switch {
	case b.refusal != nil && b.refusal.Code == CodeTooLarge && b.count > 1 && !b.reported:
		l.split(b, b.refusal, now)
	case b.refusal != nil:
		l.undecidable(b)
	case l.followed(b):
		b.state, b.notBefore = toSend, now
	default:
		b.state = hole
	}
}

// followed reports whether anything after b may be stored if b is, and still matters
// to a caller.
func (l *sequenced) followed(b *outBatch) bool {
	for _, o := range l.flight {
		if o != b && !o.reported && o.mayBeStored() {
			return true
		}
	}
	return false
}

// undecidable ends a batch that was refused after the answer to an earlier request had
// been lost, and with it what may have been stored behind it.
func (l *sequenced) undecidable(b *outBatch) {
	e := *b.failureOr(b.refusal)
	e.Outcome = openapi.Unknown
	l.fail(b, &e)
	b.state = hole
	for _, o := range l.flight {
		if o != b && !o.reported && o.mayBeStored() {
			l.fail(o, o.failure(CodeUndecided, "an earlier batch was refused after one of its answers had been lost"))
			if o.state != inAir {
				o.state = hole
			}
		}
	}
}

func (b *outBatch) failureOr(e *Error) *Error {
	if e != nil {
		return e
	}
	return b.failure(CodeUndecided, "the answers of the server contradict each other")
}
