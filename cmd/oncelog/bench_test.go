package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
	"github.com/oncelog/oncelog/producer"
)

// report is what --output json prints.
type report struct {
	Load struct {
		Topic      string
		Partitions int
		What       string
	}
	bench.Result
	Compare *struct {
		With, By         string
		Ratio            float64
		Ratios           []float64
		Rounds, Baseline []bench.Result
	}
}

// measured runs oncelog bench for a moment.
func (g *gateway) bench(args ...string) report {
	g.tb.Helper()
	out := g.oncelog(append([]string{"bench", "--output", "json", "--duration", "300ms", "--warmup", "100ms"}, args...)...)
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		g.tb.Fatalf("%v: %s", err, out)
	}
	return r
}

// What the tool counts, what the server counts and what the topic holds is the same.
func TestBenchNumbersAgree(t *testing.T) {
	g := newGateway(t)
	for _, format := range []string{"raw", "json", "ndjson", "binary"} {
		t.Run(format, func(t *testing.T) {
			size := 1
			args := []string{"--keep", "--format", format, "--connections", "4", "--producers", "12", "--partitions", "3", "--retries", "0.3", "--record-size", "100B"}
			if format != "raw" {
				size = 7
				args = append(args, "--batch-size", "7")
			}
			r := g.bench(args...)
			same := func(what string, got, want int64) {
				t.Helper()
				if got != want {
					t.Errorf("%s: %d, want %d", what, got, want)
				}
			}
			same("requests", r.Requests, r.Appends+r.Retries)
			same("latencies", r.LatencyMs.Count, r.Appends)
			same("latencies of retries", r.RetryLatencyMs.Count, r.Retries)
			same("records", r.Records, r.Appends*int64(size))
			same("bytes", r.Bytes, r.Records*100)
			same("requests of the whole run", r.Total.Requests, r.Total.Appends+r.Total.Retries)
			same("dedup hits", r.Total.Server.DedupHits, r.Total.Retries)
			same("batches that the server has stored", r.Total.Server.BatchesStored, r.Total.Appends)
			same("records that the server has stored", r.Total.Server.RecordsStored, r.Total.Records)
			same("records of the topic", r.Total.TopicRecords, r.Total.Records)
			same("fsyncs", r.Total.Server.Fsyncs, 2*r.Total.Server.Commits)
			var ends int64
			for p := range r.Load.Partitions {
				at, err := g.client.Partition(context.Background(), r.Load.Topic, p)
				if err != nil {
					t.Fatal(err)
				}
				ends += at.NextOffset
			}
			same("offsets", ends, r.Total.Records)
			if r.Appends == 0 || r.Total.Retries == 0 || len(r.Errors) > 0 {
				t.Errorf("%+v", r.Result)
			}
			if share := float64(r.Total.Retries) / float64(r.Total.Appends); math.Abs(share-0.3) > 0.02+4/float64(r.Total.Appends) {
				t.Errorf("a share of %.3f retries", share)
			}
		})
	}
}

func TestBenchComparisons(t *testing.T) {
	g := newGateway(t)
	dir := "--compare-dir=" + t.TempDir()
	small := []string{"--connections", "4", "--record-size", "100B"}
	for with, args := range map[string][]string{
		"noop":          append(small, "--rounds=2", "--retries=0.2"),
		"plain":         append(small, "--retries=0.2"),
		"binary":        append(small, "--format=json", "--batch-size=10"),
		"one-partition": append(small, "--partitions=4"),
		"fsync":         append(small, dir),
		"bbolt":         append(small, dir),
		"file":          {"--read", "--fill=100KiB", dir},
		"prepared":      {"--go-producer", "--partitions=2"},
	} {
		t.Run(with, func(t *testing.T) {
			r := g.bench(append(args, "--compare", with)...)
			c := r.Compare
			if c == nil || c.With != with || len(c.Rounds) != len(c.Ratios) || len(c.Baseline) < len(c.Rounds) {
				t.Fatalf("%+v", c)
			}
			rate := func(r bench.Result) float64 {
				return map[string]float64{
					"requestsPerSecond": r.RequestsPerSecond, "recordsPerSecond": r.RecordsPerSecond, "bytesPerSecond": r.BytesPerSecond,
				}[c.By]
			}
			for i, ratio := range c.Ratios {
				other := rate(c.Baseline[i])
				if len(c.Baseline) > len(c.Rounds) {
					other = (other + rate(c.Baseline[i+1])) / 2
				}
				if want := rate(c.Rounds[i]) / other; ratio == 0 || math.Abs(ratio-want) > 1e-6*want {
					t.Errorf("ratio %v, want %v", ratio, want)
				}
			}
			if with == "noop" && (len(c.Ratios) != 2 || c.Ratio != min(c.Ratios[0], c.Ratios[1]) || c.Baseline[0].Retries == 0) {
				t.Errorf("%+v", c)
			}
		})
	}
	topics, err := g.client.Topics(context.Background(), producer.Page{})
	if err != nil || len(topics.Items) > 0 {
		t.Errorf("topics are left: %+v, %v", topics.Items, err)
	}
}

