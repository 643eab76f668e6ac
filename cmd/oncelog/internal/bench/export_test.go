package bench

import (
	"bufio"
	"iter"
	"net"
)

// Answer is what is read of an answer.
type Answer struct {
	Status                 int
	Body                   string
	RetryAfter, Next, High int64
}

// ReadAnswer reads the next answer, both ways: the body in pieces is the body as a whole.
func ReadAnswer(conn net.Conn) (Answer, error) {
	w := &wire{conn: conn, in: bufio.NewReaderSize(conn, ackBuffer)}
	h, err := w.head()
	if err != nil {
		return Answer{}, err
	}
	body, _, err := w.small(&h, nil)
	return Answer{Status: h.status, Body: string(body), RetryAfter: h.retryAfter, Next: h.next, High: h.high}, err
}

// Ack is what is read of an answer to an append.
type Ack struct {
	Base, Last, NextSeq int64
	Duplicate           bool
	At                  string
}

// ParseAck parses one.
func ParseAck(body string) (Ack, error) {
	var a ack
	err := parseAck([]byte(body), &a)
	return Ack{a.base, a.last, a.nextSeq, a.duplicate, string(a.at)}, err
}

// Exchange gives what does one append after the other on a connection.
func Exchange(conn net.Conn, l Load) func() error {
	r := &appendRun{target: Target{URL: "http://x"}, load: l, topic: Topic{Name: "t", Partitions: 1}, appends: newRecorder(), retries: newRecorder()}
	r.drive = newDrive(func() *Counters { return nil }, nil)
	r.phase.Store(measuring)
	w := &worker{
		run: r, errors: map[string]int64{}, tallies: []tally{{last: -1}},
		request: newRequests(newPayload(&l), &r.target, address{host: "x"}, "t", l.Plain),
	}
	w.wire = &wire{conn: conn, in: bufio.NewReaderSize(conn, ackBuffer)}
	s := &stream{}
	return func() error {
		from, _ := w.pace()
		return w.batch(s, from)
	}
}

// SumBetween is the sum of the numbers from start to end−1, modulo 2^64.
func SumBetween(start, end int64) uint64 { return sumBetween(start, end) }

// SumOf is the sum of n numbers from base on, modulo 2^64.
func SumOf(base, n int64) uint64 { return sumOf(base, n) }

// Count says what is wrong with an answer that comes in pieces and gives the records from
// an offset up to another one.
func Count(f Format, pieces iter.Seq[[]byte], from, to int64) error {
	var t tape
	t.rewind(f)
	for p := range pieces {
		t.pass(p)
	}
	return t.end(from, to)
}
