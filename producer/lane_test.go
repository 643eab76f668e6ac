package producer

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

// laneTest drives a sequenced lane by hand: what cannot be brought about through a
// server, or only by chance.
type laneTest struct {
	*testing.T
	lane *sequenced
	ids  *identities
	now  time.Time
	got  []event
}

func newLaneTest(t *testing.T) *laneTest {
	ids := &identities{}
	ids.set(identity{pid: 7, epoch: 1})
	z, _ := newCompressor(Identity)
	return &laneTest{
		T: t, ids: ids, now: time.Unix(1000, 0),
		lane: newSequenced(laneConfig{
			topic: "t", maxInFlight: 5, retries: unset, deliveryTimeout: time.Minute,
			backoff: defaultBackoff, compressor: z,
		}, ids),
	}
}

// admit lets batches of so many records go out.
func (l *laneTest) admit(counts ...int) (out []*outBatch) {
	l.Helper()
	l.plan()
	for _, n := range counts {
		if !l.lane.room() {
			l.Fatalf("no room for batch %d", len(out))
		}
		var b batch.Builder
		for range n {
			b.Add(&batch.Record{Value: []byte("v"), Timestamp: batch.NoTimestamp})
		}
		x := &outBatch{
			delivery: &delivery{done: make(chan struct{})}, created: l.now,
			count: int32(n), payload: n, data: b.Build().Bytes,
		}
		l.lane.admit(x, l.now)
		out = append(out, x)
	}
	return out
}

func (l *laneTest) plan() plan {
	p := l.lane.plan(l.now)
	l.got = append(l.got, l.lane.events()...)
	return p
}

// answer gives an answer with a code of the server, "" for success.
func (l *laneTest) answer(b *outBatch, code Code, change ...func(*Error)) {
	r := appendResult{baseOffset: 100 + b.seq.BaseSeq}
	if code != "" {
		t, _ := openapi.LookupProblemType(string(code))
		r.err = &Error{Code: code, Status: t.Status, Retryable: t.Retryable, Outcome: t.Outcome, FromServer: true}
		for _, f := range change {
			f(r.err)
		}
	}
	l.lane.answered(b, r, l.now)
	l.got = append(l.got, l.lane.events()...)
}

func (l *laneTest) lose(b *outBatch) {
	l.lane.answered(b, appendResult{err: &Error{Code: CodeUnreachable, Retryable: true, Outcome: openapi.Unknown}}, l.now)
	l.got = append(l.got, l.lane.events()...)
}

// outcome is what was reported of b: "stored", a code with its outcome, or "".
func (l *laneTest) outcome(b *outBatch) string {
	for _, e := range l.got {
		if e.batch == b && e.parts == nil {
			if e.ack.err == nil {
				return "stored"
			}
			return string(e.ack.err.Code) + " " + string(e.ack.err.Outcome)
		}
	}
	return ""
}

func (l *laneTest) wantOutcome(b *outBatch, want string) {
	l.Helper()
	if got := l.outcome(b); got != want {
		l.Errorf("the batch at %d: %q, want %q", b.seq.BaseSeq, got, want)
	}
}

// C30 and C31, where sequences do not wrap: the last ones are left unused and the
// next epoch begins.
func TestC30C31SequencesExhausted(t *testing.T) {
	l := newLaneTest(t)
	l.admit()
	l.lane.next = lastStart
	a := l.admit(3)[0]
	if a.seq.BaseSeq != lastStart || a.lastSeq() > sequence.Max || l.lane.room() {
		t.Fatalf("sent at %d", a.seq.BaseSeq)
	}
	l.answer(a, "")
	b := l.admit(1)[0]
	if (b.seq != Sequence{PID: 7, Epoch: 2, BaseSeq: 0}) {
		t.Errorf("goes on at %+v", b.seq)
	}
	if last := l.got[len(l.got)-1]; last.reset == nil || last.reset.Reason != ResetExhausted {
		t.Errorf("got %+v", last)
	}
}

