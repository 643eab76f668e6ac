package server

import "github.com/prometheus/client_golang/prometheus"

// Metrics of the two budgets; the label says which: bodies or answers.
var (
	budgetSizeDesc = prometheus.NewDesc("oncelog_request_memory_limit_bytes",
		"Memory that bodies, or answers of reads, may hold at the same time.", []string{"of"}, nil)
	budgetUsedDesc = prometheus.NewDesc("oncelog_request_memory_bytes",
		"Memory that bodies, or answers of reads, are counted to hold.", []string{"of"}, nil)
	budgetRefusedDesc = prometheus.NewDesc("oncelog_requests_refused_for_memory_total",
		"Requests refused as overloaded because there was no room for their bodies or answers.", []string{"of"}, nil)
	budgetEvictedDesc = prometheus.NewDesc("oncelog_slow_clients_cut_off_total",
		"Clients cut off while they took their time with a body, or an answer, and others needed the memory.", []string{"of"}, nil)
)

// budgetCollector tells how the budgets stand.
type budgetCollector struct{ server *Server }

// Describe implements [prometheus.Collector].
func (budgetCollector) Describe(out chan<- *prometheus.Desc) {
	out <- budgetSizeDesc
	out <- budgetUsedDesc
	out <- budgetRefusedDesc
	out <- budgetEvictedDesc
}

// Collect implements [prometheus.Collector].
func (c budgetCollector) Collect(out chan<- prometheus.Metric) {
	for of, b := range map[string]*budget{"bodies": c.server.bodyMemory, "answers": c.server.readMemory} {
		u := b.use()
		tell := func(d *prometheus.Desc, kind prometheus.ValueType, v int64) {
			out <- prometheus.MustNewConstMetric(d, kind, float64(v), of)
		}
		tell(budgetSizeDesc, prometheus.GaugeValue, u.size)
		tell(budgetUsedDesc, prometheus.GaugeValue, u.used)
		tell(budgetRefusedDesc, prometheus.CounterValue, u.refused)
		tell(budgetEvictedDesc, prometheus.CounterValue, u.evicted)
	}
}
