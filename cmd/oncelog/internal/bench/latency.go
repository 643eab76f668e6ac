package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is a distribution of times. All are in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

const (
	latencyUnit = 100 * time.Nanosecond
	latencyMost = 10 * time.Minute
)

// recorder takes latencies from many connections. Each shard is a few hundred KiB, of
// which the connections touch the same few cache lines; one for each connection would
// push the prepared bodies out of the cache.
type recorder struct{ shards [4]shard }

type shard struct {
	mu sync.Mutex
	h  *hdrhistogram.Histogram
	_  [40]byte // a cache line of its own
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(latencyMost/latencyUnit), 3)
}

func newRecorder() *recorder {
	r := &recorder{}
	for i := range r.shards {
		r.shards[i].h = newHistogram()
	}
	return r
}

// record takes a latency seen by a connection.
func (r *recorder) record(connection int, d time.Duration) {
	s := &r.shards[connection%len(r.shards)]
	n := int64(min(max(d, latencyUnit), latencyMost) / latencyUnit)
	s.mu.Lock()
	_ = s.h.RecordValue(n) // fails outside the bounds only
	s.mu.Unlock()
}

// merged is everything recorded so far.
func (r *recorder) merged() *hdrhistogram.Histogram {
	all := newHistogram()
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		all.Merge(s.h)
		s.mu.Unlock()
	}
	return all
}

func (r *recorder) latency() Latency { return latencyOf(r.merged()) }

func latencyOf(h *hdrhistogram.Histogram) Latency {
	ms := func(n float64) float64 { return n * float64(latencyUnit) / float64(time.Millisecond) }
	at := func(q float64) float64 { return ms(float64(h.ValueAtQuantile(q))) }
	if h.TotalCount() == 0 {
		return Latency{}
	}
	return Latency{
		Count: h.TotalCount(), Mean: ms(h.Mean()),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: ms(float64(h.Max())),
	}
}
