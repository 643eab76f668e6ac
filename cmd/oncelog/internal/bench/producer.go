package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oncelog/oncelog/producer"
)

// ProducerLoad says what goes through Go producers, which have their default options.
type ProducerLoad struct {
	Producers   int // each is fed by one goroutine
	RecordBytes int

	Warmup   time.Duration
	Duration time.Duration
}

// Check refuses loads that make no sense.
func (l *ProducerLoad) Check() error {
	switch {
	case l.Producers < 1:
		return errors.New("at least one producer is needed")
	case l.Duration <= 0 || l.Warmup < 0:
		return errors.New("durations must be above 0")
	}
	return nil
}

// sampled is how many records there are for each whose latency is taken: to look at the
// clock for each one would take longer than to send it.
const sampled = 64

// producerRun is a measurement of Go producers.
type producerRun struct {
	*drive
	load  ProducerLoad
	topic Topic
	feeds []*feed

	latency          *recorder
	records, batches atomic.Int64 // acknowledged in the measured part
	tallies          []sharedTally
}

// sharedTally is what the acknowledgements have told of a partition.
type sharedTally struct {
	records atomic.Int64
	offsets atomic.Uint64
	_       [48]byte // a cache line of its own
}

// feed is one producer and what sends to it.
type feed struct {
	link
	producer.NoHook
	run      *producerRun
	number   int
	producer *producer.Producer
	failed   atomic.Pointer[error]
}

// Produce measures records that go one by one through Go producers, from the call to
// the acknowledgement. A request is a batch.
func Produce(ctx context.Context, target Target, load ProducerLoad, topic Topic, client *producer.Client, progress func(Progress)) (*Result, error) {
	r := &producerRun{
		drive: newDrive(func() *Counters { return target.counters(context.WithoutCancel(ctx)) }, progress),
		load:  load, topic: topic, latency: newRecorder(), tallies: make([]sharedTally, topic.Partitions),
	}
	v := verifier{client: client, topic: topic}
	if err := v.begin(ctx); err != nil {
		return nil, err
	}
	var works []func() error
	for n := range load.Producers {
		f := &feed{run: r, number: n}
		options := []producer.Option{producer.WithHook(f)}
		for _, o := range target.Options {
			options = append(options, o)
		}
		p, err := producer.New(target.URL, options...)
		if err != nil {
			return nil, errors.Join(err, r.close(ctx))
		}
		f.producer = p
		r.feeds, r.links, works = append(r.feeds, f), append(r.links, &f.link), append(works, f.work)
	}
	// There is no timeout of requests here: the producer has its own.
	s, err := r.run(ctx, timing{load.Warmup, load.Duration, time.Hour}, works)
	result := r.result(s)
	if err == nil {
		err = v.end(context.WithoutCancel(ctx), &result.Total, func(p int) (int64, uint64, bool) {
			return r.tallies[p].records.Load(), r.tallies[p].offsets.Load(), true
		})
	}
	return result, errors.Join(err, ctx.Err())
}

// close ends the producers made so far, which have sent nothing.
func (r *producerRun) close(ctx context.Context) error {
	var errs []error
	for _, f := range r.feeds {
		errs = append(errs, f.producer.Close(ctx))
	}
	return errors.Join(errs...)
}

// work sends until the run stops, and then waits for what is under way.
func (f *feed) work() error {
	f.run.warm.Done()
	record := producer.Record{
		Topic: f.run.topic.Name,
		Value: newPayload(&Load{Format: Raw, RecordBytes: f.run.load.RecordBytes, BatchRecords: 1}).tails[0],
	}
	acked := f.acked
	for n := 0; f.run.phase.Load() != stopping && f.failed.Load() == nil; n++ {
		done := acked
		if n%sampled == 0 {
			done = f.timed()
		}
		f.producer.SendFunc(context.Background(), record, done)
	}
	err := f.producer.Close(context.Background())
	if failed := f.failed.Load(); failed != nil {
		err = *failed
	}
	if err != nil {
		return fmt.Errorf("producer %d: %w", f.number, err)
	}
	return nil
}

// timed is acked for a record that is sent now, whose latency is taken.
func (f *feed) timed() func(producer.Ack, error) {
	if f.run.phase.Load() != measuring {
		return f.acked
	}
	start := time.Now()
	return func(a producer.Ack, err error) {
		f.run.latency.record(f.number, time.Since(start))
		f.acked(a, err)
	}
}

// acked counts an acknowledged record.
func (f *feed) acked(a producer.Ack, err error) {
	if err != nil {
		f.failed.CompareAndSwap(nil, &err)
		return
	}
	t := &f.run.tallies[a.Partition]
	t.records.Add(1)
	t.offsets.Add(uint64(a.Offset))
	if f.run.phase.Load() == measuring {
		f.run.records.Add(1)
	}
}

// OnBatch counts batches.
func (f *feed) OnBatch(b producer.BatchOutcome) {
	if b.Err != nil {
		return
	}
	f.requests.Add(1)
	if f.run.phase.Load() == measuring {
		f.run.batches.Add(1)
	}
}

func (r *producerRun) result(s span) *Result {
	out := &Result{
		Errors: map[string]int64{}, Seconds: s.end.Sub(s.start).Seconds(), LatencyMs: r.latency.latency(),
		Requests: r.batches.Load(), Appends: r.batches.Load(), Records: r.records.Load(),
	}
	out.Bytes = out.Records * int64(r.load.RecordBytes)
	out.rates()
	out.Server = between(s.before, s.after, s.end.Sub(s.start))
	out.Total.Server = between(s.first, s.latest, 0)
	for i := range r.tallies {
		out.Total.Records += r.tallies[i].records.Load()
	}
	for i := range r.links {
		out.Total.Appends += r.links[i].requests.Load()
	}
	out.Total.Requests = out.Total.Appends
	return out
}
