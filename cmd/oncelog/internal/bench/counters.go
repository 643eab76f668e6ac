package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Counters are those of a server's /metrics that have no labels.
type Counters map[string]float64

// counters reads the server's counters. nil: it has none, or does not show them to us.
func (t *Target) counters(ctx context.Context) *Counters {
	if t.Blind {
		return nil
	}
	c, err := t.scrape(ctx)
	if err != nil {
		return nil
	}
	return c
}

func (t *Target) scrape(ctx context.Context) (*Counters, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(t.URL, "/")+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	if t.Token != "" {
		req.Header.Set("Authorization", "Bearer "+t.Token)
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: t.TLS}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics: status %d", resp.StatusCode)
	}
	return readCounters(resp.Body)
}

// readCounters reads the text format, as far as lines are a name and a number.
func readCounters(r io.Reader) (*Counters, error) {
	c := Counters{}
	s := bufio.NewScanner(r)
	for s.Scan() {
		name, number, ok := strings.Cut(s.Text(), " ")
		if !ok || !strings.HasPrefix(name, "oncelog_") && !strings.HasPrefix(name, "process_") {
			continue
		}
		if v, err := strconv.ParseFloat(number, 64); err == nil {
			c[name] = v
		}
	}
	return &c, s.Err()
}

// between says what has happened from one look to another.
func between(before, after *Counters, took time.Duration) *Server {
	if before == nil || after == nil {
		return nil
	}
	change := func(name string) float64 { return (*after)[name] - (*before)[name] }
	delta := func(name string) float64 { return change("oncelog_" + name) }
	s := &Server{
		Commits:       int64(delta("commits_total")),
		BatchesStored: int64(delta("batches_stored_total")),
		RecordsStored: int64(delta("records_stored_total")),
		StoredBytes:   int64(delta("stored_bytes_total")),
		DedupHits:     int64(delta("batches_duplicate_total")),
		BatchesHeld:   int64(delta("batches_held_total")),
		CPUSeconds:    change("process_cpu_seconds_total"),
		ResidentBytes: int64((*after)["process_resident_memory_bytes"]),
	}
	s.Fsyncs = 2 * s.Commits // bbolt syncs the data and then the page that makes it valid
	if s.Commits > 0 {
		n := float64(s.Commits)
		s.BatchesPerCommit = float64(s.BatchesStored) / n
		s.RecordsPerCommit = float64(s.RecordsStored) / n
		s.CommitMs = delta("commit_duration_seconds_sum") / n * 1000
	}
	if took > 0 {
		s.FsyncsPerSecond = float64(s.Fsyncs) / took.Seconds()
	}
	return s
}
