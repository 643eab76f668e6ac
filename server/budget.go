package server

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/oncelog/oncelog/store"
)

// budget bounds the memory that requests hold at the same time: of bodies that arrive or
// wait to be stored, or of answers that are read or written. What it has no room for is
// refused as overloaded, or waits for a moment. Those that hold some of it while they wait
// for their clients are cut off when others need it, the slowest first: a few clients that
// take their time must not keep everybody else out.
type budget struct {
	sem  *semaphore.Weighted
	size int64

	mu   sync.Mutex
	slow holder // ring of those that wait for their clients, the longest first
}

const (
	// patience is how long a client may keep others waiting.
	patience = 2 * time.Second
	// budgetWait is how long a request waits for room that others are about to give back.
	budgetWait = time.Second
)

// holder is who holds some of a budget. With the zero value nothing is counted.
type holder struct {
	budget  *budget
	held    atomic.Int64 // only the owner changes it
	watched bool         // the owner's: watch has been called and unwatch has not

	// What follows is guarded by the budget's mu.
	older, newer *holder // neighbours in the ring, nil: not in it
	since        time.Time
	client       leaver
}

// leaver can be told to give back soon what it holds, from another goroutine.
type leaver interface{ leave() }

func newBudget(size int64) *budget {
	b := &budget{sem: semaphore.NewWeighted(size), size: size}
	b.slow.older, b.slow.newer = &b.slow, &b.slow
	return b
}

// errNoRoom means that a budget is used up.
var errNoRoom = errors.New("no room in memory")

// room reports whether h could hold n bytes now, or soon. It takes nothing.
func (h *holder) room(n int64) bool {
	if h.budget == nil {
		return true
	}
	n = min(n-h.held.Load(), h.budget.size)
	if n <= 0 {
		return true
	}
	if h.budget.sem.TryAcquire(n) {
		h.budget.sem.Release(n)
		return true
	}
	return h.budget.makeRoom(n)
}

// grow makes h hold n bytes, if there is room.
func (h *holder) grow(n int64) bool {
	more := n - h.held.Load()
	if h.budget == nil || more <= 0 {
		return true
	}
	if !h.budget.sem.TryAcquire(more) {
		return false
	}
	h.held.Add(more)
	return true
}

// claim is grow that waits for a moment if there is going to be room.
func (h *holder) claim(ctx context.Context, n int64) error {
	if h.grow(n) {
		return nil
	}
	if !h.budget.makeRoom(n - h.held.Load()) {
		return errNoRoom
	}
	return h.acquire(ctx, n)
}

// await is grow that waits for a moment.
func (h *holder) await(ctx context.Context, n int64) error {
	if h.grow(n) {
		return nil
	}
	h.budget.makeRoom(n - h.held.Load())
	return h.acquire(ctx, n)
}

func (h *holder) acquire(ctx context.Context, n int64) error {
	limited, cancel := context.WithTimeout(ctx, budgetWait)
	defer cancel()
	more := n - h.held.Load()
	if h.budget.sem.Acquire(limited, more) != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errNoRoom
	}
	h.held.Add(more)
	return nil
}

// shrink gives back what h holds above n bytes.
func (h *holder) shrink(n int64) {
	if less := h.held.Load() - n; h.budget != nil && less > 0 {
		h.held.Add(-less)
		h.budget.sem.Release(less)
	}
}

// watch says that from now on h waits for its client, who may be told to leave.
func (h *holder) watch(client leaver) {
	if h.budget == nil || h.watched {
		return
	}
	h.watched = true
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	h.since, h.client = time.Now(), client
	h.older, h.newer = b.slow.older, &b.slow
	h.older.newer, h.newer.older = h, h
}

// unwatch says that h waits no longer.
func (h *holder) unwatch() {
	if !h.watched {
		return
	}
	h.watched = false
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	h.unlink()
}

// end gives everything back.
func (h *holder) end() {
	h.unwatch()
	h.shrink(0)
}

func (h *holder) unlink() {
	if h.newer == nil {
		return
	}
	h.older.newer, h.newer.older = h.newer, h.older
	h.older, h.newer = nil, nil
}

// makeRoom tells those to leave who have waited for their clients for longer than
// patience, until n bytes come free, and reports whether they do.
func (b *budget) makeRoom(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := time.Now().Add(-patience)
	for h := b.slow.newer; h != &b.slow && n > 0 && h.since.Before(limit); h = b.slow.newer {
		n -= h.held.Load()
		h.unlink()
		h.client.leave()
	}
	return n <= 0
}

// overloaded is the problem that a budget is used up.
func overloaded(detail string) *problem {
	return &problem{code: string(store.CodeOverloaded), detail: detail}
}
