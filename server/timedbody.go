package server

import (
	"io"
	"net/http"
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
}

func (b *timedBody) Read(p []byte) (int, error) {
	if !b.armed {
		b.armed = true
		b.deadline(time.Now().Add(b.timeout))
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.deadline(time.Time{})
	}
	return n, err
}

// deadline sets the connection's. A response writer that cannot is one without a
// connection.
func (b *timedBody) deadline(t time.Time) {
	_ = http.NewResponseController(b.w).SetReadDeadline(t)
}
