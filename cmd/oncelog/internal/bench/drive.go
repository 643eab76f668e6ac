package bench

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// The phases of a measurement.
const (
	warming int32 = iota
	measuring
	stopping
)

// drive is a measurement under way: its phases, and the connections at work in it.
type drive struct {
	phase atomic.Int32
	stop  chan struct{}  // closed when phase becomes stopping
	warm  sync.WaitGroup // done by each worker once it has sent all that a warm-up must
	links []*link

	look     func() *Counters // at the server
	progress func(Progress)
}

// link is a connection as a drive sees it.
type link struct {
	wire     *wire
	started  atomic.Int64 // when the request under way was sent, Unix nanoseconds; 0: none
	requests atomic.Int64
	cut      atomic.Bool // closed because the answer did not come
}

// failure is what an error of the connection means.
func (l *link) failure(err error) error {
	switch {
	case l.cut.Load():
		return errTimeout
	case errors.Is(err, io.EOF):
		return errClosed
	}
	return err
}

var (
	errTimeout = errors.New("there was no answer in time")
	errClosed  = errors.New("the server has closed the connection")
)

// Progress is where a measurement is.
type Progress struct {
	Phase             string
	Done, Of          time.Duration
	RequestsPerSecond float64 // since the last report
}

// timing is how long the phases take.
type timing struct{ warmup, duration, timeout time.Duration }

// unlimited is the duration of what ends by itself.
const unlimited = 24 * time.Hour

// span is the part that is measured, and what the server's counters were at its ends
// and at those of the whole.
type span struct {
	start, end                   time.Time
	first, before, after, latest *Counters
}

func newDrive(look func() *Counters, progress func(Progress)) *drive {
	if progress == nil {
		progress = func(Progress) {}
	}
	return &drive{stop: make(chan struct{}), look: look, progress: progress}
}

// run lets workers work: through the warm-up, which lasts until all of them are warm, and
// the time that is measured. It ends earlier when one of them fails, all of them are
// done, or ctx ends.
func (d *drive) run(ctx context.Context, t timing, workers []func() error) (span, error) {
	var s span
	s.first = d.look()
	begin := func() {
		s.before, s.start = d.look(), time.Now()
		d.phase.Store(measuring)
	}
	if t.warmup == 0 {
		begin()
	}
	group, ctx := errgroup.WithContext(ctx)
	d.warm.Add(len(workers))
	for _, work := range workers {
		group.Go(work)
	}
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = group.Wait()
	}()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		d.watch(t.timeout, ended)
	}()
	warm := make(chan struct{})
	go func() { d.warm.Wait(); close(warm) }()

	p := newPace(d, ctx.Done())
	if t.warmup > 0 {
		p.wait("warming up", t.warmup, warm)
		begin()
	}
	p.wait("measuring", t.duration, nil)
	d.phase.Store(stopping)
	s.end = time.Now()
	close(d.stop)
	s.after = d.look()
	<-ended
	<-watched
	s.latest = d.look()
	return s, err
}

// watch cuts connections whose answer does not come. A look at all of them now and then
// costs less than a timer for each request.
func (d *drive) watch(timeout time.Duration, ended <-chan struct{}) {
	every := time.NewTicker(min(time.Second, max(timeout/4, time.Millisecond)))
	defer every.Stop()
	for {
		for _, l := range d.links {
			if since := l.started.Load(); since != 0 && time.Since(time.Unix(0, since)) > timeout {
				l.cut.Store(true)
				l.wire.close()
			}
		}
		select {
		case <-ended:
			return
		case <-every.C:
		}
	}
}

func (d *drive) disconnect() {
	for _, l := range d.links {
		if l.wire != nil {
			l.wire.close()
		}
	}
}

// pace lets time pass and reports how far the measurement is.
type pace struct {
	drive *drive
	done  <-chan struct{}
	last  int64
	at    time.Time
}

func newPace(d *drive, done <-chan struct{}) *pace {
	p := &pace{drive: d, done: done, at: time.Now()}
	p.last = p.requests()
	return p
}

func (p *pace) requests() (n int64) {
	for _, l := range p.drive.links {
		n += l.requests.Load()
	}
	return n
}

const reportEvery = 250 * time.Millisecond

// wait waits for the given time, and until ready is closed unless it is nil, or until
// the workers have ended.
func (p *pace) wait(name string, length time.Duration, ready <-chan struct{}) {
	start := time.Now()
	end := time.NewTimer(length)
	defer end.Stop()
	every := time.NewTicker(reportEvery)
	defer every.Stop()
	for over := false; !over || ready != nil; {
		select {
		case <-p.done:
			return
		case <-ready:
			ready = nil
		case <-end.C:
			over = true
		case <-every.C:
			p.report(name, time.Since(start), length)
		}
	}
}

func (p *pace) report(name string, done, of time.Duration) {
	n, now := p.requests(), time.Now()
	rate := float64(n-p.last) / now.Sub(p.at).Seconds()
	p.last, p.at = n, now
	p.drive.progress(Progress{Phase: name, Done: done, Of: of, RequestsPerSecond: rate})
}
