package producer

import (
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store/batch"
)

// state is where a batch stands after its sequences have been fixed.
type state uint8

const (
	young  state = iota // without sequences yet
	inAir               // a request is out
	toSend              // to be sent (again)
	toAsk               // the server is to be asked whether it is stored
	asking              // that question is out
	acked               // stored
	hole                // not stored, its sequences are to be skipped
)

// outBatch is a batch on its way. Sequence and bytes are fixed when it is first sent
// and stay as they are until its outcome is known, but for a reset, which happens
// only once it is certain that it is not stored.
type outBatch struct {
	delivery *delivery
	calls    []func(Ack, error) // one a record, nil: none has a callback
	held     int                // bytes of the buffer
	created  time.Time
	count    int32
	payload  int            // bytes of keys, values and headers
	builder  *batch.Builder // while records are added

	data []byte // encoded
	body []byte // data as it is sent
	enc  Encoding

	seq       Sequence
	state     state
	notBefore time.Time // of toSend and toAsk
	asHead    bool      // all earlier sequences were acknowledged when it was last sent
	sent      bool      // a request may have reached the server under these sequences
	lostSome  bool      // of one of them the outcome is not known
	attempts  int
	failures  int // in a row, for the backoff
	reported  bool
	refusal   *Error // for good, waiting for an answer on what an earlier request did
	last      *Error // of the last attempt
}

// lastSeq is the sequence of the last record.
func (b *outBatch) lastSeq() int64 { return b.seq.BaseSeq + int64(b.count) - 1 }

// mayBeStored reports whether a request with the present sequences may have reached
// the server.
func (b *outBatch) mayBeStored() bool { return b.sent || b.state == inAir }

// outcome is what can be said of a batch that is given up on.
func (b *outBatch) outcome() openapi.Outcome {
	if b.mayBeStored() {
		return openapi.Unknown
	}
	return openapi.NotApplied
}

// failure makes the error for a batch that is given up on. It names the request that
// failed last.
func (b *outBatch) failure(code Code, detail string) *Error {
	e := &Error{Code: code, Detail: detail, Outcome: b.outcome()}
	if b.last != nil {
		e.Err, e.RequestID, e.Status = b.last, b.last.RequestID, b.last.Status
	}
	return e
}

// fix encodes the records. It returns the builder, to be used again.
func (b *outBatch) fix(z *compressor) *batch.Builder {
	out := b.builder
	b.builder = nil
	b.data = out.Build().Bytes
	b.body, b.enc = z.encode(b.data)
	return out
}

// split cuts a batch of two or more records into parts of at most limit payload
// bytes, as far as single records allow it, and of at least two parts. The futures
// of the batch go over to the parts.
func (b *outBatch) split(limit int, z *compressor) ([]*outBatch, error) {
	if limit <= 0 || limit >= b.payload {
		limit = b.payload / 2
	}
	r, err := batch.NewReader(b.data)
	if err != nil {
		return nil, err
	}
	var parts []*outBatch
	var cur *outBatch
	var builder batch.Builder
	var rec batch.Record
	seal := func() {
		cur.data = builder.Build().Bytes
		cur.body, cur.enc = z.encode(cur.data)
		builder.Reset()
	}
	for i := int32(0); ; i++ {
		more, err := r.Next(&rec)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		n := rec.PayloadBytes()
		if cur == nil || cur.payload+n > limit || cur.count == (b.count+1)/2 {
			if cur != nil {
				seal()
			}
			cur = b.part(i)
			parts = append(parts, cur)
		}
		builder.Add(&rec)
		cur.add(n, b.calls, i)
	}
	seal()
	b.share(parts)
	return parts, nil
}

// part begins a part of b at record i, with b's sequence for it.
func (b *outBatch) part(i int32) *outBatch {
	d := &delivery{done: make(chan struct{}), topic: b.delivery.topic, partition: b.delivery.partition}
	b.delivery.parts = append(b.delivery.parts, part{first: i, d: d})
	seq := b.seq
	seq.BaseSeq += int64(i)
	return &outBatch{delivery: d, created: b.created, seq: seq, state: toSend, last: b.last}
}

func (b *outBatch) add(payload int, calls []func(Ack, error), i int32) {
	b.count++
	b.payload += payload
	if calls != nil {
		b.calls = append(b.calls, calls[i])
	}
}

// share divides the bytes that b holds of the buffer.
func (b *outBatch) share(parts []*outBatch) {
	left := b.held
	for _, p := range parts[1:] {
		p.held = b.held / len(parts)
		left -= p.held
	}
	parts[0].held = left
	b.held = 0
}
