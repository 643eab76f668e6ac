package producer

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/oncelog/oncelog/openapi"
)

// Producer sends records in batches, many at a time, and sees each of them through to
// an outcome. It may be used from many goroutines. Close it.
type Producer struct {
	cfg        config
	client     *Client
	hook       Hook
	log        *slog.Logger
	compressor *compressor
	room       buffer
	ids        identities
	slots      chan struct{} // one for each request at a time

	// ctx ends when nothing more is to be sent, its cause is the reason.
	ctx     context.Context //nolint:containedctx // the producer's own lifetime
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu         sync.RWMutex // guards what follows
	closed     bool
	allocating bool
	topics     map[string]*topicInfo
	workers    map[place]*worker

	sent, acked, duplicates, failed, retries atomic.Int64
}

// place names a partition.
type place struct {
	topic     string
	partition int
}

// New makes a producer for the server at rawURL. Options that contradict each other
// are refused with an error that says what to change. No request is sent.
func New(rawURL string, opts ...Option) (*Producer, error) {
	cfg := defaultConfig()
	for _, o := range opts {
		o.apply(&cfg)
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	client, err := newClient(rawURL, cfg.client)
	if err != nil {
		return nil, err
	}
	z, err := newCompressor(cfg.compression)
	if err != nil {
		return nil, err
	}
	p := &Producer{
		cfg: cfg, client: client, hook: cfg.hook, log: cfg.logger, compressor: z,
		room:    buffer{free: cfg.bufferBytes},
		slots:   make(chan struct{}, cfg.maxRequests),
		topics:  map[string]*topicInfo{},
		workers: map[place]*worker{},
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p, nil
}

// Client is the low-level client that the producer sends by.
func (p *Producer) Client() *Client { return p.client }

// Send hands over a record and returns a future for its outcome. Key, value and
// headers may be changed when it has returned.
//
// Records of one partition are stored in the order of their Sends. Send blocks while
// the buffer is full or the topic not yet known; ctx bounds that, and nothing else: a
// record that has been taken is not taken back when ctx ends, because its sequence
// could never be used for another.
func (p *Producer) Send(ctx context.Context, r Record) Future {
	f, err := p.send(ctx, &r, nil)
	if err != nil {
		return failed(err)
	}
	return f
}

// SendFunc is Send with a callback instead of a future. done is called once, mostly
// from a goroutine of the producer, in the order of the outcomes in a partition. It
// must not wait for another record, for room, or for Flush or Close.
func (p *Producer) SendFunc(ctx context.Context, r Record, done func(Ack, error)) {
	if _, err := p.send(ctx, &r, done); err != nil {
		done(Ack{}, err)
	}
}

// send fails only for records that were not taken.
func (p *Producer) send(ctx context.Context, r *Record, done func(Ack, error)) (Future, *Error) {
	rec, err := r.encode()
	if err != nil {
		return Future{}, err
	}
	n := rec.PayloadBytes() + frameBytes
	at, err := p.partition(ctx, r, n)
	if err != nil {
		return Future{}, err
	}
	if !p.reserve(ctx, n) {
		return Future{}, p.noRoom(ctx)
	}
	w, err := p.worker(place{r.Topic, at})
	if err != nil {
		p.room.release(n)
		return Future{}, err
	}
	f, wake, err := w.acc.add(&rec, n, done)
	if err != nil {
		p.room.release(n)
		return Future{}, err
	}
	p.sent.Add(1)
	if wake {
		w.nudge()
	}
	return f, nil
}

// partition decides where r goes.
func (p *Producer) partition(ctx context.Context, r *Record, n int) (int, *Error) {
	if r.Partition != nil {
		if *r.Partition < 0 {
			return 0, invalid("partition %d", *r.Partition)
		}
		return *r.Partition, nil
	}
	t, err := p.topic(ctx, r.Topic)
	if err != nil {
		return 0, err
	}
	return t.pick(r, n, p.cfg.partitioner, p.cfg.batchBytes)
}

func (p *Producer) reserve(ctx context.Context, n int) bool {
	if p.room.tryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.maxBlock)
	defer cancel()
	return p.room.acquire(ctx, n)
}

func (p *Producer) noRoom(ctx context.Context) *Error {
	if e := p.refusing(); e != nil {
		return e
	}
	e := invalid("the buffer has been full for %v", p.cfg.maxBlock)
	e.Code, e.Retryable = CodeBlocked, true
	if ctx.Err() != nil {
		e.Code, e.Detail, e.Err = CodeCanceled, "the buffer was full", ctx.Err()
	}
	return e
}

// worker finds the worker of a partition, or starts it.
func (p *Producer) worker(at place) (*worker, *Error) {
	p.mu.RLock()
	w := p.workers[at]
	p.mu.RUnlock()
	if w != nil {
		return w, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.ctx.Err() != nil {
		return nil, p.ending()
	}
	if w = p.workers[at]; w == nil {
		w = newWorker(p, at.topic, at.partition)
		p.workers[at] = w
		p.running.Add(1)
		go w.run()
	}
	return w, nil
}

func (p *Producer) everyWorker() []*worker {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]*worker, 0, len(p.workers))
	for _, w := range p.workers {
		out = append(out, w)
	}
	return out
}

