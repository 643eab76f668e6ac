package server

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/oncelog/oncelog/store"
)

// storeCollector turns the engine's own numbers into metrics at each scrape.
type storeCollector struct {
	server *Server
	stats  []storeMetric
}

type storeMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*store.Stats) float64
}

var (
	commitTimesDesc = prometheus.NewDesc("oncelog_commit_duration_seconds",
		"Time that durable transactions took, fsyncs included.", nil, nil)
	unreadyDesc = prometheus.NewDesc("oncelog_unready",
		"1 for the problem code for which no appends are taken, else 0.", []string{"code"}, nil)
	findingsDesc = prometheus.NewDesc("oncelog_findings",
		"What the status page finds to be not well, by how bad it is.", []string{"level"}, nil)
	streamsDesc = prometheus.NewDesc("oncelog_event_streams",
		"Event streams that are open, of records or for the status page.", nil, nil)
)

func newStoreCollector(s *Server) *storeCollector {
	c := &storeCollector{server: s}
	add := func(kind prometheus.ValueType, name, help string, value func(*store.Stats) int64) {
		c.stats = append(c.stats, storeMetric{
			prometheus.NewDesc("oncelog_"+name, help, nil, nil), kind,
			func(st *store.Stats) float64 { return float64(value(st)) },
		})
	}
	addCounters(func(name, help string, value func(*store.Stats) int64) {
		add(prometheus.CounterValue, name, help, value)
	})
	addGauges(func(name, help string, value func(*store.Stats) int64) { add(prometheus.GaugeValue, name, help, value) })
	return c
}

type addMetric func(name, help string, value func(*store.Stats) int64)

func addCounters(add addMetric) {
	add("batches_stored_total", "Batches stored.", func(st *store.Stats) int64 { return st.Accepted })
	add("records_stored_total", "Records stored.", func(st *store.Stats) int64 { return st.Records })
	add("stored_bytes_total", "Bytes of encoded batches stored.", func(st *store.Stats) int64 { return st.Bytes })
	add("batches_duplicate_total", "Batches recognised as stored before.", func(st *store.Stats) int64 { return st.Duplicates })
	add("batches_held_total", "Batches held until their predecessors came.", func(st *store.Stats) int64 { return st.Held })
	add("gaps_passing_total", "Out-of-order refusals within the window of batches that may overtake each other.", func(st *store.Stats) int64 { return st.PassingGaps })
	add("gaps_lasting_total", "Out-of-order refusals that mean lost batches.", func(st *store.Stats) int64 { return st.LastingGaps })
	add("batches_fenced_total", "Batches refused because a newer epoch had come.", func(st *store.Stats) int64 { return st.Fenced })
	add("batches_expired_total", "Batches refused because their producer had expired.", func(st *store.Stats) int64 { return st.Expired })
	add("batches_reused_total", "Batches refused because their sequence belongs to another payload.", func(st *store.Stats) int64 { return st.Reused })
	add("batches_overlapping_total", "Batches refused because they overlap stored ones.", func(st *store.Stats) int64 { return st.Overlaps })
	add("commits_total", "Durable transactions.", func(st *store.Stats) int64 { return st.Commits })
	add("producers_expired_total", "Producers of a partition whose time had come, or that were expired by hand.", func(st *store.Stats) int64 { return st.ExpiredProducers })
	add("producers_evicted_total", "Producers of a partition that were expired to make room for others.", func(st *store.Stats) int64 { return st.EvictedProducers })
	add("producers_cut_off_total", "Expired producers that a partition no longer knows one by one.", func(st *store.Stats) int64 { return st.CutOffProducers })
}

func addGauges(add addMetric) {
	add("batches_parked", "Batches held right now.", func(st *store.Stats) int64 { return st.Parked })
	add("store_size_bytes", "Size of the store on disk.", func(st *store.Stats) int64 { return st.StoreBytes })
	add("store_free_bytes", "Part of the store that is free for new data.", func(st *store.Stats) int64 { return st.FreeBytes })
	add("disk_free_bytes", "Free space of the store's file system, -1 when unknown.", func(st *store.Stats) int64 { return st.DiskFree })
	add("producers", "Live producers, counted in each partition that knows them.", func(st *store.Stats) int64 { return st.Producers })
	add("producers_max", "Most of them that the store keeps, 0: no bound.", func(st *store.Stats) int64 { return st.MaxProducers })
	add("producer_tombstones", "Expired producers that are remembered, counted in each partition that knows them.", func(st *store.Stats) int64 { return st.Tombstones })
	add("partitions_near_max_producers", "Partitions that have reached 90 % of maxProducers and have not been below 80 % since.", func(st *store.Stats) int64 { return st.NearMaxProducers })
	add("partitions_out_of_service", "Partitions, and topics that cannot be read, that are out of service because what is stored of them is damaged.", func(st *store.Stats) int64 { return st.OutOfService })
	add("producer_id_mark", "Below it lie all producer ids that are issued or reserved.", func(st *store.Stats) int64 { return st.ProducerIDMark })
}

// Describe implements [prometheus.Collector]. What only this kind of engine has is not
// known yet.
func (c *storeCollector) Describe(out chan<- *prometheus.Desc) {
	for i := range c.stats {
		out <- c.stats[i].desc
	}
	out <- commitTimesDesc
	out <- unreadyDesc
	out <- findingsDesc
	out <- streamsDesc
}

// Collect implements [prometheus.Collector]. Without a store there is only that to tell.
func (c *storeCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	gauge(streamsDesc, float64(c.server.streaming.Load()))
	gauge(findingsDesc, float64(c.server.sampler.attention.Load()), levelAttention)
	gauge(findingsDesc, float64(c.server.sampler.trouble.Load()), levelTrouble)
	st, err := c.server.store()
	if err == nil {
		err = c.server.ready(st)
	}
	for _, code := range []store.Code{store.CodeNotReady, store.CodeDraining, store.CodeStorageFull, store.CodeStorageFailed} {
		unready := 0.0
		if err != nil && unreadyCode(err) == string(code) {
			unready = 1
		}
		gauge(unreadyDesc, unready, string(code))
	}
	if st == nil {
		return
	}
	stats := st.Stats()
	for i := range c.stats {
		m := &c.stats[i]
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&stats))
	}
	out <- commitTimes(&stats)
}

// unreadyCode is the code of why no appends are taken.
func unreadyCode(err error) string {
	if p, ok := errors.AsType[*problem](err); ok {
		return p.code
	}
	return string(store.CodeOf(err))
}

// commitTimes is a histogram with a bucket for each octave.
func commitTimes(stats *store.Stats) prometheus.Metric {
	buckets, below := map[float64]uint64{}, uint64(0)
	for i, n := range stats.CommitTimes {
		below += uint64(n)
		if limit, octave := store.DurationBound(i); octave {
			buckets[limit.Seconds()] = below
		}
	}
	return prometheus.MustNewConstHistogram(commitTimesDesc, below, time.Duration(stats.CommitNanos).Seconds(), buckets)
}

// engineCollector tells what only this kind of engine has. It describes nothing beforehand,
// for there is no engine yet, and another one may have other numbers.
type engineCollector struct{ server *Server }

// Describe implements [prometheus.Collector].
func (engineCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c engineCollector) Collect(out chan<- prometheus.Metric) {
	st, err := c.server.store()
	if err != nil {
		return
	}
	measured, ok := st.(store.Measured)
	if !ok {
		return
	}
	for _, m := range measured.Measures() {
		kind := prometheus.GaugeValue
		if m.Counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("oncelog_"+m.Name, m.Help, nil, nil), kind, m.Value)
	}
}