// A collision in the middle must not renumber an earlier batch that is undecided.
func TestCollisionWaitsForEarlierBatches(t *testing.T) {
	for _, code := range []Code{CodeSequenceReused, CodeSequenceOverlap} {
		l := newLaneTest(t)
		bs := l.admit(1, 1, 1)
		l.lose(bs[0])
		l.answer(bs[1], code)
		l.answer(bs[2], CodeOutOfOrderSequence)
		l.wantOutcome(bs[1], string(code)+" not-applied")
		l.now = l.now.Add(time.Second)
		if p := l.plan(); p.send != bs[0] || p.needID {
			t.Fatalf("%s: planned %+v, want the first batch to be sent again", code, p)
		}
		if bs[0].seq != (Sequence{PID: 7, Epoch: 1, BaseSeq: 0}) {
			t.Fatalf("%s: the undecided batch was renumbered to %+v", code, bs[0].seq)
		}
		l.answer(bs[0], "")
		if p := l.plan(); !p.needID {
			t.Fatalf("%s: planned %+v, want another id", code, p)
		}
		l.ids.set(identity{pid: 8})
		if p := l.plan(); p.send != bs[2] || (bs[2].seq != Sequence{PID: 8}) {
			t.Errorf("%s: planned %+v at %+v", code, p, bs[2].seq)
		}
	}
}

// An overlap after a lost answer: the state tells whether it was this batch.
func TestOverlapAfterALostAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		found askResult
		want  string
	}{
		"stored":          {askResult{epoch: 1, first: 0, last: 1, recent: []sequence.Remembered{{BaseSeq: 0, LastSeq: 1, BaseOffset: 9}}}, "stored"},
		"stored long ago": {askResult{epoch: 1, first: 5, last: 9}, "stored"},
		"another's":       {askResult{epoch: 1, first: 0, last: 1, recent: []sequence.Remembered{{BaseSeq: 0}, {BaseSeq: 1, LastSeq: 1}}}, "sequence-overlap unknown"},
		"a higher epoch":  {askResult{epoch: 2}, "producer-fenced unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLaneTest(t)
			b := l.admit(2)[0]
			l.lose(b)
			l.now = l.now.Add(time.Second)
			l.plan()
			l.answer(b, CodeSequenceOverlap)
			l.wantOutcome(b, "")
			if p := l.plan(); p.ask != b {
				t.Fatalf("planned %+v, want to ask", p)
			}
			l.lane.found(b, tt.found, l.now)
			l.plan()
			l.wantOutcome(b, tt.want)
		})
	}
}

// What must not be asked is sent again; what cannot be asked for is asked for later.
func TestAskingFails(t *testing.T) {
	l := newLaneTest(t)
	b := l.admit(1)[0]
	l.lose(b)
	l.now = l.now.Add(2 * time.Minute)
	if p := l.plan(); p.ask != b {
		t.Fatalf("planned %+v, want to ask", p)
	}
	l.wantOutcome(b, "delivery-timeout unknown")
	l.lane.found(b, askResult{err: &Error{Code: CodeUnreachable, Retryable: true}}, l.now)
	if p := l.plan(); p.ask != nil || p.send != nil || p.wake.IsZero() {
		t.Errorf("planned %+v, want a pause", p)
	}
	l.now = l.now.Add(2 * time.Second)
	if p := l.plan(); p.ask != b {
		t.Fatalf("planned %+v, want to ask", p)
	}
	l.lane.found(b, askResult{err: &Error{Code: CodeForbidden, Status: 403, FromServer: true, Outcome: openapi.NotApplied}}, l.now)
	if p := l.plan(); p.send != b {
		t.Errorf("planned %+v, want to send again", p)
	}
	l.answer(b, "")
	l.plan()
	if !l.lane.room() || l.lane.next != 1 {
		t.Errorf("the partition does not go on")
	}
}

// A gap is evidence only if the batch was the lowest when it was sent.
func TestGapIsJudgedByWhatWasKnownWhenSent(t *testing.T) {
	l := newLaneTest(t)
	bs := l.admit(1, 1)
	l.answer(bs[0], "")
	l.plan() // bs[1] is the lowest now, but was not
	l.answer(bs[1], CodeOutOfOrderSequence)
	if p := l.plan(); p.send != bs[1] || bs[1].seq.Epoch != 1 {
		t.Fatalf("planned %+v, epoch %d", p, bs[1].seq.Epoch)
	}
	l.answer(bs[1], CodeOutOfOrderSequence)
	if p := l.plan(); p.send != bs[1] || (bs[1].seq != Sequence{PID: 7, Epoch: 2}) {
		t.Errorf("planned %+v at %+v, want the next epoch", p, bs[1].seq)
	}
}

