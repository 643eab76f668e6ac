package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/producer"
)

// ackBuffer holds an answer to an append with its head.
const ackBuffer = 4 << 10

// Topic is where appends go.
type Topic struct {
	Name       string
	Partitions int
	// Own: nobody else appends to it, so what it holds at the end must be what the
	// answers said.
	Own bool
}

// appendRun is one measurement of appends.
type appendRun struct {
	target Target
	load   Load
	topic  Topic

	*drive
	interval time.Duration // between the batches of one connection; 0: no rate
	left     atomic.Int64  // batches, if Load.Bytes is set

	workers          []*worker
	appends, retries *recorder
	verifier         verifier
}

// Append measures appends to a topic. Progress is called now and then, from one
// goroutine. A wrong answer, or one that makes the measurement worthless, is an error; the
// result is then what was measured so far.
func Append(ctx context.Context, target Target, load Load, topic Topic, client *producer.Client, progress func(Progress)) (*Result, error) {
	r := &appendRun{
		target: target, load: load, topic: topic,
		appends: newRecorder(), retries: newRecorder(), verifier: verifier{client: client, topic: topic},
	}
	r.drive = newDrive(func() *Counters { return target.counters(context.WithoutCancel(ctx)) }, progress)
	if load.Rate > 0 {
		r.interval = time.Duration(float64(load.Connections) / load.Rate * float64(time.Second))
	}
	if !target.Blind {
		if err := r.verifier.begin(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	defer r.disconnect()
	return r.measure(ctx)
}

// connect opens the connections and gives each its producers.
func (r *appendRun) connect(ctx context.Context) error {
	a, err := r.target.address()
	if err != nil {
		return err
	}
	body := newPayload(&r.load)
	group, ctx := errgroup.WithContext(ctx)
	for n := range r.load.Connections {
		w := &worker{
			run: r, number: n, errors: map[string]int64{},
			request: newRequests(body, &r.target, a, r.topic.Name, r.load.Plain),
			tallies: make([]tally, r.topic.Partitions),
			credit:  float64(n) / float64(r.load.Connections), // not all connections retry at the same time
		}
		for p := range w.tallies {
			w.tallies[p].last = -1
			if starts := r.verifier.starts; starts != nil {
				w.tallies[p].last = starts[p] - 1
			}
		}
		for p := n; p < r.load.Producers; p += r.load.Connections {
			w.streams = append(w.streams, stream{partition: p % r.topic.Partitions})
		}
		r.workers = append(r.workers, w)
		r.links = append(r.links, &w.link)
		group.Go(func() (err error) {
			if w.wire, err = dial(ctx, a, ackBuffer); err != nil {
				return err
			}
			stop := context.AfterFunc(ctx, w.wire.close)
			defer stop()
			return w.allocate(a)
		})
	}
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		err = group.Wait()
	}()
	newPace(r.drive, nil).wait("getting ready", 0, ready)
	if err != nil {
		r.disconnect()
	}
	return err
}

// allocate gets a producer id for each stream.
func (w *worker) allocate(a address) error {
	if w.run.load.Plain || w.run.target.Blind {
		return nil
	}
	request := []byte("POST " + a.path + "/producers HTTP/1.1\r\nHost: " + a.host + "\r\n" + authorization(&w.run.target) + "Content-Length: 0\r\n\r\n")
	for i := range w.streams {
		h, body, err := w.ask(request, nil)
		if err != nil {
			return err
		}
		var got ack
		if h.status != 201 || parseAck(body, &got) != nil || got.pid < 0 {
			return fmt.Errorf("%w: no producer id: %.300s", errAnswer, body)
		}
		w.streams[i].pid = got.pid
		w.requests.Add(1)
	}
	return nil
}

// measure lets the workers work, and looks at what has become of it.
func (r *appendRun) measure(ctx context.Context) (*Result, error) {
	start, works := time.Now(), make([]func() error, len(r.workers))
	for i, w := range r.workers {
		// Spread over an interval: a rate is not meant to come in bursts.
		w.next = start.Add(r.interval * time.Duration(i) / time.Duration(len(r.workers)))
		works[i] = w.work
	}
	t := timing{r.load.Warmup, r.load.Duration, r.load.Timeout}
	if r.load.Bytes > 0 {
		t.warmup, t.duration = 0, unlimited
		r.left.Store(max(1, r.load.Bytes/max(1, int64(r.load.BatchBytes()))))
	}
	s, err := r.run(ctx, t, works)
	result := r.result(s)
	if err == nil && !r.target.Blind {
		err = r.verifier.end(context.WithoutCancel(ctx), &result.Total, r.told)
	}
	if err == nil {
		err = ctx.Err()
	}
	return result, err
}

// told sums up what the answers said of a partition.
func (r *appendRun) told(partition int) (records int64, offsets uint64, all bool) {
	all = true
	for _, w := range r.workers {
		records += w.tallies[partition].records
		offsets += w.tallies[partition].offsets
		all = all && w.unsure == 0
	}
	return records, offsets, all
}
