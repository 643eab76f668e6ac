package producer

import (
	"context"
	"sync"
)

// buffer bounds the bytes of records that have no outcome yet. Those that wait for
// room get it in the order in which they came, so that a large record cannot starve.
type buffer struct {
	mu      sync.Mutex
	free    int
	waiting []*bufferWait
	closed  bool
}

type bufferWait struct {
	n     int
	ready chan struct{} // closed when the room is given, or the buffer is closed
	given bool
}

// tryAcquire takes n bytes if they are free and nobody waits.
func (b *buffer) tryAcquire(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.waiting) > 0 || b.free < n {
		return false
	}
	b.free -= n
	return true
}

// acquire takes n bytes, waiting for them until ctx ends. It reports false when ctx
// ended or the buffer was closed.
func (b *buffer) acquire(ctx context.Context, n int) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	if len(b.waiting) == 0 && b.free >= n {
		b.free -= n
		b.mu.Unlock()
		return true
	}
	w := &bufferWait{n: n, ready: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()

	select {
	case <-w.ready:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.given {
		return true
	}
	b.remove(w)
	return false
}

func (b *buffer) remove(w *bufferWait) {
	for i, o := range b.waiting {
		if o == w {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			break
		}
	}
	b.serve() // w may have stood in the way of smaller ones
}

// release gives n bytes back.
func (b *buffer) release(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.serve()
}

func (b *buffer) serve() {
	for len(b.waiting) > 0 && b.waiting[0].n <= b.free {
		w := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.free -= w.n
		w.given = true
		close(w.ready)
	}
}

// close refuses all who wait, and everyone after them.
func (b *buffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	for _, w := range b.waiting {
		close(w.ready)
	}
	b.waiting = nil
}

// available is how many bytes are free.
func (b *buffer) available() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free
}
