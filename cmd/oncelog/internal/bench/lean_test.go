package bench_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
)

// endless answers with one acknowledgement after the other. It allocates nothing.
type endless struct {
	net.Conn
	records int64
	offset  int64
	body    []byte
	left    []byte
	answer  []byte
}

func (*endless) Write(p []byte) (int, error) { return len(p), nil }

func (e *endless) Read(p []byte) (int, error) {
	if len(e.left) == 0 {
		e.next()
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

func (e *endless) next() {
	member := func(b []byte, name string, n int64) []byte { return strconv.AppendInt(append(b, name...), n, 10) }
	b := member(e.body[:0], `{"topic":"t","partition":0,"baseOffset":`, e.offset)
	b = member(b, `,"lastOffset":`, e.offset+e.records-1)
	b = member(b, `,"nextSeq":`, e.offset+e.records)
	e.body = append(b, `,"duplicate":false,"appendedAt":"2026-01-02T03:04:05.678Z"}`...)
	e.offset += e.records
	b = append(e.answer[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: 0123456789abcdef\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\n"...)
	b = append(member(b, "Content-Length: ", int64(len(e.body))), "\r\n\r\n"...)
	e.answer = append(b, e.body...)
	e.left = e.answer
}

func loads() map[string]bench.Load {
	all := map[string]bench.Load{}
	for _, f := range []bench.Format{bench.Raw, bench.JSON, bench.NDJSON, bench.Binary} {
		l := bench.Load{Connections: 1, Producers: 1, Partitions: 1, RecordBytes: 1024, BatchRecords: 1, Format: f}
		all[string(f)] = l
		if f != bench.Raw {
			l.BatchRecords = 100
			all[string(f)+"100"] = l
		}
	}
	return all
}

// What the generator needs for itself is taken from the server when both share a
// machine. A request allocates nothing.
func TestRequestAllocatesNothing(t *testing.T) {
	for name, l := range loads() {
		send := bench.Exchange(&endless{records: int64(l.BatchRecords)}, l)
		if got := testing.AllocsPerRun(1000, func() {
			if err := send(); err != nil {
				t.Fatal(err)
			}
		}); got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	for name, l := range loads() {
		b.Run(name, func(b *testing.B) {
			send := bench.Exchange(&endless{records: int64(l.BatchRecords)}, l)
			b.ReportAllocs()
			for b.Loop() {
				if err := send(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestSums(t *testing.T) {
	for _, c := range [][2]int64{{0, 0}, {0, 1}, {5, 6}, {0, 100}, {1 << 52, 1<<52 + 3}, {1<<53 - 10, 1<<53 - 1}} {
		var want uint64
		for n := c[0]; n < c[1]; n++ {
			want += uint64(n)
		}
		if got := bench.SumBetween(c[0], c[1]); got != want {
			t.Errorf("%v: %d, want %d", c, got, want)
		}
		if c[1] > c[0] {
			if got := bench.SumOf(c[0], c[1]-c[0]); got != want {
				t.Errorf("%v: %d, want %d", c, got, want)
			}
		}
	}
	half, last := uint64(1)<<52, uint64(1)<<53-1
	if got, want := bench.SumBetween(0, 1<<53), half*last; got != want {
		t.Errorf("%d, want %d, modulo 2^64", got, want)
	}
}