// Resets that do not help come ever more slowly.
func TestResetsBackOff(t *testing.T) {
	l := newLaneTest(t)
	b := l.admit(1)[0]
	start := l.now
	for range 10 {
		l.answer(b, CodeProducerExpired)
		for p := l.plan(); p.send == nil; p = l.plan() {
			l.now = p.wake
		}
	}
	if d := l.now.Sub(start); d < 3*time.Second {
		t.Errorf("ten resets in %v", d)
	}
}

// A split keeps the sequences, and what was in flight behind it its own.
func TestSplitInTheMiddle(t *testing.T) {
	l := newLaneTest(t)
	bs := l.admit(1, 4, 2)
	l.answer(bs[0], "")
	l.answer(bs[1], CodeTooLarge)
	l.answer(bs[2], CodeOutOfOrderSequence)
	var sent []int64
	for range 3 {
		p := l.plan()
		sent = append(sent, p.send.seq.BaseSeq)
		l.answer(p.send, "")
	}
	if l.plan(); !slices.Equal(sent, []int64{1, 3, 5}) || len(l.lane.flight) != 0 || l.lane.next != 7 {
		t.Errorf("sent %v, next %d", sent, l.lane.next)
	}
	// After a lost answer the batch may be stored: it is asked for, and not split.
	l = newLaneTest(t)
	b := l.admit(4)[0]
	l.lose(b)
	l.now = l.now.Add(time.Second)
	l.plan()
	l.answer(b, CodeTooLarge)
	if p := l.plan(); p.ask != b {
		t.Fatalf("planned %+v, want to ask", p)
	}
	l.lane.found(b, askResult{err: &Error{Code: CodeUnknownProducerID, FromServer: true, Status: 404}}, l.now)
	if p := l.plan(); p.send == nil || p.send.count != 2 {
		t.Errorf("planned %+v, want the first half", p)
	}
}

// An expired state of a higher epoch is somebody else's.
func TestExpiredUnderAHigherEpochIsFatal(t *testing.T) {
	l := newLaneTest(t)
	b := l.admit(1)[0]
	l.answer(b, CodeProducerExpired, func(e *Error) { e.Problem = &openapi.Problem{LastEpoch: new(int64(9))} })
	l.wantOutcome(b, "producer-expired not-applied")
	if last := l.got[len(l.got)-1]; last.fatal == nil {
		t.Errorf("got %+v, want a fatal error", last)
	}
}

// Batches that were given up on are never sent again under new sequences: the old ones
// may yet arrive.
func TestGivenUpBatchesAreNotRenumbered(t *testing.T) {
	l := newLaneTest(t)
	bs := l.admit(1, 1)
	l.lose(bs[0])
	l.lose(bs[1])
	l.now = l.now.Add(time.Hour)
	if p := l.plan(); p.ask != bs[0] {
		t.Fatalf("planned %+v, want to ask", p)
	}
	l.lane.found(bs[0], askResult{err: &Error{Code: CodeUnknownProducerID, FromServer: true, Status: 404}}, l.now)
	if p := l.plan(); p.send != nil || p.ask != nil || len(l.lane.flight) != 0 {
		t.Errorf("planned %+v, %d in flight; want none", p, len(l.lane.flight))
	}
	l.wantOutcome(bs[1], "delivery-timeout unknown")
	if b := l.admit(1)[0]; (b.seq != Sequence{PID: 7, Epoch: 2}) {
		t.Errorf("goes on at %+v", b.seq)
	}
}

