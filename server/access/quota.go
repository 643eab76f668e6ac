package access

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Quota bounds what a principal may use. 0: no bound.
type Quota struct {
	// Requests are requests a second.
	Requests int64 `json:"requestsPerSecond,omitzero"`
	// Bytes are bytes of request and answer bodies a second.
	Bytes int64 `json:"bytesPerSecond,omitzero"`
	// Producers are producer ids an hour. Each costs state in every partition that it is
	// used in, for as long as the topic's producerExpiryMs says.
	Producers int64 `json:"producersPerHour,omitzero"`
	// Held are batches that may wait in memory for their predecessors at a time. One
	// more is not held: it is refused as out of order at once.
	Held int64 `json:"heldBatches,omitzero"`
}

const mostQuota = 1 << 40

func (q Quota) check() error {
	for _, n := range []int64{q.Requests, q.Bytes, q.Producers, q.Held} {
		if n < 0 || n > mostQuota {
			return errors.New("a quota is negative or absurd")
		}
	}
	return nil
}

// or fills in what q leaves open.
func (q Quota) or(defaults Quota) Quota {
	pick := func(n, d int64) int64 {
		if n == 0 {
			return d
		}
		return n
	}
	return Quota{
		Requests: pick(q.Requests, defaults.Requests), Bytes: pick(q.Bytes, defaults.Bytes),
		Producers: pick(q.Producers, defaults.Producers), Held: pick(q.Held, defaults.Held),
	}
}

// Meter counts what a principal uses against its quota. A nil Meter has no bounds. It is
// safe for concurrent use.
type Meter struct {
	quota     Quota
	requests  *bucket
	bytes     *bucket
	producers *bucket
	policy    []string // RateLimit-Policy
	mayWait   atomic.Int64
	now       func() time.Time
}

// bucket is a token bucket that holds what one window allows.
type bucket struct {
	*rate.Limiter
	name   string
	window time.Duration
	unit   string // quota unit, "" for requests
}

func newBucket(name string, quota int64, window time.Duration, unit string) *bucket {
	if quota == 0 {
		return nil
	}
	per := rate.Limit(float64(quota) / window.Seconds())
	return &bucket{rate.NewLimiter(per, int(quota)), name, window, unit}
}

// newMeter returns nil when nothing is bounded.
func newMeter(q Quota, now func() time.Time) *Meter {
	if q == (Quota{}) {
		return nil
	}
	m := &Meter{
		quota: q, now: now,
		requests:  newBucket("requests", q.Requests, time.Second, ""),
		bytes:     newBucket("bytes", q.Bytes, time.Second, "content-bytes"),
		producers: newBucket("producers", q.Producers, time.Hour, ""),
	}
	var policy []byte
	for _, b := range m.buckets() {
		policy = b.appendPolicy(policy)
	}
	if policy != nil {
		m.policy = []string{string(policy)}
	}
	return m
}

func (m *Meter) buckets() []*bucket {
	all := make([]*bucket, 0, 3)
	for _, b := range [...]*bucket{m.requests, m.bytes, m.producers} {
		if b != nil {
			all = append(all, b)
		}
	}
	return all
}

// Request takes one request, and fails with CodeRateLimited when there is none left, or
// when more bytes were used than there were.
func (m *Meter) Request() error {
	if m == nil {
		return nil
	}
	now := m.now()
	if b := m.bytes; b != nil && b.TokensAt(now) <= 0 {
		return b.spent(now, "the quota of %d bytes a second is used up")
	}
	if b := m.requests; b != nil && !b.AllowN(now, 1) {
		return b.spent(now, "the quota of %d requests a second is used up")
	}
	return nil
}

// Producer takes one producer id.
func (m *Meter) Producer() error {
	if m == nil || m.producers == nil {
		return nil
	}
	now := m.now()
	if !m.producers.AllowN(now, 1) {
		return m.producers.spent(now, "the quota of %d producer ids an hour is used up")
	}
	return nil
}

// Used counts bytes that have gone through already. They may be more than there are: what
// is owed is waited for by the requests that follow.
func (m *Meter) Used(n int64) {
	if m == nil || m.bytes == nil {
		return
	}
	now, burst := m.now(), int64(m.bytes.Burst())
	for ; n > 0; n -= burst {
		m.bytes.ReserveN(now, int(min(n, burst)))
	}
}

// Pace waits until nothing is owed, for streams, which are one long request.
func (m *Meter) Pace(ctx context.Context) {
	if m == nil || m.bytes == nil {
		return
	}
	now := m.now()
	tokens := m.bytes.TokensAt(now)
	if tokens >= 0 {
		return
	}
	t := time.NewTimer(m.bytes.after(-tokens))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Hold reports whether one more append may be held for its predecessors. If so, done must
// be called when it has been answered.
func (m *Meter) Hold() (done func(), may bool) {
	if m == nil || m.quota.Held == 0 {
		return func() {}, true
	}
	if m.mayWait.Add(1) > m.quota.Held {
		m.mayWait.Add(-1)
		return func() {}, false
	}
	return func() { m.mayWait.Add(-1) }, true
}

// Fields are the values of RateLimit-Policy and RateLimit, nil for none, as in
// draft-ietf-httpapi-ratelimit-headers-10: for each quota its size and window, and what
// is left of it with the seconds until it is whole again.
func (m *Meter) Fields() (policy, limit []string) {
	if m == nil || m.policy == nil {
		return nil, nil
	}
	now := m.now()
	var v []byte
	for _, b := range m.buckets() {
		v = b.appendState(v, now)
	}
	return m.policy, []string{string(v)}
}

func (b *bucket) appendPolicy(v []byte) []byte {
	v = b.appendName(v)
	v = strconv.AppendInt(append(v, ";q="...), int64(b.Burst()), 10)
	v = strconv.AppendInt(append(v, ";w="...), int64(b.window/time.Second), 10)
	if b.unit != "" {
		v = append(append(append(v, `;qu="`...), b.unit...), '"')
	}
	return v
}

func (b *bucket) appendState(v []byte, now time.Time) []byte {
	tokens := b.TokensAt(now)
	v = b.appendName(v)
	v = strconv.AppendInt(append(v, ";r="...), int64(max(0, math.Floor(tokens))), 10)
	missing := b.after(float64(b.Burst()) - tokens)
	return strconv.AppendInt(append(v, ";t="...), seconds(missing), 10)
}

func (b *bucket) appendName(v []byte) []byte {
	if len(v) > 0 {
		v = append(v, ", "...)
	}
	return append(append(append(v, '"'), b.name...), '"')
}

// after is how long n tokens take to come.
func (b *bucket) after(n float64) time.Duration {
	return time.Duration(math.Ceil(max(0, n) / float64(b.Limit()) * float64(time.Second)))
}

// spent refuses, until there is one token.
func (b *bucket) spent(now time.Time, format string) error {
	return &Error{
		Code:       CodeRateLimited,
		Detail:     fmt.Sprintf(format, b.Burst()),
		RetryAfter: max(1, seconds(b.after(1-b.TokensAt(now)))),
	}
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
