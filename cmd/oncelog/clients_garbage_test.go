package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestHalfClosed: a client that has sent its request and shut down its side of the
// connection counts as gone: it gets a whole answer, if there is one already, or none. What
// it has sent is stored or not, as with any lost answer, and sending it again tells.
func TestHalfClosed(t *testing.T) {
	g := crowded(t)
	producers := crowdOf(t, 200)
	requests := make([]string, producers)
	for i := range requests {
		id, err := g.client.AllocateProducer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"pid":%d,"epoch":%d,"baseSeq":0,"records":[{"value":%d}]}`, id.PID, id.Epoch, i)
		requests[i] = fmt.Sprintf("POST %s/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", crowdTopic, len(body), body)
	}
	var answered atomic.Int64
	ask := func(i int, half bool) (string, error) {
		conn, err := net.Dial("tcp", g.listen)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		say(t, conn, requests[i])
		if half {
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				return "", err
			}
		}
		resp, body, err := hear(conn, bufio.NewReader(conn), 20*time.Second)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		return string(body), err
	}
	atOnce(producers, func(i int) {
		switch _, err := ask(i, true); {
		case err == nil:
			answered.Add(1)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // none
		default:
			t.Errorf("half closed: %v", err)
		}
	})
	var stored atomic.Int64
	atOnce(producers, func(i int) {
		body, err := ask(i, false)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(body, `"duplicate":true`) {
			stored.Add(1)
		}
	})
	t.Logf("of %d half-closed appends %d were answered and %d stored", producers, answered.Load(), stored.Load())
	if stored.Load() < answered.Load() {
		t.Error("what was acknowledged is not there")
	}
	if p, err := g.client.Partition(t.Context(), "t", 0); err != nil || p.NextOffset != int64(producers) {
		t.Errorf("%v: %d records, want one of each of %d producers", err, p.NextOffset, producers)
	}
	g.givenBack(t)
}

// TestGarbage: headers without an end, and all that is no HTTP, behind a good request or by
// itself, or good requests without an end and nobody who reads the answers.
func TestGarbage(t *testing.T) {
	g := crowded(t)
	c := newCitizen(t, g)
	junk := make([]byte, 64<<10)
	rand.NewChaCha8([32]byte{1}).Read(junk) //nolint:errcheck // it never fails
	good := "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
	kinds := []struct {
		name, text string
		status     int // of the last answer, 0: whatever it is
	}{
		{"headers above the limit", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("h", 70<<10) + "\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge},
		{"many headers", "GET /livez HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X-Many: h\r\n", 10_000) + "\r\n", http.StatusRequestHeaderFieldsTooLarge},
		{"headers without an end", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("h", 4<<20), http.StatusRequestHeaderFieldsTooLarge},
		{"junk", string(junk), 0},
		{"junk after a request", good + string(junk), 0},
		{"another protocol", good + "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + string(junk[:500]), http.StatusBadRequest},
		{"two lengths", "POST " + crowdTopic + "/batches HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", http.StatusBadRequest},
		{"an endless chunk size", "POST " + crowdTopic + "/batches HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("f", 32<<10), http.StatusBadRequest},
		{"an append, and junk", rawAppend("stored") + string(junk), 0},
		{"requests and no reader", strings.Repeat(good, 20_000), -1},
	}
	n := crowdOf(t, 200)
	atOnce(n, func(i int) {
		conn, err := net.Dial("tcp", g.listen)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		k := kinds[i%len(kinds)]
		deadline := time.Now().Add(20 * time.Second)
		if k.status < 0 {
			deadline = time.Now().Add(200 * time.Millisecond) // it is not read
		}
		conn.SetDeadline(deadline)               //nolint:errcheck // it is not closed
		_, wrote := io.WriteString(conn, k.text) // the server may close before all has been sent
		if k.status <= 0 {
			return
		}
		status := 0
		for r := bufio.NewReader(conn); ; {
			resp, _, err := hear(conn, r, 20*time.Second)
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: the connection stays open", k.name)
				}
				break
			}
			if status = resp.StatusCode; resp.Close || status == k.status {
				break
			}
		}
		// A reset can overtake the answer when not everything was read.
		if status != k.status && wrote == nil && len(k.text) < 1<<20 {
			t.Errorf("%s: status %d, want %d", k.name, status, k.status)
		}
	})
	c.goOn(t, 20)
	c.finish(t)
	g.givenBack(t)
	g.bounded(t, "garbage", 300<<20)
}
