package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store/memory"
)

// A body that stalls is refused in time, and nothing of it is stored. The deadline ends
// with the body: a connection goes on to serve requests that take longer than it.
func TestStalledBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(server.Options{BodyTimeout: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Drain()
		s.Serve(memory.Open(memory.Options{}))
		if w := send(s, http.MethodPut, "/topics/t", "{}"); w.Code != http.StatusCreated {
			t.Fatal(w.Body)
		}
		conn := piped(t, s)
		read := bufio.NewReader(conn)
		ask := func(head, body string) *http.Response {
			t.Helper()
			if _, err := fmt.Fprintf(conn, "%s\r\nHost: oncelog\r\nContent-Type: application/octet-stream\r\n%s", head, body); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(read, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp
		}
		const appendTo = "POST /topics/t/partitions/0/batches HTTP/1.1"
		if resp := ask(appendTo, "Content-Length: 5\r\n\r\nwhole"); resp.StatusCode != http.StatusOK {
			t.Fatalf("a whole body: %s", resp.Status)
		}
		if resp := ask("GET /topics/t/partitions/0/records?offset=1&waitMs=600 HTTP/1.1", "\r\n"); resp.StatusCode != http.StatusOK {
			t.Fatalf("a long poll after it: %s", resp.Status)
		}
		if resp := ask(appendTo, "Content-Length: 9\r\n\r\nhalf"); resp.StatusCode != http.StatusBadRequest {
			t.Fatalf("a body that stalls: %s", resp.Status)
		}
		list := decode[openapi.RecordList](t, send(s, http.MethodGet, "/topics/t/partitions/0/records", "").Body.String())
		if list.NextOffset != 1 {
			t.Errorf("%d records, want the one that came whole", list.NextOffset)
		}
	})
}

// piped is a connection in memory to a handler, for tests in a bubble: its time passes as
// soon as all wait, so that no machine is too slow for a short timeout.
func piped(t *testing.T, h http.Handler) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	l := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- there
	done, ended := make(chan struct{}), make(chan struct{})
	web := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(ended)
		}
	}}
	go func() {
		defer close(done)
		web.Serve(l) //nolint:errcheck // it ends by Close
	}()
	t.Cleanup(func() {
		here.Close()
		<-ended
		web.Close()
		<-done
	})
	return here
}

// oneConn is a listener that accepts one connection.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
