package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// gateway is a server process with a data directory of its own. When the test ends, it
// is stopped, and `oncelog check` must find nothing in the directory.
type gateway struct {
	tb     testing.TB
	data   string
	listen string // an address; if its port is 0, the one of the first start is taken again
	flags  []string
	dir    string // working directory; "": that of the test
	// program is the server's, "": the test binary itself.
	program string

	options []producer.ClientOption // of client
	env     []string                // of client commands

	url    string
	client *producer.Client
	cmd    *exec.Cmd
	exited chan struct{}
	logs   *logs
}

const startTimeout = time.Minute

// newGateway starts one in a fresh directory.
func newGateway(tb testing.TB, flags ...string) *gateway {
	tb.Helper()
	g := unstarted(tb, flags...)
	g.start()
	return g
}

// unstarted is newGateway that does not start it yet.
func unstarted(tb testing.TB, flags ...string) *gateway {
	tb.Helper()
	g := &gateway{tb: tb, data: filepath.Join(tb.TempDir(), "data"), listen: ownAddress(tb), flags: flags}
	tb.Cleanup(g.finish)
	return g
}

// ownAddress is a free address for a server that ends and starts again. Its port is not one
// of those that systems give to whoever asks for any, or to connections: such a one could be
// somebody else's when the server starts again, or clients that wait for it could meet with
// another server.
func ownAddress(tb testing.TB) string {
	tb.Helper()
	const from, to = 10_000, 32_768
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", from+rand.IntN(to-from))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue // somebody has it
		}
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
		return address
	}
	tb.Fatal("there is no free port")
	return ""
}

// finish ends what still runs and checks what it leaves behind.
func (g *gateway) finish() {
	if g.running() {
		g.stop()
	}
	if g.tb.Failed() && g.logs != nil {
		g.tb.Logf("last log lines of the server:\n%s", g.logs.tail(40))
	}
	if _, err := os.Stat(g.data); err == nil {
		checkData(g.tb, g.data)
	}
}

// checkData fails the test when `oncelog check` finds something.
func checkData(tb testing.TB, dir string) {
	tb.Helper()
	if out, err := exec.Command("oncelog", "check", dir).CombinedOutput(); err != nil {
		tb.Errorf("oncelog check %s: %v\n%s", dir, err, out)
	}
}

func (g *gateway) running() bool {
	if g.cmd == nil {
		return false
	}
	select {
	case <-g.exited:
		return false
	default:
		return true
	}
}

// start starts the process and waits until it is ready.
func (g *gateway) start() {
	g.tb.Helper()
	g.launch()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for g.client.Ready(ctx) != nil {
		select {
		case <-g.exited:
			g.tb.Fatalf("the server has ended: %v\n%s", g.cmd.ProcessState, g.logs.tail(40))
		case <-ctx.Done():
			g.tb.Fatalf("the server is not ready after %v\n%s", startTimeout, g.logs.tail(40))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// launch starts the process and waits until it listens.
func (g *gateway) launch() {
	g.tb.Helper()
	args := append([]string{"serve", "--data", g.data, "--listen", g.listen, "--disk-reserve", "0"}, g.flags...)
	g.cmd = exec.Command(cmp.Or(g.program, "oncelog"), args...)
	g.cmd.Dir = g.dir
	g.logs = &logs{listening: make(chan string, 1)}
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		g.tb.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		g.tb.Fatal(err)
	}
	g.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan<- struct{}, l *logs) {
		l.collect(stderr)
		cmd.Wait() //nolint:errcheck // tests look at the exit code
		close(exited)
	}(g.cmd, g.exited, g.logs)
	select {
	case g.url = <-g.logs.listening:
	case <-g.exited:
		g.tb.Fatalf("the server has ended: %v\n%s", g.cmd.ProcessState, g.logs.tail(40))
	case <-time.After(startTimeout):
		g.tb.Fatal("the server does not listen")
	}
	u, err := url.Parse(g.url)
	if err != nil {
		g.tb.Fatal(err)
	}
	g.listen = u.Host
	if g.client == nil {
		if g.client, err = producer.NewClient(g.url, g.options...); err != nil {
			g.tb.Fatal(err)
		}
		g.tb.Cleanup(g.client.CloseIdleConnections)
	}
}

// kill ends the process as loss of power would, save for what the kernel still holds.
func (g *gateway) kill() {
	g.tb.Helper()
	g.signal(syscall.SIGKILL)
	<-g.exited
}

// stop asks the process to end and expects it to do so properly.
func (g *gateway) stop() {
	g.tb.Helper()
	g.signal(syscall.SIGTERM)
	if code := g.exitCode(); code != exitOK {
		g.tb.Errorf("the server ended with code %d\n%s", code, g.logs.tail(40))
	}
}

func (g *gateway) signal(s os.Signal) {
	g.tb.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		g.tb.Fatal(err)
	}
}

// exitCode waits for the end of the process.
func (g *gateway) exitCode() int {
	g.tb.Helper()
	select {
	case <-g.exited:
	case <-time.After(startTimeout):
		g.tb.Fatal("the server does not end")
	}
	return g.cmd.ProcessState.ExitCode()
}

// restart ends the process, cleanly or not, and starts it again on the same data and
// port.
func (g *gateway) restart(crash bool) {
	g.tb.Helper()
	if crash {
		g.kill()
	} else {
		g.stop()
	}
	g.start()
}

func (g *gateway) createTopic(name string, partitions int, c openapi.TopicConfig) {
	g.tb.Helper()
	r := openapi.CreateTopicRequest{Name: name, Partitions: &partitions, TopicConfig: c}
	if _, err := g.client.CreateTopic(context.Background(), r); err != nil {
		g.tb.Fatal(err)
	}
}

// oncelog runs a client command against the server and returns what it prints.
func (g *gateway) oncelog(args ...string) string {
	g.tb.Helper()
	cmd := exec.Command("oncelog", args...)
	cmd.Env = append(append(os.Environ(), "ONCELOG_URL="+g.url), g.env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		g.tb.Fatalf("oncelog %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// logs are the log lines of a process.
type logs struct {
	listening chan string

	mu    sync.Mutex
	lines []string
}

func (l *logs) collect(r interface{ Read([]byte) (int, error) }) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		l.mu.Lock()
		l.lines = append(l.lines, s.Text())
		l.mu.Unlock()
		var line struct{ Msg, Address string }
		if json.Unmarshal(s.Bytes(), &line) == nil && line.Msg == "listening" {
			l.listening <- line.Address
		}
	}
}

func (l *logs) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines[max(0, len(l.lines)-n):], "\n")
}

// find decodes the last line with a message into out.
func (l *logs) find(message string, out any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range slices.Backward(l.lines) {
		var line struct{ Msg string }
		if json.Unmarshal([]byte(text), &line) == nil && line.Msg == message {
			return json.Unmarshal([]byte(text), out)
		}
	}
	return fmt.Errorf("there is no log line %q", message)
}

// until tries again what a killed or starting server has left open.
func until(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		e, ok := errors.AsType[*producer.Error](err)
		if !ok || !e.Retryable {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", ctx.Err(), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
