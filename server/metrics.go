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
	m.registry.MustRegister(m.inFlight, m.requests, m.duration, build, newStoreCollector(s), engineCollector{s}, accessCollector{s}, budgetCollector{s},
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
