package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/batch"
)

// readBuffer is how much of an answer to a read is taken from the socket at a time.
const readBuffer = 256 << 10

// ReadLoad says what is read.
type ReadLoad struct {
	Connections int // each reads a partition, from beginning to end and again
	Format      Format
	PageBytes   int // maxBytes of each read
	PageRecords int // limit of each read
	// Once: each connection reads its partition once, whatever the duration.
	Once bool

	Warmup   time.Duration
	Duration time.Duration
	Timeout  time.Duration
}

// Check refuses loads that make no sense.
func (l *ReadLoad) Check() error {
	switch {
	case l.Connections < 1:
		return errors.New("at least one connection is needed")
	case l.Format == Raw:
		return errors.New("a read has no raw format")
	case l.PageBytes < 1 || l.PageRecords < 1:
		return errors.New("a page must have at least one byte and one record")
	case l.Duration <= 0 || l.Warmup < 0 || l.Timeout <= 0:
		return errors.New("durations must be above 0")
	}
	return nil
}

// reader is one connection of a read.
type reader struct {
	link
	read    *readRun
	number  int
	request func(b []byte) []byte // the next request
	expect  int                   // status
	took    func(*answer, *tape) (records int64, err error)
	buf     []byte
	tape    tape

	pages, records, bytes int64 // measured
}

type readRun struct {
	*drive
	load    ReadLoad
	readers []*reader
	latency *recorder
}

// Read measures sequential reads of a topic.
func Read(ctx context.Context, target Target, load ReadLoad, topic Topic, client *producer.Client, progress func(Progress)) (*Result, error) {
	a, err := target.address()
	if err != nil {
		return nil, err
	}
	r := newReadRun(ctx, &target, load, progress)
	for n := range load.Connections {
		p, err := client.Partition(ctx, topic.Name, n%topic.Partitions)
		if err != nil {
			return nil, err
		}
		if p.NextOffset == p.EarliestOffset {
			return nil, fmt.Errorf("partition %d of topic %s is empty", p.Partition, topic.Name)
		}
		c := &cursor{at: p.EarliestOffset, begin: p.EarliestOffset, end: p.NextOffset, once: load.Once}
		start := fmt.Appendf(nil, "GET %s/topics/%s/partitions/%d/records?limit=%d&maxBytes=%d&offset=", a.path, topic.Name, p.Partition, load.PageRecords, load.PageBytes)
		end := []byte(" HTTP/1.1\r\nHost: " + a.host + "\r\nAccept: " + readMedia(load.Format) + "\r\n" + authorization(&target) + "\r\n")
		r.add(&reader{
			expect: http.StatusOK, took: c.took,
			request: func(b []byte) []byte {
				if c.over {
					return nil
				}
				return append(strconv.AppendInt(append(b, start...), c.at, 10), end...)
			},
		})
	}
	return r.run(ctx, a)
}

func readMedia(f Format) string {
	switch f {
	case Binary:
		return batch.ContentType
	case NDJSON:
		return "application/x-ndjson"
	default:
		return "application/json"
	}
}

// cursor is where a reader of a partition is.
type cursor struct {
	at, begin, end int64
	once, over     bool
}

// took checks an answer and goes on behind it, at the end from the beginning again.
func (c *cursor) took(a *answer, t *tape) (int64, error) {
	n := a.next - c.at
	switch {
	case a.next < 0:
		return 0, fmt.Errorf("%w: a read without Next-Offset", errAnswer)
	case n <= 0 || a.next > a.high:
		return 0, fmt.Errorf("%w: a read from offset %d goes on at %d, and the end is %d", errAnswer, c.at, a.next, a.high)
	}
	if err := t.end(c.at, a.next); err != nil {
		return 0, err
	}
	c.at = a.next
	if c.at >= c.end {
		c.at, c.over = c.begin, c.once
	}
	return n, nil
}

func newReadRun(ctx context.Context, target *Target, load ReadLoad, progress func(Progress)) *readRun {
	return &readRun{
		drive: newDrive(func() *Counters { return target.counters(context.WithoutCancel(ctx)) }, progress),
		load:  load, latency: newRecorder(),
	}
}

func (r *readRun) add(one *reader) {
	one.read, one.number = r, len(r.readers)
	r.readers = append(r.readers, one)
	r.links = append(r.links, &one.link)
}

func (r *readRun) run(ctx context.Context, a address) (*Result, error) {
	group, dialing := errgroup.WithContext(ctx)
	works := make([]func() error, len(r.readers))
	for i, one := range r.readers {
		works[i] = one.work
		group.Go(func() (err error) {
			one.wire, err = dial(dialing, a, readBuffer)
			return err
		})
	}
	defer r.disconnect()
	if err := group.Wait(); err != nil {
		return nil, err
	}
	t := timing{r.load.Warmup, r.load.Duration, r.load.Timeout}
	if r.load.Once {
		t.warmup, t.duration = 0, unlimited
	}
	s, err := r.drive.run(ctx, t, works)
	if err == nil {
		err = ctx.Err()
	}
	return r.result(s), err
}

func (r *readRun) result(s span) *Result {
	out := &Result{Errors: map[string]int64{}, Seconds: s.end.Sub(s.start).Seconds(), LatencyMs: r.latency.latency()}
	for _, one := range r.readers {
		out.Requests += one.pages
		out.Records += one.records
		out.Bytes += one.bytes
	}
	out.rates()
	out.Server = between(s.before, s.after, s.end.Sub(s.start))
	return out
}

// work reads until the run stops or there is nothing more to read.
func (r *reader) work() error {
	r.read.warm.Done()
	for r.read.phase.Load() != stopping {
		request := r.request(r.buf[:0])
		if request == nil {
			return nil
		}
		r.buf = request
		if err := r.page(request); err != nil {
			return fmt.Errorf("connection %d: %w", r.number, r.failure(err))
		}
	}
	return nil
}

// page reads one page.
func (r *reader) page(request []byte) error {
	measured := r.read.phase.Load() == measuring
	start := time.Now()
	r.started.Store(start.UnixNano())
	defer r.started.Store(0)
	if err := r.wire.send(request, nil); err != nil {
		return err
	}
	h, err := r.wire.head()
	if err != nil {
		return err
	}
	if h.status != r.expect {
		body, _, err := r.wire.small(&h, nil)
		p := &problem{status: h.status}
		if err != nil || json.Unmarshal(body, p) != nil || p.Code == "" {
			return fmt.Errorf("%w: status %d: %.200s", errAnswer, h.status, body)
		}
		return p
	}
	r.tape.rewind(r.read.load.Format)
	if err := r.wire.body(&h, r.tape.pass); err != nil {
		return err
	}
	records, err := r.took(&h, &r.tape)
	if err != nil {
		return err
	}
	r.requests.Add(1)
	if measured {
		r.read.latency.record(r.number, time.Since(start))
		r.pages++
		r.bytes += r.tape.bytes
		r.records += records
	}
	return nil
}
