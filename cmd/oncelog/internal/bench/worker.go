package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// stream is a producer and the partition that it appends to.
type stream struct {
	pid       int64
	next      int64 // sequence of the next record
	partition int
}

// tally is what a connection has been told of a partition.
type tally struct {
	records int64
	offsets uint64 // the sum of all offsets, modulo 2^64
	last    int64  // the highest offset, −1 at first
}

// worker is one connection and the producers that use it.
type worker struct {
	link
	run     *appendRun
	number  int
	request *requests
	streams []stream
	tallies []tally // by partition

	counts counts
	errors map[string]int64
	unsure int64 // records of which nobody has said whether they are stored
	credit float64
	next   time.Time // when the next batch is due, with a rate
	at     []byte    // appendedAt of the last answer
	keep   []byte
}

// counts are of the whole life of a worker, and of the part that is measured.
type counts struct {
	all, measured tallied
}

type tallied struct{ appends, retries int64 }

func (t *tallied) add(o tallied) { t.appends += o.appends; t.retries += o.retries }

// errAnswer is a wrong answer: what the bench exists to find.
var errAnswer = errors.New("wrong answer")

// work sends batches until the run stops.
func (w *worker) work() error {
	warm := false
	for i := 0; w.run.phase.Load() != stopping; i++ {
		if i == len(w.streams) {
			i = 0
			if !warm {
				warm = true
				w.run.warm.Done()
			}
		}
		if w.run.load.Bytes > 0 && w.run.left.Add(-1) < 0 {
			break
		}
		due, ok := w.pace()
		if !ok {
			break
		}
		if err := w.batch(&w.streams[i], due); err != nil {
			return fmt.Errorf("connection %d: %w", w.number, err)
		}
	}
	if !warm {
		w.run.warm.Done()
	}
	return nil
}

// pace waits until the next batch is due, and says from when on its latency counts: from
// when it was due if the connection was not free at that time, else from now, since
// being woken late is no fault of the server.
func (w *worker) pace() (from time.Time, ok bool) {
	now := time.Now()
	if w.run.interval == 0 {
		return now, true
	}
	due := w.next
	w.next = due.Add(w.run.interval)
	if now.After(due) {
		return due, true
	}
	t := time.NewTimer(due.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		return time.Now(), true
	case <-w.run.stop:
		return now, false
	}
}

// batch appends the next batch of s, and again if it is the turn of a retry.
func (w *worker) batch(s *stream, from time.Time) error {
	measured := w.run.phase.Load() == measuring
	first, stored, err := w.deliver(s)
	if err != nil || !stored {
		return err
	}
	end := time.Now()
	count := tallied{appends: 1}
	if measured {
		w.run.appends.record(w.number, end.Sub(from))
	}
	if w.credit += w.run.load.Retries; w.credit >= 1 {
		w.credit--
		count.retries++
		if err := w.retry(s, first); err != nil {
			return err
		}
		if measured {
			w.run.retries.record(w.number, time.Since(end))
		}
	}
	s.next += int64(w.run.load.BatchRecords)
	w.counts.all.add(count)
	if measured {
		w.counts.measured.add(count)
	}
	w.requests.Add(count.appends + count.retries)
	return nil
}

// deliver sends the next batch of s until it is stored, or the run stops.
func (w *worker) deliver(s *stream) (a ack, stored bool, err error) {
	unsure := false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		var p *problem
		a, p, err = w.exchange(s)
		if err != nil {
			return a, false, err
		}
		if p == nil {
			return a, true, w.check(s, &a, unsure)
		}
		w.errors[p.Code]++
		unsure = unsure || p.Outcome != "not-applied"
		if !p.Retryable {
			return a, false, p
		}
		if w.run.load.Plain || !w.rest(pause, p) {
			if unsure {
				w.unsure += int64(w.run.load.BatchRecords)
			}
			return a, false, nil
		}
	}
}

const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// rest waits before a batch is sent again, and reports whether the run goes on.
func (w *worker) rest(pause time.Duration, p *problem) bool {
	if p.retryAfter > 0 {
		pause = min(time.Duration(p.retryAfter)*time.Second, lastPause)
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.run.stop:
		return false
	}
}

