package producer

import (
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store/sequence"
)

// sequenced is the lane of exactly-once delivery. Its rules:
//
//   - The undecided batches span at most maxInFlight batches, decided ones in between
//     included: a server remembers no more, and what it has forgotten it could only
//     confirm without an offset (Apache Fluss issue 2826).
//   - As soon as one has to be sent again, only the lowest is sent, until all have
//     been caught up with.
//   - A refusal as out of order counts as a loss at the server only if the batch was
//     the lowest when it was sent (Fluss issue 4121, librdkafka issue 4953).
//   - Sequences are given anew only under a new epoch, when no request is out and it
//     is certain of each batch that it is not stored (KAFKA-14034).
type sequenced struct {
	journal
	cfg laneConfig
	ids *identities

	id     identity
	joined bool // id is valid
	next   int64
	flight []*outBatch // undecided and what is decided between them, by sequence

	reset   ResetReason // wanted, "" for none
	newID   bool        // the reset needs another id, not only another epoch
	above   int64       // an epoch that the next one must be above
	resets  int         // since the last success
	resetAt time.Time
}

// lastStart is the highest sequence that a batch may begin at, so that its last
// record's is in range whatever its size.
const lastStart = sequence.Max - maxBatchCount

func newSequenced(cfg laneConfig, ids *identities) *sequenced {
	return &sequenced{cfg: cfg, ids: ids, above: -1}
}

func (l *sequenced) plan(now time.Time) plan {
	l.lapse(now)
	l.settle()
	if l.resetWanted() {
		p := plan{wake: l.deadline()}
		switch {
		case l.requestsOut():
			return p
		case now.Before(l.resetAt):
			p.wake = earlier(p.wake, l.resetAt)
			return p
		case !l.renumber():
			p.needID = true
			return p
		}
	}
	if len(l.flight) == 0 {
		return plan{needID: !l.join()}
	}
	p := plan{wake: l.deadline()}
	head := l.flight[0]
	switch {
	case head.state != toSend && head.state != toAsk:
	case now.Before(head.notBefore):
		p.wake = earlier(p.wake, head.notBefore)
	case head.state == toSend:
		l.launch(head)
		p.send = head
	default:
		head.state = asking
		p.ask = head
	}
	return p
}

// join follows the producer to its current identity. Nothing is in flight.
func (l *sequenced) join() bool {
	id, ok := l.ids.current()
	if ok && l.joined && id == l.id && l.next > lastStart {
		l.note(ResetExhausted, func() bool { id, ok = l.ids.bump(l.id, l.above); return ok }, &id)
	}
	if !ok {
		return false
	}
	if !l.joined || id != l.id {
		l.id, l.joined, l.next = id, true, 0
	}
	return true
}

// note runs a change of identity and reports it.
func (l *sequenced) note(why ResetReason, change func() bool, to *identity) {
	if change() {
		l.pending = append(l.pending, event{reset: &Reset{
			Topic: l.cfg.topic, Partition: l.cfg.partition, Reason: why,
			OldPID: l.id.pid, OldEpoch: l.id.epoch, PID: to.pid, Epoch: to.epoch,
		}})
	}
}

func (l *sequenced) room() bool {
	if !l.joined || len(l.flight) >= l.cfg.maxInFlight || l.next > lastStart || l.reset != "" {
		return false
	}
	// Under another identity only when nothing is undecided under this one.
	if id, ok := l.ids.current(); !ok || id != l.id {
		return false
	}
	for _, b := range l.flight {
		if b.state != inAir && b.state != acked {
			return false
		}
	}
	return true
}

func (l *sequenced) admit(b *outBatch, _ time.Time) {
	b.seq = Sequence{PID: l.id.pid, Epoch: l.id.epoch, BaseSeq: l.next}
	l.next += int64(b.count)
	l.flight = append(l.flight, b)
	l.launch(b)
}

func (l *sequenced) launch(b *outBatch) {
	b.state = inAir
	b.attempts++
	b.asHead = l.flight[0] == b
}

// lapse reports what has waited too long. What may be stored stays, to be resolved
// before anything new goes out.
func (l *sequenced) lapse(now time.Time) {
	for _, b := range l.flight {
		if b.reported || b.state == acked || b.state == hole || now.Before(b.created.Add(l.cfg.deliveryTimeout)) {
			continue
		}
		l.giveUp(b, "no acknowledgement within the delivery timeout", now)
	}
}

func (l *sequenced) giveUp(b *outBatch, detail string, now time.Time) {
	l.fail(b, b.failure(CodeDeliveryTimeout, detail))
	switch {
	case !b.mayBeStored():
		b.state = hole
	case b.state == toSend:
		b.state, b.notBefore = toAsk, now
	}
}

// settle lets go of what is decided at the low end. A success proves that all lower
// sequences of the epoch are stored too, which decides those that were given up on.
func (l *sequenced) settle() {
	proven := -1
	for i, b := range l.flight {
		if b.state == acked {
			proven = i
		}
	}
	for _, b := range l.flight[:proven+1] {
		if b.reported && (b.state == toSend || b.state == toAsk) {
			b.state = acked
		}
	}
	n := 0
	for n < len(l.flight) && l.flight[n].state == acked {
		n++
	}
	clear(l.flight[:n])
	l.flight = l.flight[n:]
	if len(l.flight) == 0 {
		l.flight = nil
	}
}