// Flush sends what is waiting, without lingering, and returns when every record that
// was sent before has its outcome. It returns the error of ctx if that ends first, and
// the reason when the producer has had to stop; failures of single records are for
// their futures to tell.
func (p *Producer) Flush(ctx context.Context) error {
	var all []*delivery
	for _, w := range p.everyWorker() {
		all = append(all, w.acc.flush()...)
		w.nudge()
	}
	for _, d := range all {
		if err := d.wait(ctx); err != nil {
			return err
		}
	}
	if e := p.stopped(); e != nil && e.Code != CodeClosed {
		return e
	}
	return nil
}

// Close takes no more records, flushes those that it has, and frees everything. If ctx
// ends first, the records that are left fail with [CodeClosed], and Close returns the
// error of ctx when all has ended. Closing again waits for the same.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.room.close()
	for _, w := range p.everyWorker() {
		w.acc.stop(closedError())
	}
	err := p.Flush(ctx)
	p.mu.Lock() // nothing is started after this that Wait would not see
	p.cancel(closedError())
	p.mu.Unlock()
	p.running.Wait()
	p.client.CloseIdleConnections()
	return err
}

func closedError() *Error {
	return &Error{Code: CodeClosed, Outcome: openapi.NotApplied, Detail: "the producer is closed"}
}

// fail stops the producer for good.
func (p *Producer) fail(e *Error) {
	p.log.Error("the producer has to stop", slog.Any("error", e))
	p.cancel(e)
	p.room.close()
}

// stopped is why the producer has stopped, nil when it has not.
func (p *Producer) stopped() *Error {
	if p.ctx.Err() == nil {
		return nil
	}
	return asError(context.Cause(p.ctx))
}

// ending is the error for records that come too late.
func (p *Producer) ending() *Error {
	if e := p.stopped(); e != nil {
		own := *e
		own.Outcome = openapi.NotApplied
		return &own
	}
	return closedError()
}

// refusing is why no record is taken, nil when they are.
func (p *Producer) refusing() *Error {
	p.mu.RLock()
	closed := p.closed
	p.mu.RUnlock()
	if closed || p.ctx.Err() != nil {
		return p.ending()
	}
	return nil
}

// start runs f as one of the goroutines that Close waits for, unless it is too late.
func (p *Producer) start(f func()) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.running.Go(f)
	return true
}

// enter waits for a request's turn.
func (p *Producer) enter() *Error {
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-p.ctx.Done():
		return &Error{Code: CodeCanceled, Outcome: openapi.NotApplied, Detail: "it was not sent", Err: p.ctx.Err()}
	}
}

func (p *Producer) leave() { <-p.slots }

// allocate gets a producer id, unless that is under way, and wakes every partition.
func (p *Producer) allocate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.allocating || p.ctx.Err() != nil {
		return
	}
	p.allocating = true
	p.running.Go(p.allocateID)
}

// allocateID asks until there is an id, or a reason why there will be none. An id whose
// answer is lost is never used.
func (p *Producer) allocateID() {
	for failures := 0; ; failures++ {
		id, err := p.client.AllocateProducer(p.ctx)
		e := asError(err)
		if e == nil {
			p.ids.set(identity{pid: id.PID, epoch: id.Epoch})
			break
		}
		if p.ctx.Err() != nil {
			break
		}
		if !e.Retryable {
			p.fail(e)
			break
		}
		p.log.Debug("no producer id yet", slog.Any("error", e))
		if !sleep(p.ctx, p.cfg.backoff.delay(failures, e.RetryAfter)) {
			break
		}
	}
	p.mu.Lock()
	p.allocating = false
	p.mu.Unlock()
	for _, w := range p.everyWorker() {
		w.nudge()
	}
}

// Stats are a producer's counts since it was made.
type Stats struct {
	Sent          int64 // records taken by Send
	Acked         int64 // records stored
	Duplicates    int64 // of these, records whose acknowledged request was not the first
	Failed        int64 // records that failed
	Retries       int64 // requests after the first of each batch
	BufferedBytes int64 // held by records without an outcome
}

// Stats is cheap.
func (p *Producer) Stats() Stats {
	return Stats{
		Sent: p.sent.Load(), Acked: p.acked.Load(), Duplicates: p.duplicates.Load(),
		Failed: p.failed.Load(), Retries: p.retries.Load(),
		BufferedBytes: int64(p.cfg.bufferBytes - p.room.available()),
	}
}

func (p *Producer) count(b *outBatch, r appendResult) {
	n := int64(b.count)
	p.retries.Add(int64(max(b.attempts-1, 0)))
	switch {
	case r.err != nil:
		p.failed.Add(n)
	case r.duplicate:
		p.duplicates.Add(n)
		fallthrough
	default:
		p.acked.Add(n)
	}
}
