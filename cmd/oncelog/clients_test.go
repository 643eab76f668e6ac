package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// crowdOf is how many clients of a kind a test has: n, or so many times n as the environment
// variable ONCELOG_CLIENTS says.
func crowdOf(t *testing.T, n int) int {
	t.Helper()
	if text := os.Getenv("ONCELOG_CLIENTS"); text != "" {
		times, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		n *= times
	}
	return n
}

// atOnce runs f for 0 … n−1, some at a time.
func atOnce(n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}

// crowd opens n connections, some at a time, and has each greeted.
func (g *gateway) crowd(t *testing.T, n int, greet func(i int, conn net.Conn)) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, n)
	atOnce(n, func(i int) {
		conn, err := net.Dial("tcp", g.listen)
		if err != nil {
			t.Error(err)
			return
		}
		conns[i] = conn
		greet(i, conn)
	})
	return conns
}

// TestIdleConnections: ten thousand connections that do nothing, half of them after a
// request and half from the start.
func TestIdleConnections(t *testing.T) {
	n := min(crowdOf(t, 10_000), int(openFiles())-200)
	g := crowded(t, "--max-connections", "60000")
	c := newCitizen(t, g)
	c.goOn(t, 10)
	before, _ := g.memory()
	conns := g.crowd(t, n, func(i int, conn net.Conn) {
		if i%2 == 0 {
			return
		}
		say(t, conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if resp, _, err := hear(conn, bufio.NewReader(conn), 20*time.Second); err != nil || resp.StatusCode != http.StatusOK {
			t.Error(resp, err)
		}
	})
	defer closeAll(conns)
	c.goOn(t, 100)
	after, _ := g.memory()
	t.Logf("%d idle connections: %.1f KiB of memory each", n, float64(after-before)/float64(n)/1024)
	if each := (after - before) / int64(n); each > 64<<10 {
		t.Errorf("%d bytes of memory for a connection", each)
	}
	// They are still good.
	for i := 1; i < n; i += n / 20 * 2 {
		say(t, conns[i], "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if resp, _, err := hear(conns[i], bufio.NewReader(conns[i]), 20*time.Second); err != nil || resp.StatusCode != http.StatusOK {
			t.Error(resp, err)
		}
	}
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		if c != nil {
			c.Close()
		}
	}
}

// TestIdleConnectionsMakeRoom: where there may be no more connections, the ones that have
// been idle for longest go, and those that work stay.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	const most = 20
	g := crowded(t, "--max-connections", strconv.Itoa(most))
	working := make([]*net.TCPConn, most/2)
	for i := range working {
		working[i] = g.connect()
		say(t, working[i], "GET "+crowdTopic+"/records?offset=0&waitMs=60000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	soon(t, 20*time.Second, "the long polls are there", func() bool {
		return g.gauge(t, "oncelog_http_requests_in_flight") == most/2+1
	})
	idle := make([]*net.TCPConn, 3*most)
	for i := range idle {
		idle[i] = g.connect()
		say(t, idle[i], "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if resp, _, err := hear(idle[i], bufio.NewReader(idle[i]), 20*time.Second); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("connection %d: %v %v", i, resp, err)
		}
	}
	closed := 0
	for i, conn := range idle {
		if i == len(idle)-most/2 { // these may be open
			break
		}
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			closed++
		}
	}
	if want := len(idle) - most/2; closed != want {
		t.Errorf("%d of the %d connections that were idle for longest are closed", closed, want)
	}
	say(t, idle[len(idle)-1], rawAppend("wakes the long polls"))
	for i, conn := range working {
		if resp, _, err := hear(conn, bufio.NewReader(conn), 20*time.Second); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("long poll %d: %v %v", i, resp, err)
		}
	}
}

