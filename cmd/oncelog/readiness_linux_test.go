package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store/storetest/faultfs"
)

// readiness is what /readyz answers: "ok", or the code of the problem.
func readiness(t *testing.T, g *gateway) string {
	t.Helper()
	status, header, body := fetch(t, g, "/readyz")
	if status == http.StatusOK {
		return "ok"
	}
	var p openapi.Problem
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("status %d: %v: %s", status, err, body)
	}
	want := map[string]int{"not-ready": 503, "draining": 503, "storage-failed": 503, "storage-full": 507}
	of, _ := openapi.LookupProblemType(p.Code)
	if status != want[p.Code] || p.Status != status || p.Detail == "" || (header.Get("Retry-After") != "") != (of.RetryAfter > 0) {
		t.Errorf("status %d, Retry-After %q: %s", status, header.Get("Retry-After"), body)
	}
	return p.Code
}

func fetch(t *testing.T, g *gateway, path string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, body
}

// becomes waits until /readyz answers so, and expects the metric to say the same and the
// process to live.
func becomes(t *testing.T, g *gateway, want string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if got = readiness(t, g); got == want {
			break
		}
	}
	if got != want {
		t.Fatalf("/readyz says %s, not %s", got, want)
	}
	_, _, metrics := fetch(t, g, "/metrics")
	for _, code := range []string{"not-ready", "draining", "storage-full", "storage-failed"} {
		unready := 0
		if code == want {
			unready = 1
		}
		if line := fmt.Sprintf("oncelog_unready{code=%q} %d\n", code, unready); !strings.Contains(string(metrics), line) {
			t.Errorf("%s: the metrics have no %s", want, line)
		}
	}
	out, err := exec.Command("oncelog", "health", "--url", g.url).CombinedOutput()
	if (err == nil) != (want == "ok") || want != "ok" && !strings.Contains(string(out), want) {
		t.Errorf("%s: oncelog health: %v: %s", want, err, out)
	}
	if status, _, _ := fetch(t, g, "/livez"); status != http.StatusOK {
		t.Errorf("%s: /livez answers %d", want, status)
	}
}

// TestReadiness: /readyz says what is the matter for as long as it is, of a real server
// with a disk that is slow, full, and fails.
func TestReadiness(t *testing.T) {
	g, fs := faultyGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	p := newProbe(t, g, "probe", 1)
	p.must(t)
	becomes(t, g, "ok")
	g.kill()

	fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Delay: time.Hour})
	g.launch()
	becomes(t, g, "not-ready")
	fs.Inject()
	becomes(t, g, "ok")

	fs.Inject(faultfs.Fault{Kind: faultfs.Write, Errno: syscall.ENOSPC})
	p.refused(t, 50, http.StatusInsufficientStorage, "storage-full", openapi.NotApplied)
	becomes(t, g, "storage-full")
	fs.Inject()
	p.must(t)
	becomes(t, g, "ok")

	fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Times: 1, Errno: syscall.EIO})
	p.refused(t, 50, http.StatusServiceUnavailable, "storage-failed", openapi.Unknown)
	fs.Inject() // the disk works again, but nobody knows what is on it
	becomes(t, g, "storage-failed")
	restartAfterFailure(t, g)
	becomes(t, g, "ok")
}

// TestNotify: systemd is told when the server takes appends, and when it stops.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	g := newGateway(t)
	told := func() string {
		b := make([]byte, 100)
		n, err := socket.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if got := told(); got != "READY=1" || readiness(t, g) != "ok" {
		t.Errorf("%q, and it is %s", got, readiness(t, g))
	}
	g.stop()
	if got := told(); got != "STOPPING=1" {
		t.Errorf("%q", got)
	}
}

// TestDrainDelay: a load balancer learns from /readyz that the server is about to stop,
// while whatever still comes is stored.
func TestDrainDelay(t *testing.T) {
	g := newGateway(t, "--drain-delay", "1h", "--max-producers", "7")
	g.createTopic("t", 1, openapi.TopicConfig{})
	becomes(t, g, "ok")
	if _, _, metrics := fetch(t, g, "/metrics"); !strings.Contains(string(metrics), "oncelog_producers_max 7\n") {
		t.Error("--max-producers does not reach the store")
	}
	g.signal(syscall.SIGTERM)
	becomes(t, g, "draining")
	half := beginAppend(t, g, "t")
	if status := half.finish(t); status != http.StatusOK {
		t.Errorf("an append in the delay is answered with %d", status)
	}
	g.signal(syscall.SIGTERM) // whoever asks twice does not want to wait
	if code := g.exitCode(); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	g.flags = []string{"--drain-delay", "50ms"}
	g.start()
	start := time.Now()
	g.stop()
	if took := time.Since(start); took < 50*time.Millisecond {
		t.Errorf("it stopped to listen after %v", took)
	}
}
