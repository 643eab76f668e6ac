package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
)

const crowdTopic = "/topics/t/partitions/0"

// crowded is a server as users have it, with a topic t, for tests in which many clients
// behave badly.
func crowded(t *testing.T, flags ...string) *gateway {
	t.Helper()
	g := unstarted(t, append(flags, "--log-successes", "1")...)
	g.program = plainBinary(t)
	g.start()
	g.createTopic("t", 1, openapi.TopicConfig{})
	return g
}

// connect opens a connection. It is closed when the test ends.
func (g *gateway) connect() *net.TCPConn {
	g.tb.Helper()
	c, err := net.Dial("tcp", g.listen)
	if err != nil {
		g.tb.Fatal(err)
	}
	g.tb.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// say sends text on a connection.
func say(tb testing.TB, c io.Writer, text string) {
	tb.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		tb.Error(err)
	}
}

// hear reads one answer from a connection.
func hear(c net.Conn, r *bufio.Reader, within time.Duration) (*http.Response, []byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, nil, err
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// rawAppend is a request that appends one record with the value.
func rawAppend(value string) string {
	return fmt.Sprintf("POST %s/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n%s", crowdTopic, len(value), value)
}

// citizen appends and reads all the time, one request after the other, as well-behaved
// clients do. Nothing it asks for may fail.
type citizen struct {
	quit, done chan struct{}
	served     atomic.Int64
	mu         sync.Mutex
	took       []time.Duration
	err        error
}

func newCitizen(t *testing.T, g *gateway) *citizen {
	t.Helper()
	c := &citizen{quit: make(chan struct{}), done: make(chan struct{})}
	client := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	ask := func(method, path, body string) error {
		req, err := http.NewRequest(method, g.url+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, answer)
		}
		return err
	}
	go func() {
		defer close(c.done)
		defer client.CloseIdleConnections()
		for {
			select {
			case <-c.quit:
				return
			default:
			}
			start := time.Now()
			err := errors.Join(ask("POST", crowdTopic+"/batches", "from a good citizen"), ask("GET", crowdTopic+"/records?offset=-1", ""))
			c.mu.Lock()
			c.took = append(c.took, time.Since(start))
			c.err = errors.Join(c.err, err)
			c.mu.Unlock()
			c.served.Add(1)
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { c.finish(t) })
	return c
}

// goOn waits until so many more requests have been answered.
func (c *citizen) goOn(t *testing.T, n int64) {
	t.Helper()
	want := c.served.Load() + n
	soon(t, 20*time.Second, "the good citizen is served", func() bool { return c.served.Load() >= want })
}

// finish ends it, and fails unless every request was answered well and in time.
func (c *citizen) finish(t *testing.T) {
	t.Helper()
	select {
	case <-c.quit:
		return
	default:
	}
	close(c.quit)
	<-c.done
	if c.err != nil {
		t.Errorf("a well-behaved client: %v", c.err)
	}
	slices.Sort(c.took)
	if len(c.took) == 0 {
		t.Error("a well-behaved client was not served")
		return
	}
	worst := c.took[len(c.took)-1]
	t.Logf("a well-behaved client meanwhile: %d appends and reads, median %v, p99 %v, slowest %v", len(c.took),
		c.took[len(c.took)/2].Round(time.Microsecond), c.took[len(c.took)*99/100].Round(time.Microsecond), worst.Round(time.Microsecond))
	// Far below the timeouts of those who misbehave, and above what a machine takes that has
	// other tests to run.
	if worst > 15*time.Second {
		t.Errorf("it waited for %v", worst)
	}
}

// soon waits until ok.
func soon(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// memory is the memory that the server's process has, and the most it has had since forget,
// in bytes; 0 where the system does not tell.
func (g *gateway) memory() (now, most int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	kib := func(name string) int64 {
		m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(text)
		if m == nil {
			return 0
		}
		n, _ := strconv.ParseInt(string(m[1]), 10, 64)
		return n << 10
	}
	return kib("VmRSS"), kib("VmHWM")
}

// bounded logs the most memory that the server has had, and fails when it is above limit.
func (g *gateway) bounded(t *testing.T, what string, limit int64) {
	t.Helper()
	_, most := g.memory()
	t.Logf("%s: the server has had %d MiB of memory at most", what, most>>20)
	if most > limit {
		t.Errorf("%s: %d MiB of memory, %d are meant to be enough", what, most>>20, limit>>20)
	}
}

// gauge is the value of a metric, with its labels as they are written.
func (g *gateway) gauge(t *testing.T, name string) float64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if value, ok := strings.CutPrefix(string(line), name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// givenBack fails unless requests hold no memory any more, soon.
func (g *gateway) givenBack(t *testing.T) {
	t.Helper()
	for _, of := range []string{"bodies", "answers"} {
		soon(t, 20*time.Second, of+" hold no memory any more", func() bool {
			return g.gauge(t, `oncelog_request_memory_bytes{of="`+of+`"}`) == 0
		})
	}
}