// TestSlowClients: clients who send the heads of their requests, or the bodies, byte by
// byte, and some who never read their answers.
func TestSlowClients(t *testing.T) {
	g := crowded(t, "--request-memory", "128MiB")
	value := strings.Repeat("v", 1<<20)
	for range 24 {
		conn := g.connect()
		say(t, conn, rawAppend(value))
		if resp, body, err := hear(conn, bufio.NewReader(conn), 20*time.Second); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v %s", err, body)
		}
	}
	c := newCitizen(t, g)
	heads, bodies, deaf := crowdOf(t, 300), crowdOf(t, 300), crowdOf(t, 40)
	conns := g.crowd(t, heads+bodies+deaf, func(i int, conn net.Conn) {
		switch {
		case i < heads:
			say(t, conn, "GET /topics HTTP/1.1\r\nHost: localhost\r\nX-Drip: ")
		case i < heads+bodies:
			say(t, conn, strings.TrimSuffix(rawAppend(value[:60<<10]), value[:10<<10]))
		default:
			say(t, conn, "GET "+crowdTopic+"/records?offset=0&maxBytes=33554432&limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}
	})
	defer closeAll(conns)
	for range 10 { // of drops
		for _, conn := range conns[:heads+bodies] {
			conn.Write([]byte("x")) // it may have been cut off
		}
		c.goOn(t, 20)
	}
	t.Logf("with %d slow heads, %d slow bodies and %d who do not read: bodies hold %.0f MiB, answers %.0f MiB", heads, bodies, deaf,
		g.gauge(t, `oncelog_request_memory_bytes{of="bodies"}`)/(1<<20), g.gauge(t, `oncelog_request_memory_bytes{of="answers"}`)/(1<<20))
	c.finish(t)
	closeAll(conns)
	g.givenBack(t)
	g.bounded(t, "slow clients", 500<<20)
}

// TestLongPollsAndStreams: a thousand of each wait for one record.
func TestLongPollsAndStreams(t *testing.T) {
	g := crowded(t)
	polls, streams := crowdOf(t, 1000), crowdOf(t, 1000)
	before, _ := g.memory()
	conns := g.crowd(t, polls+streams, func(i int, conn net.Conn) {
		switch {
		case i < polls:
			say(t, conn, "GET "+crowdTopic+"/records?offset=0&waitMs=60000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		case i%4 == 0: // the status page's
			say(t, conn, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		default:
			say(t, conn, "GET "+crowdTopic+"/records HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
		}
	})
	defer closeAll(conns)
	soon(t, 20*time.Second, "all of them wait", func() bool {
		return g.gauge(t, "oncelog_http_requests_in_flight") == float64(len(conns)+1)
	})
	after, _ := g.memory()
	c := newCitizen(t, g) // the first thing that it does wakes them all
	start := time.Now()
	atOnce(len(conns), func(i int) {
		want := `"offset":0`
		if i >= polls && i%4 == 0 {
			want = `"records":`
		}
		if err := hearsOf(conns[i], want); err != nil {
			t.Errorf("client %d: %v", i, err)
		}
	})
	t.Logf("%d long polls and %d event streams: %.1f KiB of memory each; all woken in %v", polls, streams,
		float64(after-before)/float64(len(conns))/1024, time.Since(start).Round(time.Millisecond))
	c.goOn(t, 20)
	c.finish(t)
	closeAll(conns)
	g.givenBack(t)
	g.bounded(t, "long polls and streams", 400<<20)
}

// hearsOf reads until it has read text.
func hearsOf(conn net.Conn, text string) error {
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	var got []byte
	buf := make([]byte, 4<<10)
	for !bytes.Contains(got, []byte(text)) {
		n, err := conn.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			return fmt.Errorf("%w after %q", err, got)
		}
	}
	return nil
}

// TestConnectionStorm: thousands of clients come and go, with a reset, in the middle of a
// request, in the middle of a body, before the answer, or not at all.
func TestConnectionStorm(t *testing.T) {
	g := crowded(t)
	c := newCitizen(t, g)
	c.goOn(t, 5)
	var stay sync.Map
	defer stay.Range(func(conn, _ any) bool { conn.(net.Conn).Close(); return true })
	n := crowdOf(t, 6000)
	start := time.Now()
	atOnce(n, func(i int) {
		dialed, err := net.Dial("tcp", g.listen)
		if err != nil {
			t.Error(err)
			return
		}
		conn := dialed.(*net.TCPConn)
		whole := rawAppend(strings.Repeat("v", 1+i%3000))
		switch i % 6 {
		case 0: // nothing is said
		case 1:
			conn.SetLinger(0) //nolint:errcheck // it closes with a reset
			say(t, conn, whole)
		case 2:
			say(t, conn, whole[:30])
		case 3:
			say(t, conn, whole[:len(whole)-1])
		case 4:
			say(t, conn, whole)
			if resp, body, err := hear(conn, bufio.NewReader(conn), 20*time.Second); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%v %s", err, body)
			}
		default: // half open for the time being
			stay.Store(conn, nil)
			say(t, conn, whole[:len(whole)-1])
			return
		}
		conn.Close()
	})
	t.Logf("%d connections in %v", n, time.Since(start).Round(time.Millisecond))
	c.goOn(t, 20)
	c.finish(t)
	stay.Range(func(conn, _ any) bool { conn.(net.Conn).Close(); return true })
	g.givenBack(t)
	g.bounded(t, "connection storm", 400<<20)
}
