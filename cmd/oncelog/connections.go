package main

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// connections bounds the connections of a server. When there are as many as may be, a new
// one takes the place of the one that has been idle for longest, so that clients who keep
// connections for nothing keep nobody out. When all of them are busy, the new one is closed.
type connections struct {
	most int

	mu   sync.Mutex
	open map[net.Conn]*list.Element // nil: a request is being answered
	idle list.List                  // of net.Conn, the longest idle first
}

func newConnections(most int) *connections {
	return &connections{most: most, open: map[net.Conn]*list.Element{}}
}

// changed is the [http.Server]'s ConnState. What has just come counts as idle until it has
// sent the head of a request.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.open[conn]
	switch state {
	case http.StateNew:
		if len(c.open) >= c.most && !c.closeIdle() {
			closeNow(conn)
		}
		c.open[conn] = c.idle.PushBack(conn)
	case http.StateIdle:
		if known && at == nil {
			c.open[conn] = c.idle.PushBack(conn)
		}
	case http.StateActive:
		if at != nil {
			c.idle.Remove(at)
			c.open[conn] = nil
		}
	case http.StateClosed, http.StateHijacked:
		c.forget(conn, at)
	}
}

// closeIdle closes the connection that has been idle for longest, if there is one. The
// caller holds mu.
func (c *connections) closeIdle() bool {
	first := c.idle.Front()
	if first == nil {
		return false
	}
	conn := first.Value.(net.Conn) //nolint:errcheck,forcetypeassert // nothing else is in the list
	c.forget(conn, first)
	closeNow(conn)
	return true
}

func (c *connections) forget(conn net.Conn, at *list.Element) {
	if at != nil {
		c.idle.Remove(at)
	}
	delete(c.open, conn)
}

// closeNow closes a connection without the farewell of TLS, which may take its time.
func closeNow(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	conn.Close() //nolint:errcheck // it is given up
}
