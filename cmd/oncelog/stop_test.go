package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// halfAppend is an append whose request has been accepted and whose body is not
// complete yet.
type halfAppend struct {
	conn net.Conn
	in   *bufio.Reader
}

const (
	halfBodyBegin = `{"records":[{"valueText":"begun before the `
	halfBodyEnd   = `stop"}]}`
)

// beginAppend sends the head of an append and waits until the handler asks for the
// body, so it is known to be in flight.
func beginAppend(t *testing.T, g *gateway, topic string) *halfAppend {
	t.Helper()
	conn, err := net.Dial("tcp", g.listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST /topics/%s/partitions/0/batches HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", topic, g.listen, len(halfBodyBegin)+len(halfBodyEnd))
	a := &halfAppend{conn: conn, in: bufio.NewReader(conn)}
	line, err := a.in.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("no 100 Continue: %q %v", line, err)
	}
	if _, err := a.in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, halfBodyBegin)
	return a
}

// finish sends the rest and returns the answer's status.
func (a *halfAppend) finish(t *testing.T) int {
	t.Helper()
	fmt.Fprint(a.conn, halfBodyEnd)
	resp, err := http.ReadResponse(a.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// waitUntilClosed waits until nobody listens any more.
func waitUntilClosed(t *testing.T, g *gateway) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		conn, err := net.Dial("tcp", g.listen)
		if err != nil {
			return
		}
		conn.Close()
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the server goes on listening")
}

// TestStopDrains expects SIGTERM to end long polls, to finish the append that is in
// flight, to take a snapshot, and to leave with code 0.
func TestStopDrains(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	poll := make(chan error, 1)
	go func() {
		list, err := g.client.Records(t.Context(), "t", 0, producer.Read{Wait: time.Minute})
		if err == nil && len(list.Records) > 0 {
			err = fmt.Errorf("it has records: %+v", list)
		}
		poll <- err
	}()
	g.waitForInFlight(2)
	half := beginAppend(t, g, "t")
	g.signal(syscall.SIGTERM)
	waitUntilClosed(t, g)
	select {
	case err := <-poll:
		if err != nil {
			t.Errorf("the long poll ended with %v", err)
		}
	case <-time.After(startTimeout):
		t.Error("the long poll goes on")
	}
	if status := half.finish(t); status != http.StatusOK {
		t.Errorf("the append in flight was answered with %d", status)
	}
	if code := g.exitCode(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	g.start()
	if got := g.oncelog("consume", "--topic", "t", "--exit"); got != "begun before the stop\n" {
		t.Errorf("the log has %q", got)
	}
	if got := g.oncelog("snapshots", "list", "--topic", "t"); !strings.Contains(got, "shutdown") {
		t.Errorf("no snapshot was taken: %q", got)
	}
}

// TestStopTwice expects a second signal to end the server at once, with code 1.
func TestStopTwice(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	beginAppend(t, g, "t")
	g.signal(syscall.SIGTERM)
	waitUntilClosed(t, g)
	g.signal(syscall.SIGTERM)
	if code := g.exitCode(); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
}

// TestDrainTimeout expects a request that never ends not to keep the server from
// ending.
func TestDrainTimeout(t *testing.T) {
	g := newGateway(t, "--drain-timeout", "200ms")
	g.createTopic("t", 1, openapi.TopicConfig{})
	beginAppend(t, g, "t")
	g.stop()
}

// TestOneDirectoryOneServer expects a clear refusal from a second server and from
// check.
func TestOneDirectoryOneServer(t *testing.T) {
	g := newGateway(t)
	for _, args := range [][]string{
		{"serve", "--data", g.data, "--listen", "127.0.0.1:0"},
		{"check", g.data},
	} {
		out, err := exec.Command("oncelog", args...).CombinedOutput()
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.ExitCode() != exitFailure && exit.ExitCode() != exitInUse || !strings.Contains(string(out), "in use") {
			t.Errorf("oncelog %v: %v\n%s", args, err, out)
		}
	}
	if err := g.client.Ready(t.Context()); err != nil {
		t.Errorf("the first server was disturbed: %v", err)
	}
}

// TestProtocols expects HTTP/1.1 and HTTP/2 without TLS on the same port.
func TestProtocols(t *testing.T) {
	g := newGateway(t)
	for _, name := range []string{"HTTP/1.1", "HTTP/2.0"} {
		seen := &protocolSeen{transport: &http.Transport{Protocols: new(http.Protocols)}}
		seen.transport.Protocols.SetHTTP1(name == "HTTP/1.1")
		seen.transport.Protocols.SetUnencryptedHTTP2(name == "HTTP/2.0")
		client, err := producer.NewClient(g.url, producer.WithTransport(seen))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Version(t.Context()); err != nil || seen.proto != name {
			t.Errorf("%s: got %q, %v", name, seen.proto, err)
		}
		seen.transport.CloseIdleConnections()
	}
}

type protocolSeen struct {
	transport *http.Transport
	proto     string
}

func (p *protocolSeen) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.transport.RoundTrip(r)
	if err == nil {
		p.proto = resp.Proto
	}
	return resp, err
}
