package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oncelog/oncelog/store"
)

// budget bounds the memory that requests hold at the same time: of bodies that arrive or
// wait to be stored, or of answers that are read or written. What it has no room for is
// refused as overloaded, or waits for a moment. Those that hold some of it while they wait
// for their clients are cut off when others need it, the slowest first: a few clients that
// take their time must not keep everybody else out.
type budget struct {
	size     int64
	least    int64         // what a holder that has been admitted counts for in any case
	patience time.Duration // how long a client may keep others waiting

	mu      sync.Mutex
	used    int64     // what all hold
	leaving int64     // part of it: of those who have been told to leave
	waiting []*waiter // for room, the first come first
	owed    int64     // what they wait for
	slow    holder    // ring of those that wait for their clients, the longest first
	refused int64     // requests, since the start
	evicted int64     // clients told to leave, since the start
}

// budgetWait is how long a request waits for room that others are about to give back.
const budgetWait = time.Second

// holder is who holds some of a budget. With the zero value nothing is counted. Its methods
// are for one goroutine, its owner.
type holder struct {
	budget  *budget
	held    int64 // only the owner reads it without the budget's mu, or while it waits
	watched bool  // the owner's: watch has been called and unwatch has not

	// What follows is guarded by the budget's mu.
	older, newer *holder // neighbours in the ring, nil: not in it
	since        time.Time
	client       leaver
	told         bool // to leave
}

// leaver can be told to give back soon what it holds, from another goroutine.
type leaver interface{ leave() }

// waiter is a holder that waits for n bytes more.
type waiter struct {
	h     *holder
	n     int64
	ready chan struct{} // closed when it has got them
}

// newBudget makes one of size bytes for at most so many holders that are admitted, 0: as
// many as the size allows.
func newBudget(size, holders int64, patience time.Duration) *budget {
	b := &budget{size: size, patience: patience}
	if holders > 0 {
		b.least = size / holders
	}
	b.slow.older, b.slow.newer = &b.slow, &b.slow
	return b
}

// errNoRoom means that a budget is used up.
var errNoRoom = errors.New("no room in memory")

// admit makes h hold first bytes, and the least that counts. It fails unless there is, or
// will be in a moment, room for whole bytes, which are not taken: they have only been
// announced. From now on, the time is given, h waits for its client.
func (h *holder) admit(ctx context.Context, now time.Time, first, whole int64, client leaver) error {
	b := h.budget
	if b == nil {
		return nil
	}
	first = max(first, b.least)
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.claim(ctx, h, first, max(first, min(whole, b.size)))
	if err == nil {
		h.link(client, now)
	}
	return err
}