// The end of everything does not tell what an earlier request has done.
func TestFatalAfterALostAnswer(t *testing.T) {
	l := newLaneTest(t)
	bs := l.admit(1, 1)
	l.lose(bs[0])
	l.now = l.now.Add(time.Second)
	l.plan()
	l.answer(bs[0], CodeProducerFenced)
	l.lane.abandon(CodeProducerFenced, "", nil)
	l.got = append(l.got, l.lane.events()...)
	l.wantOutcome(bs[0], "producer-fenced unknown")
	l.wantOutcome(bs[1], "producer-fenced unknown")
}

// A connection that was refused cannot have stored anything.
func TestNeverReached(t *testing.T) {
	l := newLaneTest(t)
	b := l.admit(1)[0]
	l.lane.answered(b, appendResult{err: &Error{Code: CodeUnreachable, Retryable: true, Outcome: openapi.NotApplied}}, l.now)
	l.now = l.now.Add(time.Hour)
	l.plan()
	l.wantOutcome(b, "delivery-timeout not-applied")
	if b := l.admit(1)[0]; (b.seq != Sequence{PID: 7, Epoch: 2}) {
		t.Errorf("goes on at %+v", b.seq)
	}
}

func TestJudge(t *testing.T) {
	want := map[string]verdict{
		"out-of-order-sequence": ahead, "too-large": splittable, "producer-expired": expired,
		"unknown-producer-id": neverIssued, "sequence-reused": collided, "sequence-overlap": collided,
		"producer-fenced": fatal, "unauthenticated": fatal, "producers-exhausted": fatal,
		"topic-deleting": later,
	}
	for _, p := range openapi.ProblemTypes() {
		v, ok := want[p.Code]
		switch {
		case ok:
		case p.Status >= 500 || p.Status == 429 || p.Outcome != openapi.NotApplied:
			v = unknown
		default:
			v = refused
		}
		e := &Error{Code: Code(p.Code), Status: p.Status, Retryable: p.Retryable, Outcome: p.Outcome, FromServer: true}
		if got := judge(e); got != v {
			t.Errorf("%s is judged %d, want %d", p.Code, got, v)
		}
	}
	if got := judge(&Error{Code: "future", Status: 408, Outcome: openapi.NotApplied, FromServer: true}); got != unknown {
		t.Errorf("a server's 408 is judged %d, want unknown", got)
	}
	for _, status := range []int{302, 400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504} {
		if got := judge(&Error{Code: CodeForeignAnswer, Status: status, Outcome: openapi.Unknown}); got != unknown {
			t.Errorf("a proxy's %d is judged %d, want unknown", status, got)
		}
	}
	if got := judge(&Error{Code: CodeForeignAnswer, Status: 413, Outcome: openapi.Unknown}); got != splittable {
		t.Errorf("a proxy's 413 is judged %d", got)
	}
	cut := &Error{Code: CodeForeignAnswer, Status: 413, Outcome: openapi.Unknown, Err: io.ErrUnexpectedEOF}
	if got := judge(cut); got != unknown {
		t.Errorf("a 413 that was cut off: %v, want unknown", got)
	}
}

// Every code of the contract has a constant, and no other has.
func TestCodesAreTheContracts(t *testing.T) {
	have := []Code{
		CodeMalformedRequest, CodeInvalidArgument, CodeUnsupportedMediaType, CodeNotAcceptable, CodeNotFound,
		CodeMethodNotAllowed, CodeHeadersTooLarge, CodeTooLarge, CodeUnauthenticated, CodeForbidden, CodeCrossOrigin,
		CodeRateLimited, CodeUnknownTopic, CodeUnknownPartition, CodeTopicExists, CodeTopicDeleting, CodeVersionMismatch,
		CodeRecordsTrimmed, CodeRecordsDamaged, CodeOffsetOutOfRange, CodeUnknownSnapshot, CodeIdempotenceRequired,
		CodeUnknownProducerID, CodeProducersExhausted, CodeSequenceReused, CodeSequenceOverlap, CodeOutOfOrderSequence,
		CodeProducerFenced, CodeProducerExpired, CodeOverloaded, CodeStorageFull, CodeStorageFailed, CodeCommitTimeout,
		CodeNotReady, CodeDraining, CodeInternal,
	}
	var want []Code
	for _, p := range openapi.ProblemTypes() {
		want = append(want, Code(p.Code))
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("constants %v\nthe contract has %v", have, want)
	}
}
