package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/server"
)

// A body that stalls is refused in time, and nothing of it is stored. The deadline ends
// with the body: a connection goes on to serve requests that take longer than it.
func TestStalledBody(t *testing.T) {
	e := newEnv(t, func(o *server.Options) { o.BodyTimeout = 200 * time.Millisecond })
	e.topic("t")
	conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
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
	if n := e.records("/topics/t/partitions/0").NextOffset; n != 1 {
		t.Errorf("%d records, want the one that came whole", n)
	}
}
