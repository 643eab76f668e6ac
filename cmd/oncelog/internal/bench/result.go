package bench

import (
	"maps"
	"slices"
)

// Result is what a run has measured.
type Result struct {
	// Seconds is the length of the measured part. A batch counts if it was sent in it.
	Seconds  float64 `json:"seconds"`
	Requests int64   `json:"requests"` // appends and retries
	Appends  int64   `json:"appends"`
	Retries  int64   `json:"retries"`
	Records  int64   `json:"records"` // stored
	Bytes    int64   `json:"bytes"`   // of their values

	RequestsPerSecond float64 `json:"requestsPerSecond"`
	RecordsPerSecond  float64 `json:"recordsPerSecond"`
	BytesPerSecond    float64 `json:"bytesPerSecond"`

	// LatencyMs is that of appends, RetryLatencyMs that of second sends.
	LatencyMs      Latency  `json:"latencyMs"`
	RetryLatencyMs *Latency `json:"retryLatencyMs,omitempty"`
	// Server is what the server's own counters say of the measured part, and Total.Server
	// of the whole run. Other clients count as well.
	Server *Server `json:"server,omitempty"`
	// Errors counts refusals by problem code, of the whole run.
	Errors map[string]int64 `json:"errors"`
	Total  Total            `json:"total"`
}

// Total is of the whole run: warm-up and end included.
type Total struct {
	Requests int64 `json:"requests"`
	Appends  int64 `json:"appends"`
	Retries  int64 `json:"retries"`
	Records  int64 `json:"records"`
	// TopicRecords is by how much the offsets of the topic have grown.
	TopicRecords int64   `json:"topicRecords"`
	Server       *Server `json:"server,omitempty"`
}

// Server is the difference between two looks at a server's counters.
type Server struct {
	Commits          int64   `json:"commits"`
	Fsyncs           int64   `json:"fsyncs"` // two a commit
	FsyncsPerSecond  float64 `json:"fsyncsPerSecond"`
	CommitMs         float64 `json:"commitMs"` // mean
	BatchesStored    int64   `json:"batchesStored"`
	RecordsStored    int64   `json:"recordsStored"`
	StoredBytes      int64   `json:"storedBytes"`
	BatchesPerCommit float64 `json:"batchesPerCommit"`
	RecordsPerCommit float64 `json:"recordsPerCommit"`
	DedupHits        int64   `json:"dedupHits"`
	BatchesHeld      int64   `json:"batchesHeld"`
	CPUSeconds       float64 `json:"cpuSeconds"`    // of the server's process
	ResidentBytes    int64   `json:"residentBytes"` // of its memory at the end
}

func (r *appendRun) result(s span) *Result {
	out := &Result{Errors: map[string]int64{}, Seconds: s.end.Sub(s.start).Seconds()}
	var measured, all tallied
	for _, w := range r.workers {
		measured.add(w.counts.measured)
		all.add(w.counts.all)
		for code, n := range w.errors {
			out.Errors[code] += n
		}
	}
	out.Appends, out.Retries = measured.appends, measured.retries
	out.Requests = out.Appends + out.Retries
	out.Records = out.Appends * int64(r.load.BatchRecords)
	out.Bytes = out.Records * int64(r.load.RecordBytes)
	out.rates()
	out.LatencyMs = r.appends.latency()
	if r.load.Retries > 0 {
		l := r.retries.latency()
		out.RetryLatencyMs = &l
	}
	out.Server = between(s.before, s.after, s.end.Sub(s.start))
	out.Total = Total{
		Requests: all.appends + all.retries, Appends: all.appends, Retries: all.retries,
		Records: all.appends * int64(r.load.BatchRecords),
		Server:  between(s.first, s.latest, 0),
	}
	return out
}

// rates sets what follows from the counts.
func (r *Result) rates() {
	if r.Seconds <= 0 {
		return
	}
	r.RequestsPerSecond = float64(r.Requests) / r.Seconds
	r.RecordsPerSecond = float64(r.Records) / r.Seconds
	r.BytesPerSecond = float64(r.Bytes) / r.Seconds
}

// Codes are the codes of the errors, sorted.
func (r *Result) Codes() []string { return slices.Sorted(maps.Keys(r.Errors)) }
