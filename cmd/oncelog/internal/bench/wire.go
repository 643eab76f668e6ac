package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// wire is a connection with one request at a time, kept alive between them. What a
// general client does for each request (goroutines, timers, header maps) costs more
// than the server's answer, hence this one.
type wire struct {
	conn  net.Conn
	in    *bufio.Reader
	parts [2][]byte
	out   net.Buffers
}

const dialTimeout = 10 * time.Second

// dial opens a connection; buffer is how much of an answer is read at a time.
func dial(ctx context.Context, a address, buffer int) (*wire, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", a.host)
	if err != nil {
		return nil, err
	}
	if a.tls != nil {
		c := tls.Client(conn, a.tls)
		if err := c.HandshakeContext(ctx); err != nil {
			conn.Close() //nolint:errcheck // the first error is what matters
			return nil, err
		}
		conn = c
	}
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, buffer)}, nil
}

// send writes a request, whose end may be in a slice of its own.
func (w *wire) send(head, tail []byte) error {
	if len(tail) == 0 {
		_, err := w.conn.Write(head)
		return err
	}
	w.parts[0], w.parts[1] = head, tail
	w.out = w.parts[:]
	_, err := w.out.WriteTo(w.conn)
	return err
}

// answer is the head of an answer.
type answer struct {
	status     int
	length     int64 // of the body; −1: chunked
	closes     bool  // the server ends the connection after this answer
	retryAfter int64 // seconds; −1: not given
	next, high int64 // Next-Offset and High-Watermark; −1: not given
}

var errNotHTTP = errors.New("the answer is not HTTP/1.1")

// head reads the head of the next answer that is final.
func (w *wire) head() (answer, error) {
	for {
		a, err := w.anyHead()
		if err != nil || a.status >= 200 {
			return a, err
		}
	}
}

func (w *wire) anyHead() (answer, error) {
	a := answer{retryAfter: -1, next: -1, high: -1}
	line, err := w.in.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	const version = "HTTP/1.1 "
	if len(line) < len(version)+3 || string(line[:len(version)]) != version {
		return a, errNotHTTP
	}
	status, ok := parseInt(line[len(version) : len(version)+3])
	if !ok {
		return a, errNotHTTP
	}
	a.status = int(status)
	for {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return a, err
		}
		line = trimEnd(line)
		if len(line) == 0 {
			return a, nil
		}
		if err := a.field(line); err != nil {
			return a, err
		}
	}
}

// field takes what matters of a header field. The length of the name rules out most of
// them.
func (a *answer) field(line []byte) error {
	at := bytes.IndexByte(line, ':')
	if at < 0 {
		return errNotHTTP
	}
	value := line[at+1:]
	for len(value) > 0 && (value[0] == ' ' || value[0] == '\t') {
		value = value[1:]
	}
	is := func(name string) bool { return strings.EqualFold(string(line[:at]), name) }
	number := func(to *int64) error {
		n, ok := parseInt(value)
		if !ok {
			return fmt.Errorf("%w: %q", errNotHTTP, line)
		}
		*to = n
		return nil
	}
	switch at {
	case len("Connection"):
		a.closes = a.closes || is("Connection") && strings.EqualFold(string(value), "close")
	case len("Next-Offset"):
		switch {
		case is("Next-Offset"):
			return number(&a.next)
		case is("Retry-After"):
			_ = number(&a.retryAfter) // may be a date
		}
	case len("Content-Length"):
		switch {
		case is("Content-Length"):
			return number(&a.length)
		case is("High-Watermark"):
			return number(&a.high)
		}
	case len("Transfer-Encoding"):
		if is("Transfer-Encoding") {
			a.length = -1
		}
	}
	return nil
}

// trimEnd takes the end of a line off.
func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})
}

// body hands the body to sink, in pieces that are valid during the call.
func (w *wire) body(a *answer, sink func([]byte)) error {
	if a.length >= 0 {
		return w.pieces(a.length, sink)
	}
	for {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, ok := parseHex(trimEnd(line))
		if !ok {
			return fmt.Errorf("%w: a chunk begins with %q", errNotHTTP, line)
		}
		if err := w.pieces(size, sink); err != nil {
			return err
		}
		end, err := w.in.ReadSlice('\n') // trailers are not used by the servers measured
		if err != nil {
			return err
		}
		if len(trimEnd(end)) > 0 {
			return fmt.Errorf("%w: a chunk ends with %q", errNotHTTP, end)
		}
		if size == 0 {
			return nil
		}
	}
}

func (w *wire) pieces(n int64, sink func([]byte)) error {
	for n > 0 {
		if w.in.Buffered() == 0 {
			if _, err := w.in.Peek(1); err != nil {
				return err
			}
		}
		piece, err := w.in.Peek(int(min(n, int64(w.in.Buffered()))))
		if err != nil {
			return err
		}
		sink(piece)
		if _, err := w.in.Discard(len(piece)); err != nil {
			return err
		}
		n -= int64(len(piece))
	}
	return nil
}

// small gives the whole body, valid until the next read. keep is used when it is not in
// one piece, and is given back grown.
func (w *wire) small(a *answer, keep []byte) (body, kept []byte, err error) {
	if a.length >= 0 && a.length <= int64(w.in.Size()) {
		body, err = w.in.Peek(int(a.length))
		if err == nil {
			_, err = w.in.Discard(len(body))
		}
		return body, keep, err
	}
	keep = keep[:0]
	err = w.body(a, func(p []byte) { keep = append(keep, p...) })
	return keep, keep, err
}

func (w *wire) close() {
	w.conn.Close() //nolint:errcheck // whoever waits for it gets an error of its own
}

// parseInt reads decimal digits.
func parseInt(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// parseHex reads the size of a chunk, whose extensions are not used by the servers
// measured.
func parseHex(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 15 {
		return 0, false
	}
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | int64(c)
	}
	return n, true
}