func (l *sequenced) requestsOut() bool {
	for _, b := range l.flight {
		if b.state == inAir || b.state == asking {
			return true
		}
	}
	return false
}

// deadline is when the next batch in flight is to be given up on.
func (l *sequenced) deadline() (t time.Time) {
	for _, b := range l.flight {
		if !b.reported && b.state != acked && b.state != hole {
			t = earlier(t, b.created.Add(l.cfg.deliveryTimeout))
		}
	}
	return t
}

func (l *sequenced) answered(b *outBatch, r appendResult, now time.Time) {
	if b.state != inAir {
		return // decided in the meantime
	}
	b.last = r.err
	v := judge(r.err)
	b.sent = b.sent || v != unsentYet
	switch v {
	case stored:
		b.state = acked
		l.resets = 0
		l.succeed(b, r)
	case unknown, unsentYet, later:
		b.lostSome = b.lostSome || v == unknown
		l.again(b, r.err, now)
	case ahead:
		l.outOfOrder(b, now)
	case splittable:
		l.tooLarge(b, r.err, now)
	case refused:
		l.refuse(b, r.err, now)
	case collided:
		l.newID = true // for when the hole is closed; nothing is certain of those before
		l.refuse(b, r.err, now)
	case expired:
		l.stateExpired(b, r.err, now)
	case neverIssued:
		// A log in which an id was never issued holds nothing of that id.
		l.requeue(b, now)
		l.want(ResetUnknownID, true, now)
	case fatal:
		l.fatal(b, r.err)
	}
}

// again sends b once more after a pause, or gives it up.
func (l *sequenced) again(b *outBatch, e *Error, now time.Time) {
	l.requeue(b, now.Add(l.cfg.backoff.delay(b.failures, e.RetryAfter)))
	b.failures++
	if l.cfg.retries >= 0 && b.attempts > l.cfg.retries && !b.reported {
		l.giveUp(b, "no acknowledgement within the allowed retries", now)
	}
}

// requeue sends b again from the given time on. A batch that has been reported is not
// sent but asked for.
func (l *sequenced) requeue(b *outBatch, at time.Time) {
	b.state, b.notBefore = toSend, at
	if b.reported {
		b.state = toAsk
	}
}

// outOfOrder judges a refusal by what had been acknowledged when b was sent.
func (l *sequenced) outOfOrder(b *outBatch, now time.Time) {
	l.requeue(b, now)
	if b.asHead && l.flight[0] == b {
		l.want(ResetGap, false, now)
	}
}

func (l *sequenced) tooLarge(b *outBatch, e *Error, now time.Time) {
	if b.count == 1 || b.lostSome || b.reported {
		l.refuse(b, e, now)
		return
	}
	l.split(b, e, now)
}

// split replaces b by parts with b's sequences, to be sent one by one.
func (l *sequenced) split(b *outBatch, e *Error, now time.Time) {
	limit := splitLimit(b, e)
	parts, err := b.split(limit, l.cfg.compressor)
	if err != nil {
		e.Err = err
		l.fail(b, e)
		b.state = hole
		return
	}
	l.flight = replaced(l.flight, b, parts, now)
	l.pending = append(l.pending, event{batch: b, parts: parts, limit: limit})
}

// refuse ends a batch that was refused for good. If the outcome of an earlier request
// is not known, the refusal says nothing about that one.
func (l *sequenced) refuse(b *outBatch, e *Error, now time.Time) {
	if b.lostSome && e.Code != CodeSequenceReused { // reused: another payload is stored
		b.refusal, b.state, b.notBefore = e, toAsk, now
		return
	}
	l.fail(b, e)
	b.state = hole
}

// stateExpired goes on from a tombstone. It tells which sequences had been stored, and
// keeps the epoch from ever adding more.
func (l *sequenced) stateExpired(b *outBatch, e *Error, now time.Time) {
	epoch, last := int64(-1), int64(-1)
	if p := e.Problem; p != nil {
		if p.LastEpoch != nil {
			epoch = *p.LastEpoch
		}
		if p.LastSeq.Value != nil {
			last = *p.LastSeq.Value
		}
		if p.LastSeq.Present && p.LastSeq.Value == nil {
			l.forgotten(b, epoch, now)
			return
		}
	}
	if epoch > l.id.epoch {
		l.fatal(b, e) // somebody else has gone on under this id
		return
	}
	l.requeue(b, now)
	l.want(ResetExpired, false, now)
	if epoch != l.id.epoch {
		return
	}
	for _, o := range l.flight {
		if o.lastSeq() <= last && o.state != hole && o.state != acked {
			o.state = acked
			l.succeed(o, appendResult{baseOffset: -1, duplicate: true})
		}
	}
}

// fatal stops the producer.
func (l *sequenced) fatal(b *outBatch, e *Error) {
	own := *e
	if b.lostSome {
		own.Outcome = openapi.Unknown
	}
	l.fail(b, &own)
	b.state = hole
	l.pending = append(l.pending, event{fatal: e})
}

func (l *sequenced) abandon(code Code, detail string, cause *Error) {
	for _, b := range l.flight {
		e := b.failure(code, detail)
		if cause != nil {
			e.Err = cause
		}
		l.fail(b, e)
	}
	l.flight = nil
	l.joined = false
}
