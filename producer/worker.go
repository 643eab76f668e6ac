package producer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store/sequence"
)

// worker runs one partition: it moves batches from the accumulator to the lane, makes
// the requests that the lane plans, and hands out outcomes. The lane is its own, so
// that only the accumulator needs a lock.
type worker struct {
	p       *Producer
	acc     accumulator
	lane    lane
	wake    chan struct{} // holds one: something has happened
	answers chan answered
	out     int           // requests that have not come back
	turn    chan struct{} // closed when the append that was started last is on its way
}

// answered is a request that has come back.
type answered struct {
	batch *outBatch
	app   appendResult
	ask   *askResult // of a question; else it was an append
}

func newWorker(p *Producer, topic string, partition int) *worker {
	cfg := laneConfig{
		topic: topic, partition: partition,
		maxInFlight: p.cfg.maxInFlight, retries: p.cfg.retries,
		deliveryTimeout: p.cfg.deliveryTimeout, backoff: p.cfg.backoff, compressor: p.compressor,
	}
	w := &worker{
		p:       p,
		wake:    make(chan struct{}, 1),
		answers: make(chan answered, p.cfg.maxInFlight),
	}
	w.acc = accumulator{
		topic: topic, partition: partition, linger: p.cfg.linger,
		full: p.cfg.batchBytes, limit: maxBatchBytes, pending: map[*delivery]struct{}{},
	}
	w.lane = newPlain(cfg)
	if p.cfg.delivery == ExactlyOnce {
		w.lane = newSequenced(cfg, &p.ids)
	}
	return w
}

// nudge makes the worker look.
func (w *worker) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run works until the producer's context ends, and then until every request has come
// back.
func (w *worker) run() {
	defer w.p.running.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		w.emit() // before anything is sent: it may be that nothing should be
		if w.p.ctx.Err() != nil {
			break
		}
		until := w.work(time.Now())
		w.emit()
		if d := time.Until(until); until.IsZero() {
			timer.Reset(time.Hour)
		} else {
			timer.Reset(d)
		}
		select {
		case a := <-w.answers:
			w.take(a)
			w.takeMore()
		case <-w.wake:
		case <-timer.C:
		case <-w.p.ctx.Done():
		}
	}
	w.stop()
}

// takeMore takes what else has come back, so that it is judged together.
func (w *worker) takeMore() {
	for {
		select {
		case a := <-w.answers:
			w.take(a)
		default:
			return
		}
	}
}

func (w *worker) take(a answered) {
	w.out--
	now := time.Now()
	if a.ask != nil {
		w.lane.found(a.batch, *a.ask, now)
		return
	}
	w.lane.answered(a.batch, a.app, now)
}

// work does what there is to do and returns when to look again.
func (w *worker) work(now time.Time) (until time.Time) {
	timeout := w.p.cfg.deliveryTimeout
	for _, b := range w.acc.lapsed(now.Add(-timeout)) {
		w.finish(b, appendResult{err: b.failure(CodeDeliveryTimeout, "it could not be sent within the delivery timeout")})
	}
	p := w.lane.plan(now)
	until = p.wake
	if p.send != nil {
		w.send(p.send)
	}
	if p.ask != nil {
		w.ask(p.ask)
	}
	for w.lane.room() {
		b := w.acc.take(now)
		if b == nil {
			_, ready := w.acc.oldest()
			until = earlier(until, ready)
			break
		}
		w.acc.reuse(b.fix(w.p.compressor))
		w.lane.admit(b, now)
		w.send(b)
		until = earlier(until, b.created.Add(timeout))
	}
	begun, _ := w.acc.oldest()
	if !begun.IsZero() {
		until = earlier(until, begun.Add(timeout))
	}
	if p.needID && (!begun.IsZero() || !p.wake.IsZero()) {
		w.p.allocate()
	}
	return until
}

// send starts an append request. The batch's bytes are its own until it is back.
// Goroutines run in any order, the last one first by preference, so each waits for the
// one before it to get going; otherwise batches would overtake each other all the time.
func (w *worker) send(b *outBatch) {
	w.out++
	seq, number, before, mine := b.seq, b.attempts, w.turn, make(chan struct{})
	w.turn = mine
	w.p.running.Go(func() {
		if before != nil {
			<-before
		}
		err := w.p.enter()
		close(mine)
		if err != nil {
			w.answers <- answered{batch: b, app: appendResult{err: err}}
			return
		}
		r := w.append(b, seq, number)
		w.p.leave()
		w.answers <- answered{batch: b, app: r}
	})
}