func TestBenchReads(t *testing.T) {
	g := newGateway(t)
	for format, pages := range map[string]int64{"ndjson": 200, "json": 200, "binary": 20} { // batches are not cut
		// Of so few batches as two both may come from connections that fill the same partition.
		r := g.bench("--read", "--format", format, "--once", "--fill", "2000KiB", "--record-size", "1KiB", "--partitions", "2", "--connections", "2", "--page-bytes", "10KiB")
		if r.Records != 2000 || r.Requests < pages || r.Bytes <= 2000<<10 || r.Load.What != "read" {
			t.Errorf("%s: %+v", format, r.Result)
		}
	}
}

func TestBenchGoProducer(t *testing.T) {
	g := newGateway(t)
	r := g.bench("--go-producer", "--keep", "--record-size", "100B", "--producers", "2")
	if r.Records == 0 || r.Total.Records < r.Records || r.Total.TopicRecords != r.Total.Records || r.Total.Server.RecordsStored != r.Total.Records ||
		r.Total.Server.BatchesStored != r.Total.Appends || r.LatencyMs.Count == 0 {
		t.Errorf("%+v", r.Result)
	}
}

// A retry that is stored twice makes the command fail, whatever it has measured.
func TestBenchFindsWhatIsStoredTwice(t *testing.T) {
	g := newGateway(t)
	behind, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	forget := &forgetful{next: proxy, seen: map[string]bool{}}
	s := httptest.NewServer(forget)
	defer s.Close()
	cmd := exec.Command("oncelog", "bench", "--url", s.URL, "--duration", "10s", "--connections", "2", "--retries", "0.5", "--output", "json")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != exitFailure || !strings.Contains(stderr.String(), "wrong answer: partition 0, pid ") || !strings.Contains(stderr.String(), "a retry is not said to be a duplicate") {
		t.Errorf("%v, %s", err, &stderr)
	}
	if !json.Valid(out) {
		t.Errorf("what was measured: %s", out)
	}
}

// forgetful passes a request that comes again on without its producer.
type forgetful struct {
	next http.Handler
	mu   sync.Mutex
	seen map[string]bool
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("baseSeq") {
		f.mu.Lock()
		again := f.seen[r.URL.RawQuery]
		f.seen[r.URL.RawQuery] = true
		f.mu.Unlock()
		if again {
			r.URL.RawQuery = ""
		}
	}
	f.next.ServeHTTP(w, r)
}

// Credentials go with every request, over TLS as well.
func TestBenchCredentials(t *testing.T) {
	g := newGateway(t)
	behind, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, r.Method+" "+r.URL.Path+" without the token", http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization")
		proxy.ServeHTTP(w, r)
	}))
	defer s.Close()
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, what := range [][]string{{"--retries=0.5"}, {"--format=json", "--plain"}, {"--read", "--fill=100KiB"}, {"--go-producer"}} {
		args := append([]string{"bench", "--url", s.URL, "--ca-file", ca, "--output", "json", "--duration", "100ms", "--warmup", "0s"}, what...)
		cmd := exec.Command("oncelog", append(args, "--token-file", token)...)
		out, err := cmd.CombinedOutput()
		var r report
		if err != nil || json.Unmarshal(out, &r) != nil || r.Records+r.Total.Records == 0 || r.Result.Server == nil {
			t.Errorf("%v: %v: %s", what, err, out)
		}
		cmd = exec.Command("oncelog", args...)
		cmd.Env = append(os.Environ(), "ONCELOG_TOKEN=secret")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", what, err, out)
		}
		if out, err := exec.Command("oncelog", args...).CombinedOutput(); err == nil {
			t.Errorf("%v: without a token: %s", what, out)
		}
	}
}

// Whoever interrupts a run gets what has been measured so far, and no topic is left.
func TestBenchInterrupted(t *testing.T) {
	g := newGateway(t)
	cmd := exec.Command("oncelog", "bench", "--url", g.url, "--duration", "1h", "--warmup", "0s", "--connections", "2", "--output", "json")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for appended := int64(0); appended < 100; {
		topics, err := g.client.Topics(ctx, producer.Page{})
		if err != nil {
			t.Fatal(err)
		}
		if len(topics.Items) > 0 {
			at, err := g.client.Partition(ctx, topics.Items[0].Name, 0)
			if err != nil {
				t.Fatal(err)
			}
			appended = at.NextOffset
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	var r report
	if json.Unmarshal(out, &r) != nil || r.Appends == 0 || cmd.ProcessState.ExitCode() != exitFailure || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("%v: %s%s", err, out, &stderr)
	}
	if topics, err := g.client.Topics(ctx, producer.Page{}); err != nil || len(topics.Items) > 0 {
		t.Errorf("topics are left: %+v, %v", topics.Items, err)
	}
}

// The server to compare with ends with the process that has started it, however that
// ends.
func TestBenchPeerEnds(t *testing.T) {
	cmd := exec.Command("oncelog", "bench-peer")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var address string
	if _, err := fmt.Fscanln(stdout, &address); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(address, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