// problem is a refusal.
type problem struct {
	Code       string `json:"code"`
	Detail     string `json:"detail"`
	Outcome    string `json:"outcome"`
	Retryable  bool   `json:"retryable"`
	status     int
	retryAfter int64
}

func (p *problem) Error() string { return fmt.Sprintf("%d %s: %s", p.status, p.Code, p.Detail) }

// exchange sends the next batch of s once.
func (w *worker) exchange(s *stream) (ack, *problem, error) {
	head, tail := w.request.build(s, w.run.load.BatchRecords)
	w.started.Store(time.Now().UnixNano())
	defer w.started.Store(0)
	h, body, err := w.ask(head, tail)
	if err != nil {
		return ack{}, nil, err
	}
	if h.status != 200 {
		p := &problem{status: h.status, retryAfter: h.retryAfter}
		if json.Unmarshal(body, p) != nil || p.Code == "" {
			return ack{}, nil, fmt.Errorf("%w: status %d, which is no problem of oncelog: %.200s", errAnswer, h.status, body)
		}
		return ack{}, p, nil
	}
	if w.run.target.Blind {
		return ack{}, nil, nil
	}
	var a ack
	if err := parseAck(body, &a); err != nil {
		return a, nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	w.at = append(w.at[:0], a.at...)
	a.at = nil
	return a, nil, nil
}

// ask sends a request and reads the answer, whose body is valid until the next one.
func (w *worker) ask(head, tail []byte) (h answer, body []byte, err error) {
	if err = w.wire.send(head, tail); err != nil {
		return h, nil, w.failure(err)
	}
	if h, err = w.wire.head(); err != nil {
		return h, nil, w.failure(err)
	}
	if body, w.keep, err = w.wire.small(&h, w.keep); err != nil {
		return h, nil, w.failure(err)
	}
	return h, body, nil
}

// check compares the answer to a first append with what must be, and takes note of it.
// One that is a duplicate is right only if it was unsure whether the batch was stored.
func (w *worker) check(s *stream, a *ack, unsure bool) error {
	if w.run.target.Blind {
		return nil
	}
	n := int64(w.run.load.BatchRecords)
	t := &w.tallies[s.partition]
	switch {
	case a.base < 0 || a.last != a.base+n-1:
		return w.wrong(s, "offsets %d to %d for %d records", a.base, a.last, n)
	case a.base <= t.last:
		return w.wrong(s, "offset %d after an answer with %d", a.base, t.last)
	case !w.run.load.Plain && a.nextSeq != s.next+n:
		return w.wrong(s, "nextSeq is %d after sequences %d to %d", a.nextSeq, s.next, s.next+n-1)
	case a.duplicate && !unsure:
		return w.wrong(s, "a batch that was never sent before is said to be a duplicate")
	}
	t.last = a.last
	t.records += n
	t.offsets += sumOf(a.base, n)
	return nil
}

// sumOf is base + (base+1) + … of n numbers, modulo 2^64.
func sumOf(base, n int64) uint64 {
	between := uint64(n) * uint64(n-1) / 2 // n is at most 65,536
	return uint64(n)*uint64(base) + between
}

// retry sends the batch of s again and holds the answer against the first one.
func (w *worker) retry(s *stream, first ack) error {
	at := bytes.Clone(w.at)
	a, p, err := w.exchange(s)
	switch {
	case err != nil:
		return err
	case p != nil:
		return w.wrong(s, "a retry is refused: %w", p)
	case w.run.target.Blind:
		return nil
	case !a.duplicate:
		return w.wrong(s, "a retry is not said to be a duplicate; offsets %d to %d the first time, %d to %d now", first.base, first.last, a.base, a.last)
	case a.base != first.base || a.last != first.last || a.nextSeq != first.nextSeq || !bytes.Equal(at, w.at):
		return w.wrong(s, "a retry is answered otherwise: offsets %d to %d, nextSeq %d, %s the first time, offsets %d to %d, nextSeq %d, %s now",
			first.base, first.last, first.nextSeq, at, a.base, a.last, a.nextSeq, w.at)
	}
	return nil
}

func (w *worker) wrong(s *stream, format string, args ...any) error {
	return fmt.Errorf("%w: partition %d, pid %d, sequence %d: %w", errAnswer, s.partition, s.pid, s.next, fmt.Errorf(format, args...))
}