func (w *worker) append(b *outBatch, seq Sequence, number int) appendResult {
	s := &seq
	if w.p.cfg.delivery != ExactlyOnce {
		s = nil
	}
	began := time.Now()
	r, err := w.p.client.AppendBatch(w.p.ctx, w.acc.topic, w.acc.partition, s, b.body, b.enc)
	e := asError(err)
	if e == nil {
		e = w.misfit(r, s, b.count)
	}
	w.p.hook.OnAttempt(Attempt{
		Topic: w.acc.topic, Partition: w.acc.partition, Sequence: seq, Records: int(b.count),
		Bytes: len(b.body), Number: number, Duration: time.Since(began), Err: e,
	})
	if e != nil {
		w.p.log.Debug("an append has failed", w.attrs(slog.Int64("seq", seq.BaseSeq), slog.Any("error", e))...)
		return appendResult{err: e}
	}
	out := appendResult{baseOffset: -1, duplicate: r.Duplicate}
	if r.BaseOffset != nil {
		out.baseOffset = *r.BaseOffset
	}
	return out
}

// misfit is the error for an answer that is well formed but belongs to another
// request, as from a cache that should not be there.
func (w *worker) misfit(r openapi.AppendResponse, s *Sequence, count int32) *Error {
	ok := r.Topic == w.acc.topic && r.Partition == w.acc.partition && (r.BaseOffset != nil || r.Duplicate)
	if r.BaseOffset != nil {
		ok = ok && r.LastOffset != nil && *r.LastOffset == *r.BaseOffset+int64(count)-1
	}
	if s != nil {
		ok = ok && r.NextSeq != nil && *r.NextSeq == s.BaseSeq+int64(count)
	}
	if ok {
		return nil
	}
	return &Error{
		Code: CodeForeignAnswer, Retryable: true, Outcome: openapi.Unknown,
		Detail: "the answer belongs to another request",
	}
}

// ask asks what the partition knows of the producer.
func (w *worker) ask(b *outBatch) {
	w.out++
	pid := b.seq.PID
	w.p.running.Go(func() {
		if err := w.p.enter(); err != nil {
			w.answers <- answered{batch: b, ask: &askResult{err: err}}
			return
		}
		s, err := w.p.client.PartitionProducer(w.p.ctx, w.acc.topic, w.acc.partition, pid)
		w.p.leave()
		r := &askResult{err: asError(err), epoch: s.Epoch, first: s.FirstSeq, last: s.LastSeq}
		for _, k := range s.Recent {
			r.recent = append(r.recent, sequence.Remembered{BaseSeq: k.BaseSeq, LastSeq: k.LastSeq, BaseOffset: k.BaseOffset})
		}
		w.answers <- answered{batch: b, ask: r}
	})
}

// emit passes on what the lane has decided.
func (w *worker) emit() {
	for _, e := range w.lane.events() {
		switch {
		case e.fatal != nil:
			w.p.fail(e.fatal)
		case e.reset != nil:
			w.p.hook.OnReset(*e.reset)
			w.p.log.Warn("a partition goes on under another epoch or producer id", w.attrs(
				slog.String("reason", string(e.reset.Reason)),
				slog.Int64("producer.id", e.reset.PID), slog.Int64("producer.epoch", e.reset.Epoch))...)
		case e.parts != nil:
			if e.limit > 0 {
				w.acc.learn(e.limit)
			}
			w.acc.decided(e.batch.delivery)
			close(e.batch.delivery.done)
		default:
			w.finish(e.batch, e.ack)
		}
	}
}

// finish hands out the outcome of a batch: callbacks first, so that whoever waits for
// a future or a flush finds them done.
func (w *worker) finish(b *outBatch, r appendResult) {
	d := b.delivery
	d.baseOffset, d.duplicate = r.baseOffset, r.duplicate
	if r.err != nil {
		d.err = r.err
	}
	w.p.hook.OnBatch(BatchOutcome{
		Topic: d.topic, Partition: d.partition, Records: int(b.count), Attempts: b.attempts,
		Duration: time.Since(b.created), Duplicate: r.duplicate, Err: r.err,
	})
	w.p.count(b, r)
	for i, call := range b.calls {
		if call != nil {
			call(d.result(int32(i)))
		}
	}
	b.calls = nil
	w.acc.decided(d)
	close(d.done)
	w.p.room.release(b.held)
}

// stop fails what is left and waits for the requests that are out.
func (w *worker) stop() {
	err := w.p.ending()
	w.acc.stop(err)
	for w.out > 0 {
		w.take(<-w.answers)
	}
	if err.Code == CodeClosed {
		w.lane.abandon(err.Code, err.Detail, nil)
	} else {
		w.lane.abandon(err.Code, "", err)
	}
	w.emit()
	for _, b := range w.acc.drain() {
		own := *err
		own.Outcome = openapi.NotApplied
		w.finish(b, appendResult{err: &own})
	}
}

func (w *worker) attrs(more ...any) []any {
	return append([]any{slog.String("topic", w.acc.topic), slog.Int("partition", w.acc.partition)}, more...)
}

// asError gives err as an [*Error]; nil stays nil.
func asError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := &Error{Code: CodeUnreachable, Retryable: true, Outcome: openapi.Unknown, Err: err}
	if errors.Is(err, context.Canceled) {
		e.Code = CodeCanceled
	}
	return e
}
