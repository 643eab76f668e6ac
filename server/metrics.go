package server

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/oncelog/oncelog/store"
)

// metrics are what /metrics exposes. Labels are the route's pattern, method and
// status: never a topic, never a producer, whose number nothing bounds.
type metrics struct {
	handler  http.Handler
	registry *prometheus.Registry
	inFlight prometheus.Gauge
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	// series are the children of requests and duration by what they are labelled with:
	// looking them up by labels costs more than counting. There is one for each route,
	// method and status, so few.
	mu     sync.RWMutex
	series map[seriesKey]*series
}

type seriesKey struct {
	route, method string
	status        int
}

type series struct {
	requests prometheus.Counter
	duration prometheus.Observer
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		series:   map[seriesKey]*series{},
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "oncelog_http_requests_in_flight", Help: "Requests being answered, long polls and event streams included.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "oncelog_http_requests_total", Help: "Requests answered, by route, method and status; 499 is a client that left.",
		}, []string{"route", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "oncelog_http_request_duration_seconds", Help: "Time from the end of a request's headers to the end of its answer.",
			Buckets:                     []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
		}, []string{"route", "method"}),
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "oncelog_build_info", Help: "Always 1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": s.options.Version, "revision": s.options.Revision, "go": runtime.Version()},
	}, func() float64 { return 1 })
	m.registry.MustRegister(m.inFlight, m.requests, m.duration, build, newStoreCollector(s), accessCollector{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

var (
	grantsDesc = prometheus.NewDesc("oncelog_access_grants",
		"Tokens and certificates that have rights; -1 while everybody may do everything.", nil, nil)
	certificateDesc = prometheus.NewDesc("oncelog_tls_certificate_not_after_timestamp_seconds",
		"When the server's certificate expires; absent without TLS.", nil, nil)
)

// accessCollector tells who may come in.
type accessCollector struct{ server *Server }

// Describe implements [prometheus.Collector].
func (accessCollector) Describe(out chan<- *prometheus.Desc) {
	out <- grantsDesc
	out <- certificateDesc
}

// Collect implements [prometheus.Collector].
func (c accessCollector) Collect(out chan<- prometheus.Metric) {
	grants := float64(c.server.access.Grants())
	if c.server.access.Anonymous() {
		grants = -1
	}
	out <- prometheus.MustNewConstMetric(grantsDesc, prometheus.GaugeValue, grants)
	if cert := c.server.access.Certificate(); cert != nil {
		out <- prometheus.MustNewConstMetric(certificateDesc, prometheus.GaugeValue, float64(cert.NotAfter.Unix()))
	}
}

// observe counts a request. A path that is none of ours counts under no route.
func (m *metrics) observe(route, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // a client chooses it, so it must not become a label
	}
	one := m.seriesOf(seriesKey{route, method, status})
	one.requests.Inc()
	one.duration.Observe(took.Seconds())
}

func (m *metrics) seriesOf(key seriesKey) *series {
	m.mu.RLock()
	one := m.series[key]
	m.mu.RUnlock()
	if one != nil {
		return one
	}
	one = &series{m.requests.WithLabelValues(key.route, key.method, strconv.Itoa(key.status)), m.duration.WithLabelValues(key.route, key.method)}
	m.mu.Lock()
	m.series[key] = one
	m.mu.Unlock()
	return one
}

// storeCollector turns the engine's own counters into metrics at each scrape.
type storeCollector struct {
	server *Server
	stats  []storeMetric
}

type storeMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*store.Stats) float64
}

func newStoreCollector(s *Server) *storeCollector {
	c := &storeCollector{server: s}
	add := func(kind prometheus.ValueType, name, help string, value func(*store.Stats) float64) {
		c.stats = append(c.stats, storeMetric{prometheus.NewDesc("oncelog_"+name, help, nil, nil), kind, value})
	}
	counter := func(name, help string, value func(*store.Stats) int64) {
		add(prometheus.CounterValue, name, help, func(st *store.Stats) float64 { return float64(value(st)) })
	}
	gauge := func(name, help string, value func(*store.Stats) int64) {
		add(prometheus.GaugeValue, name, help, func(st *store.Stats) float64 { return float64(value(st)) })
	}
	counter("batches_stored_total", "Batches stored.", func(st *store.Stats) int64 { return st.Accepted })
	counter("records_stored_total", "Records stored.", func(st *store.Stats) int64 { return st.Records })
	counter("stored_bytes_total", "Bytes of encoded batches stored.", func(st *store.Stats) int64 { return st.Bytes })
	counter("batches_duplicate_total", "Batches recognised as stored before.", func(st *store.Stats) int64 { return st.Duplicates })
	counter("batches_held_total", "Batches held until their predecessors came.", func(st *store.Stats) int64 { return st.Held })
	counter("gaps_passing_total", "Out-of-order refusals within the window of batches that may overtake each other.", func(st *store.Stats) int64 { return st.PassingGaps })
	counter("gaps_lasting_total", "Out-of-order refusals that mean lost batches.", func(st *store.Stats) int64 { return st.LastingGaps })
	counter("batches_fenced_total", "Batches refused because a newer epoch had come.", func(st *store.Stats) int64 { return st.Fenced })
	counter("batches_expired_total", "Batches refused because their producer had expired.", func(st *store.Stats) int64 { return st.Expired })
	counter("batches_reused_total", "Batches refused because their sequence belongs to another payload.", func(st *store.Stats) int64 { return st.Reused })
	counter("batches_overlapping_total", "Batches refused because they overlap stored ones.", func(st *store.Stats) int64 { return st.Overlaps })
	counter("commits_total", "Durable transactions.", func(st *store.Stats) int64 { return st.Commits })
	add(prometheus.CounterValue, "commit_seconds_total", "Time spent in durable transactions.",
		func(st *store.Stats) float64 { return time.Duration(st.CommitNanos).Seconds() })
	gauge("batches_parked", "Batches held right now.", func(st *store.Stats) int64 { return st.Parked })
	gauge("store_size_bytes", "Size of the store on disk.", func(st *store.Stats) int64 { return st.StoreBytes })
	gauge("store_free_bytes", "Part of the store that is free for new data.", func(st *store.Stats) int64 { return st.FreeBytes })
	gauge("disk_free_bytes", "Free space of the store's file system, -1 when unknown.", func(st *store.Stats) int64 { return st.DiskFree })
	return c
}

// Describe implements [prometheus.Collector].
func (c *storeCollector) Describe(out chan<- *prometheus.Desc) {
	for i := range c.stats {
		out <- c.stats[i].desc
	}
}

// Collect implements [prometheus.Collector]. Without a store there is nothing to tell.
func (c *storeCollector) Collect(out chan<- prometheus.Metric) {
	st, err := c.server.store()
	if err != nil {
		return
	}
	stats := st.Stats()
	for i := range c.stats {
		m := &c.stats[i]
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&stats))
	}
}
