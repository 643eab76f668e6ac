package server

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// timedBody is a request body that has to arrive in time, so that a stalled upload holds
// neither memory nor a shutdown for ever. The deadline is lifted at the end of the body:
// what net/http reads after it is only to notice that the client has gone.
type timedBody struct {
	io.ReadCloser
	w       http.ResponseWriter
	timeout time.Duration
	armed   bool
	began   time.Time // zero: not yet
	taken   int64     // bytes that have been read

	hold holder      // memory for it
	told atomic.Bool // to leave
}

// begin gives the time from which on the body is waited for.
func (b *timedBody) begin() time.Time {
	if b.began.IsZero() {
		b.began = time.Now()
	}
	return b.began
}

// leave ends the wait for the body.
func (b *timedBody) leave() {
	b.told.Store(true)
	b.deadline(time.Unix(1, 0))
}

func (b *timedBody) Read(p []byte) (int, error) {
	if !b.armed {
		b.armed = true
		b.deadline(b.begin().Add(b.timeout))
		if b.told.Load() {
			b.leave()
		}
	}
	n, err := b.ReadCloser.Read(p)
	b.taken += int64(n)
	if err == io.EOF {
		b.deadline(time.Time{})
	}
	return n, err
}

const (
	// drainBytes and drainTime bound what is read of a body that has been refused.
	drainBytes = 64 << 20
	drainTime  = 10 * time.Second
)

// drainBody reads what is left of a refused body, for many clients look for an answer
// only when they have sent everything, and a connection that is closed before that
// loses it. It reports whether the end was reached.
func (x *exchange) drainBody(r *http.Request) bool {
	if r.ContentLength == 0 {
		return true
	}
	if r.Header.Get("Expect") != "" { // such a client waits to be asked for the body
		return false
	}
	x.body.armed = true
	x.body.deadline(time.Now().Add(drainTime))
	n, err := io.CopyN(io.Discard, r.Body, drainBytes)
	return n < drainBytes && errors.Is(err, io.EOF)
}

// deadline sets the connection's.
func (b *timedBody) deadline(t time.Time) {
	for w := b.w; w != nil; w = unwrapped(w) {
		if c, ok := w.(interface{ SetReadDeadline(t time.Time) error }); ok {
			_ = c.SetReadDeadline(t)
			return
		}
	}
}

// unwrapped is what a response writer wraps, nil: nothing. A writer that wraps nothing and
// has no deadlines is one without a connection. It is what [http.ResponseController] does,
// without its allocations.
func unwrapped(w http.ResponseWriter) http.ResponseWriter {
	if u, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		return u.Unwrap()
	}
	return nil
}
