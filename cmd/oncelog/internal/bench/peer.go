package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ServeNothing answers every POST with 200 once it has read the body, and stores
// nothing: what net/http itself allows. It writes its URL to out, and ends when in does,
// that is, with the process that has started it.
func ServeNothing(ctx context.Context, in io.Reader, out io.Writer) error {
	media := []string{"application/json"}
	return serve(ctx, in, out, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header()["Content-Type"] = media
		_, _ = io.WriteString(w, nothing)
	}))
}

// nothing is as long as the answer to an append.
const nothing = `{"topic":"oncelog-bench","partition":0,"baseOffset":1000000,"lastOffset":1000000,"nextSeq":10000,"duplicate":false,"appendedAt":"2026-01-02T03:04:05.678Z"}` + "\n"

func serve(ctx context.Context, in io.Reader, out io.Writer, h http.Handler) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: dialTimeout}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		s.Close() //nolint:errcheck // there is nobody left to tell
	}()
	if _, err := fmt.Fprintf(out, "http://%s\n", l.Addr()); err != nil {
		return err
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Peer is a server in a process of its own, to compare with.
type Peer struct {
	URL   string
	cmd   *exec.Cmd
	stdin io.Closer
}

// StartPeer starts this program again with args, under which it must call one of the
// functions above.
func StartPeer(ctx context.Context, args ...string) (*Peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0] = os.Args[0]
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Peer{cmd: cmd, stdin: stdin}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		p.Stop()
		return nil, fmt.Errorf("the server to compare with has not started: %w", err)
	}
	p.URL = strings.TrimSpace(url)
	return p, nil
}

// Stop ends the process.
func (p *Peer) Stop() {
	p.stdin.Close()
	_ = p.cmd.Wait() // how it ends does not matter any more
}
