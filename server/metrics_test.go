package server_test

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/server/access/certtest"
	"github.com/oncelog/oncelog/store/bolt"
)

// populated is a server that has everything that there are metrics of, a store on disk and
// a certificate, and to which everything has happened that they count.
func populated(t *testing.T) *env {
	t.Helper()
	dir := t.TempDir()
	pair := certtest.NewCA(t, "authority").Issue(certtest.Template{DNS: []string{"localhost"}, Usage: x509.ExtKeyUsageServerAuth})
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pair.Write(t, cert, key)
	secure, err := access.NewTLS(access.TLSOptions{Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	control, err := access.New(access.Options{TLS: secure})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	st := newBolt(t, t.TempDir(), bolt.Options{ReorderWait: time.Minute, MaxProducers: 100, RetentionInterval: time.Hour}) // nobody else commits
	e := newEnvOver(t, st, func(o *server.Options) { o.Access = control })
	happen(t, e)
	return e
}

// happen makes each thing happen that can become of a batch.
func happen(t *testing.T, e *env) {
	t.Helper()
	p := e.topic("t")
	for range 3 {
		e.json("POST", "/producers", "").is(201)
	}
	batch := func(pid, epoch, seq int, value string, headers ...string) *answer {
		t.Helper()
		body := fmt.Sprintf(`{"pid":%d,"epoch":%d,"baseSeq":%d,"records":[{"valueText":%q},{"valueText":"x"}]}`, pid, epoch, seq, value)
		return e.json("POST", p+"/batches", body, headers...)
	}
	noHold := "Prefer: wait=0"
	batch(0, 0, 0, "a").is(200)
	batch(0, 0, 0, "a").is(200) // duplicate
	batch(0, 0, 0, "b").problem("sequence-reused")
	batch(0, 0, 1, "b").problem("sequence-overlap")
	batch(0, 0, 4, "c", noHold).problem("out-of-order-sequence")    // it may only have overtaken another
	batch(0, 0, 4000, "c", noHold).problem("out-of-order-sequence") // lost
	held := make(chan *answer, 1)
	go func() { held <- batch(0, 0, 4, "c") }()
	for deadline := time.Now().Add(30 * time.Second); e.store.Stats().Parked == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the batch is not held")
		}
		time.Sleep(time.Millisecond)
	}
	batch(0, 0, 2, "b").is(200)
	(<-held).is(200)
	batch(1, 1, 0, "a").is(200)
	batch(1, 0, 0, "a").problem("producer-fenced")
	e.do("DELETE", p+"/producers/1", "").is(204)
	batch(1, 1, 2, "b").problem("producer-expired")
}

// TestMetricsTellWhatTheStatusPageShows: under names by convention, every number of the
// status page, none of which is left at nothing by what has happened.
func TestMetricsTellWhatTheStatusPageShows(t *testing.T) {
	e := populated(t)
	event := nextEvent(t, e)
	problems, err := testutil.GatherAndLint(e.server.Registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}

	shown := map[string]map[string]string{ // by the event's part, metrics by member
		"totals": {
			"Appends": "oncelog_batches_stored_total", "Records": "oncelog_records_stored_total", "Bytes": "oncelog_stored_bytes_total",
			"Duplicates": "oncelog_batches_duplicate_total", "Held": "oncelog_batches_held_total",
			"PassingGaps": "oncelog_gaps_passing_total", "LastingGaps": "oncelog_gaps_lasting_total",
			"Fenced": "oncelog_batches_fenced_total", "Expired": "oncelog_batches_expired_total",
			"Reused": "oncelog_batches_reused_total", "Overlaps": "oncelog_batches_overlapping_total",
			"Commits": "oncelog_commits_total",
		},
		"store": {"Bytes": "oncelog_store_size_bytes", "FreeBytes": "oncelog_store_free_bytes", "DiskFreeBytes": "oncelog_disk_free_bytes"},
		"event": {"Streams": "oncelog_event_streams", "Parked": "oncelog_batches_parked", "ProducerIDMark": "oncelog_producer_id_mark"},
	}
	values := metricValues(t, e)
	for part, of := range map[string]any{"totals": event.Totals, "store": event.Store, "event": *event} {
		v := reflect.ValueOf(of)
		for i := range v.NumField() {
			field := reflect.Indirect(v.Field(i))
			if field.Kind() != reflect.Int64 || v.Type().Field(i).Name == "IntervalMs" {
				continue
			}
			name, ok := shown[part][v.Type().Field(i).Name]
			if !ok {
				t.Errorf("no metric is meant to be what the event calls %s %s", part, v.Type().Field(i).Name)
				continue
			}
			moves := strings.HasPrefix(name, "oncelog_disk_") // others write to the disk too
			if got := values[name]; got == 0 && name != "oncelog_batches_parked" || got != float64(field.Int()) && !moves {
				t.Errorf("%s is %v, on the status page %d", name, got, field.Int())
			}
		}
	}
	if n := float64(len(event.Diagnosis.Findings)); n == 0 || values["oncelog_findings"] != n {
		t.Errorf("%v findings, on the status page %v", values["oncelog_findings"], n)
	}
	for _, name := range []string{"oncelog_commit_duration_seconds", "oncelog_http_request_duration_seconds", "oncelog_producers", "oncelog_producer_tombstones", "oncelog_producers_expired_total"} {
		if values[name] == 0 {
			t.Errorf("%s is 0", name)
		}
	}
}

// nextEvent is what the status page is told after now.
func nextEvent(t *testing.T, e *env) *openapi.ServerEvent {
	t.Helper()
	want := e.store.Stats().Accepted
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.unchecked().client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	seen := 0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event openapi.ServerEvent
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatal(err)
		}
		// The next one may have been begun before the last answer, or this stream, was there.
		if seen++; seen > 1 && event.Totals.Appends == want && event.Streams == 1 {
			return &event
		}
	}
	t.Fatal("the events end")
	return nil
}

// metricValues are the values of all metrics, summed over their labels; of histograms the
// counts.
func metricValues(t *testing.T, e *env) map[string]float64 {
	t.Helper()
	families, err := e.server.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetType() == dto.MetricType_HISTOGRAM {
				values[f.GetName()] += float64(m.GetHistogram().GetSampleCount())
				continue
			}
			values[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}
