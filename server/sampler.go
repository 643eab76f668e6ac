package server

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
)

const (
	samplePeriod = time.Second
	// kept is how many events are remembered, for pages that open or come back: five
	// minutes.
	kept = 300
	// toldIncidents is how many incidents an event tells at most.
	toldIncidents = 8
)

// sampler looks at the server once a second, and keeps what it saw as events of the
// stream behind the status page. All streams share it: each only has a place of its own
// in the events that are kept, so a slow reader costs no memory and falls behind by
// itself.
//
// It is driven by a timer and not by a goroutine, for a server has no end of its own that
// would stop one.
type sampler struct {
	server   *Server
	instance string
	started  time.Time
	once     sync.Once

	mu   sync.Mutex
	last int64 // number of the newest event, from 1
	// attention and trouble count what the last diagnosis found, by level.
	attention, trouble atomic.Int64

	events  [kept][]byte  // the event with number n is at n % kept
	changed chan struct{} // closed with each event
	timer   *time.Timer
	stopped bool

	// What follows belongs to take, which never runs twice at a time.
	taking sync.Mutex
	before store.Stats
	at     time.Time // of the event before
	seen   int64     // number of the newest incident
	doctor doctor
}

func newSampler(s *Server) *sampler {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	now := s.options.Now()
	return &sampler{
		server: s, instance: hex.EncodeToString(id), started: now, at: now, changed: make(chan struct{}),
	}
}

// start begins to sample, once.
func (m *sampler) start() { m.once.Do(m.tick) }

func (m *sampler) tick() {
	m.take()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stopped {
		m.timer = time.AfterFunc(samplePeriod, m.tick)
	}
}

// stop takes a last sample, after which all streams end.
func (m *sampler) stop() {
	m.once.Do(func() {}) // a start that comes later does nothing
	m.take()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	m.stopped = true
	if m.timer != nil {
		m.timer.Stop()
	}
	close(m.changed)
}

// take makes an event.
func (m *sampler) take() {
	m.taking.Lock()
	defer m.taking.Unlock()
	e := m.sample()
	data, err := json.Marshal(&e)
	if err != nil {
		return // no member of it can fail
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped {
		return
	}
	m.last++
	m.events[m.last%kept] = sse(m.id(m.last), "", data)
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *sampler) id(n int64) string { return m.instance + "-" + decimal(n) }

// after gives the events after the one with a number, as far as they are kept, and the
// number of the last one; until then, wait for changed. ended says that no more will come.
func (m *sampler) after(n int64) (events [][]byte, last int64, changed <-chan struct{}, ended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n = max(n, m.last-kept); n < m.last; {
		n++
		events = append(events, m.events[n%kept])
	}
	return events, m.last, m.changed, m.stopped
}

// sample looks at the server.
func (m *sampler) sample() openapi.ServerEvent {
	now := m.server.options.Now()
	stats := m.before
	var incidents []store.Incident
	st, err := m.server.store()
	if err == nil {
		stats = st.Stats()
		incidents = st.Incidents(m.seen, maxIncidents)
		err = m.server.ready(st)
	}
	e := openapi.ServerEvent{
		Instance: m.instance, StartedAt: formatTime(m.started), At: formatTime(now),
		IntervalMs: max(now.Sub(m.at).Milliseconds(), 0),
		Totals:     totals(&stats),
		PerSecond:  m.rates(&stats, now.Sub(m.at)),
		Commits:    m.commits(&stats),
		Store:      openapi.EventStore{Bytes: stats.StoreBytes, FreeBytes: stats.FreeBytes, DiskFreeBytes: known(stats.DiskFree)},
		Streams:    m.server.streaming.Load(), Parked: stats.Parked, ProducerIDMark: stats.ProducerIDMark,
		Incidents: incidentBodies(worthTelling(incidents)),
	}
	e.Diagnosis = m.doctor.diagnose(&visit{now: now, store: st, unready: err, stats: &stats, commits: &e.Commits, incidents: incidents})
	m.count(e.Diagnosis.Findings)
	m.before, m.at = stats, now
	if n := len(incidents); n > 0 {
		m.seen = incidents[n-1].Number
	}
	return e
}

// count counts findings by level.
func (m *sampler) count(findings []openapi.Finding) {
	trouble := int64(0)
	for i := range findings {
		if findings[i].Level == levelTrouble {
			trouble++
		}
	}
	m.trouble.Store(trouble)
	m.attention.Store(int64(len(findings)) - trouble)
}

// worthTelling picks a few incidents, in their order: the newest refusals, then what had to
// wait, then duplicates.
func worthTelling(incidents []store.Incident) []store.Incident {
	if len(incidents) <= toldIncidents {
		return incidents
	}
	weight := func(i *store.Incident) int {
		switch {
		case i.Code != "":
			return 2
		case i.Duplicate():
			return 0
		}
		return 1
	}
	some := slices.Clone(incidents)
	slices.SortFunc(some, func(a, b store.Incident) int {
		return cmp.Or(cmp.Compare(weight(&b), weight(&a)), cmp.Compare(b.Number, a.Number))
	})
	some = some[:toldIncidents]
	slices.SortFunc(some, func(a, b store.Incident) int { return cmp.Compare(a.Number, b.Number) })
	return some
}

func totals(s *store.Stats) openapi.EventTotals {
	return openapi.EventTotals{
		Appends: s.Accepted, Records: s.Records, Bytes: s.Bytes, Duplicates: s.Duplicates, Held: s.Held,
		PassingGaps: s.PassingGaps, LastingGaps: s.LastingGaps, Fenced: s.Fenced, Expired: s.Expired,
		Reused: s.Reused, Overlaps: s.Overlaps, Commits: s.Commits,
	}
}

// rates gives what was counted since the event before, a second.
func (m *sampler) rates(s *store.Stats, took time.Duration) openapi.EventRates {
	rate := func(now, before int64) int64 {
		if took <= 0 {
			return 0
		}
		return max(int64(float64(now-before)/took.Seconds()+0.5), 0)
	}
	return openapi.EventRates{
		Appends: rate(s.Accepted, m.before.Accepted), Records: rate(s.Records, m.before.Records), Bytes: rate(s.Bytes, m.before.Bytes),
	}
}

// commits describes those since the event before.
func (m *sampler) commits(s *store.Stats) openapi.EventCommits {
	c := openapi.EventCommits{Count: s.Commits - m.before.Commits}
	if c.Count > 0 {
		c.MeanMicros = (s.CommitNanos - m.before.CommitNanos) / c.Count / 1000
		times := s.CommitTimes.Since(&m.before.CommitTimes)
		c.P99Micros = times.Quantile(0.99).Microseconds()
	}
	return c
}

// sse frames an event. data holds no line break, for it is JSON without white space.
func sse(id, name string, data []byte) []byte {
	b := make([]byte, 0, len(data)+len(id)+len(name)+24)
	if id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}
