package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
)

// client is a client command that is under way.
type client struct {
	tb     testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	pipe   io.ReadCloser // standard output
	out    *bufio.Reader
	stderr said
}

// said is what a process has written so far.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// run starts a client command against the server.
func (g *gateway) run(args ...string) *client {
	g.tb.Helper()
	c := &client{tb: g.tb, cmd: exec.Command("oncelog", args...)}
	c.cmd.Env = append(append(os.Environ(), "ONCELOG_URL="+g.url), g.env...)
	c.cmd.Stderr = &c.stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		g.tb.Fatal(err)
	}
	if c.pipe, err = c.cmd.StdoutPipe(); err != nil {
		g.tb.Fatal(err)
	}
	c.out = bufio.NewReader(c.pipe)
	if err := c.cmd.Start(); err != nil {
		g.tb.Fatal(err)
	}
	g.tb.Cleanup(func() { c.cmd.Process.Kill() }) //nolint:errcheck // it has ended, mostly
	return c
}

// wait expects the command to end with a code and returns its standard error.
func (c *client) wait(code int) string {
	c.tb.Helper()
	c.in.Close()
	c.cmd.Wait() //nolint:errcheck // the code says it
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		c.tb.Errorf("%v ended with code %d, not %d\n%s", c.cmd.Args, got, code, &c.stderr)
	}
	return c.stderr.String()
}

func (c *client) expectLine(want string) {
	c.tb.Helper()
	late := time.AfterFunc(startTimeout, func() { c.pipe.Close() })
	defer late.Stop()
	got, err := c.out.ReadString('\n')
	if err != nil || got != want+"\n" {
		c.tb.Fatalf("got %q where %q was to be: %v", got, want, err)
	}
}

// expectSaid waits until the command has said something on standard error.
func (c *client) expectSaid(words string) {
	c.tb.Helper()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if strings.Contains(c.stderr.String(), words) {
			return
		}
	}
	c.tb.Fatalf("%v has not said %q, but %q", c.cmd.Args, words, &c.stderr)
}

// interrupt ends the command as Ctrl+C does and returns its standard error.
func (c *client) interrupt(code int) string {
	c.tb.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		c.tb.Fatal(err)
	}
	return c.wait(code)
}

// TestConsumeFollows expects a consumer to go on through restarts, to see each record
// once, and to end with code 0 when it is interrupted.
func TestConsumeFollows(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 2, openapi.TopicConfig{})
	follow := g.run("consume", "--topic", "t", "--from", "latest")
	// Its place is "latest" until it has seen a record, so wait for its long polls.
	g.waitForInFlight(3)
	for i, crash := range []bool{true, false, true} {
		line := fmt.Sprintf("line %d", i)
		p := g.run("produce", "--topic", "t", "--partition", fmt.Sprint(i%2))
		fmt.Fprintln(p.in, line)
		p.wait(exitOK)
		follow.expectLine(line)
		g.restart(crash)
	}
	lines := strings.Split(strings.TrimSuffix(follow.interrupt(exitOK), "\n"), "\n")
	for i, line := range lines {
		if want := [2]string{"; trying again for up to 1m0s", "the server answers again"}[i%2]; !strings.HasSuffix(line, want) {
			t.Errorf("line %d is %q", i, line)
		}
	}
}

// waitForInFlight waits until the server is answering n requests, that for its metrics
// included.
func (g *gateway) waitForInFlight(n int) {
	g.tb.Helper()
	want := fmt.Sprintf("\noncelog_http_requests_in_flight %d\n", n)
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		resp, err := http.Get(g.url + "/metrics")
		if err != nil {
			g.tb.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			g.tb.Fatal(err)
		}
		if bytes.Contains(text, []byte(want)) {
			return
		}
	}
	g.tb.Fatalf("there are never %d requests in flight", n)
}

// TestProduceGivesUp expects a producer to say which records are stored, which are not,
// and which may be.
func TestProduceGivesUp(t *testing.T) {
	t.Run("unknown", func(t *testing.T) {
		g := newGateway(t)
		g.createTopic("t", 1, openapi.TopicConfig{})
		p := g.run("produce", "--topic", "t", "--delivery-timeout", "5s")
		fmt.Fprint(p.in, "a\nb\n")
		waitForOffset(t, g, "t", 2, nil)
		g.waitForInFlight(1)      // so that the producer is told, too
		g.signal(syscall.SIGSTOP) // takes connections and says nothing
		fmt.Fprint(p.in, "c\nd\ne\n")
		stderr := p.wait(exitFailure)
		if !strings.Contains(stderr, "2 records stored") || !strings.Contains(stderr, "3 records may be stored or not") {
			t.Error(stderr)
		}
		g.signal(syscall.SIGCONT)
	})
	t.Run("refused", func(t *testing.T) {
		g := newGateway(t)
		g.createTopic("t", 1, openapi.TopicConfig{})
		p := g.run("produce", "--topic", "t")
		fmt.Fprint(p.in, "a\nb\n")
		waitForOffset(t, g, "t", 2, nil)
		if err := g.client.DeleteTopic(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(p.in, "c\nd\ne\n")
		stderr := p.wait(exitFailure)
		if !strings.Contains(stderr, "2 records stored") || !strings.Contains(stderr, "3 records were read and are not stored") ||
			!strings.Contains(stderr, "unknown-topic") {
			t.Error(stderr)
		}
	})
}

// TestProduceInterrupted expects what was read to be stored, and the exit code to say
// that it is not all.
func TestProduceInterrupted(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	p := g.run("produce", "--topic", "t")
	fmt.Fprint(p.in, "a\nb\n")
	waitForOffset(t, g, "t", 2, nil)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.cmd.Wait() //nolint:errcheck // the code says it
	if code := p.cmd.ProcessState.ExitCode(); code != exitFailure || !strings.Contains(p.stderr.String(), "interrupted") {
		t.Errorf("code %d, %s", code, &p.stderr)
	}
}

// TestProduceWaitsForServer expects a producer that is started before the server to
// find it when it comes.
func TestProduceWaitsForServer(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	g.kill()
	p := g.run("produce", "--topic", "t")
	fmt.Fprint(p.in, "a\nb\n")
	p.in.Close()
	g.start()
	p.wait(exitOK)
	if got := g.oncelog("consume", "--topic", "t", "--exit"); got != "a\nb\n" {
		t.Errorf("stored: %q", got)
	}
}