// grow makes h hold n bytes, if there is room.
func (h *holder) grow(n int64) bool {
	b := h.budget
	if b == nil || n <= h.held {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spare() < n-h.held {
		return false
	}
	b.give(h, n-h.held)
	return true
}

// claim is grow that waits for a moment if others have been told to leave, and tells them
// to. It does not wait for those that work: they may be waiting for room themselves.
func (h *holder) claim(ctx context.Context, n int64) error {
	b := h.budget
	if b == nil || n <= h.held {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.claim(ctx, h, n-h.held, n-h.held)
}

// await is claim that waits for those that work as well.
func (h *holder) await(ctx context.Context, n int64) error {
	b := h.budget
	if b == nil || n <= h.held {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	more := n - h.held
	switch {
	case b.spare() >= more:
		b.give(h, more)
		return nil
	case n > b.size: // it must not stand in the way of others
		b.refused++
		return errNoRoom
	}
	b.makeRoom(h, more)
	return b.wait(ctx, h, more)
}

// claim gives h n bytes more when there is, or is going to be, room for want of them. The
// caller holds mu.
func (b *budget) claim(ctx context.Context, h *holder, n, want int64) error {
	switch {
	case b.spare() >= want:
		b.give(h, n)
		return nil
	case !b.makeRoom(h, want):
		b.refused++
		return errNoRoom
	case b.spare() >= n:
		b.give(h, n)
		return nil
	}
	return b.wait(ctx, h, n)
}

// spare is what nobody holds and nobody waits for. The caller holds mu.
func (b *budget) spare() int64 { return b.size - b.used - b.owed }

// give makes h hold n bytes more. The caller holds mu.
func (b *budget) give(h *holder, n int64) {
	h.held += n
	b.used += n
	if h.told {
		b.leaving += n
	}
}

// wait waits for n bytes more for h, in line. The caller holds mu, which is let go of
// meanwhile.
func (b *budget) wait(ctx context.Context, h *holder, n int64) error {
	w := &waiter{h: h, n: n, ready: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.owed += n
	b.mu.Unlock()
	late := time.NewTimer(budgetWait)
	defer late.Stop()
	select {
	case <-w.ready:
	case <-late.C:
	case <-ctx.Done():
	}
	b.mu.Lock()
	for i := range b.waiting {
		if b.waiting[i] != w {
			continue
		}
		b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
		b.owed -= n
		b.serve() // those behind it may need less
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.refused++
		return errNoRoom
	}
	return nil
}

// serve gives those in line what has come free. The caller holds mu.
func (b *budget) serve() {
	for len(b.waiting) > 0 && b.size-b.used >= b.waiting[0].n {
		w := b.waiting[0]
		b.waiting[0] = nil
		b.waiting = b.waiting[1:]
		b.owed -= w.n
		b.give(w.h, w.n)
		close(w.ready)
	}
}

// makeRoom tells those to leave who have waited for their clients for longer than
// patience, and for longer than h, until there is going to be room for n bytes more. It
// reports whether there is. The caller holds mu.
func (b *budget) makeRoom(h *holder, n int64) bool {
	limit := time.Now().Add(-b.patience)
	for s := b.slow.newer; b.spare()+b.leaving < n && s != h && s != &b.slow && s.since.Before(limit); s = b.slow.newer {
		s.unlink()
		s.told = true
		b.leaving += s.held
		b.evicted++
		s.client.leave()
	}
	return b.spare()+b.leaving >= n
}

// shrink gives back what h holds above n bytes.
func (h *holder) shrink(n int64) {
	if b := h.budget; b != nil && h.held > n {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.take(h, h.held-n)
	}
}

// take takes n bytes back. The caller holds mu.
func (b *budget) take(h *holder, n int64) {
	h.held -= n
	b.used -= n
	if h.told {
		b.leaving -= n
	}
	b.serve()
}

// watch says that from now on h waits for its client, who may be told to leave.
func (h *holder) watch(client leaver) {
	if b := h.budget; b != nil && !h.watched {
		b.mu.Lock()
		defer b.mu.Unlock()
		h.link(client, time.Now())
	}
}

// settle says that h waits no longer for its client, and gives back what it holds above n
// bytes, save for the least.
func (h *holder) settle(n int64) {
	b := h.budget
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h.unlink()
	h.watched = false
	if n = max(n, b.least); h.held > n {
		b.take(h, h.held-n)
	}
}

// end gives everything back.
func (h *holder) end() {
	b := h.budget
	if b == nil || h.held == 0 && !h.watched {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h.unlink()
	h.watched = false
	b.take(h, h.held)
}

// link puts h at the end of the ring. The caller holds mu.
func (h *holder) link(client leaver, now time.Time) {
	b := h.budget
	h.watched, h.since, h.client = true, now, client
	h.older, h.newer = b.slow.older, &b.slow
	h.older.newer, h.newer.older = h, h
}

// unlink takes h out of the ring, if it is in it. The caller holds mu.
func (h *holder) unlink() {
	if h.newer == nil {
		return
	}
	h.older.newer, h.newer.older = h.newer, h.older
	h.older, h.newer = nil, nil
}

// budgetUse is how a budget stands.
type budgetUse struct{ size, used, refused, evicted int64 }

func (b *budget) use() budgetUse {
	b.mu.Lock()
	defer b.mu.Unlock()
	return budgetUse{b.size, b.used, b.refused, b.evicted}
}

// overloaded is the problem that a budget is used up.
func overloaded(detail string) *problem {
	return &problem{code: string(store.CodeOverloaded), detail: detail}
}
