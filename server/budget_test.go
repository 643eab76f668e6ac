package server

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const patience = 2 * time.Second

// leaverFunc is a client that does something when it is told to leave.
type leaverFunc func()

func (f leaverFunc) leave() { f() }

// stays is a client that does not listen.
func stays() {}

// member is a holder that has been admitted with n bytes, whole being announced.
func member(t *testing.T, b *budget, n int64, left func()) *holder {
	t.Helper()
	h := &holder{budget: b}
	if err := h.admit(t.Context(), time.Now(), n, n, leaverFunc(left)); err != nil {
		t.Fatalf("no room for %d of %d, %d being used: %v", n, b.size, b.used, err)
	}
	return h
}

// isEmpty fails unless everything has been given back.
func (b *budget) isEmpty(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used != 0 || b.owed != 0 || b.leaving != 0 || len(b.waiting) != 0 || b.slow.newer != &b.slow || b.slow.older != &b.slow {
		t.Errorf("used %d, owed %d, leaving %d, %d waiting, ring empty: %t", b.used, b.owed, b.leaving, len(b.waiting), b.slow.newer == &b.slow)
	}
}

// TestSlowestLeaveFirst: who needs room gets it from those who have kept others waiting for
// longest, from no more of them than it takes, and from none whose patience is not over.
func TestSlowestLeaveFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 0, patience)
		var told []string
		client := func(name string, h **holder) func() {
			return func() { told = append(told, name); go (*h).end() }
		}
		var first, second, third *holder
		first = member(t, b, 40, client("first", &first))
		time.Sleep(patience / 2)
		second = member(t, b, 30, client("second", &second))
		third = member(t, b, 20, client("third", &third))

		early := &holder{budget: b}
		start := time.Now()
		if err := early.admit(t.Context(), time.Now(), 20, 20, leaverFunc(stays)); !errors.Is(err, errNoRoom) || time.Since(start) > 0 || len(told) > 0 {
			t.Fatalf("before anybody's patience is over: %v after %v, told %v", err, time.Since(start), told)
		}
		time.Sleep(patience/2 + 1)
		if err := early.admit(t.Context(), time.Now(), 20, 20, leaverFunc(stays)); err != nil || len(told) != 1 || told[0] != "first" {
			t.Fatalf("%v, told %v", err, told)
		}
		if used := b.use().used; used != 70 {
			t.Errorf("%d bytes in use", used)
		}
		time.Sleep(patience)
		// What is announced has to fit, though only a part is taken.
		whole := &holder{budget: b}
		if err := whole.admit(t.Context(), time.Now(), 1, 80, leaverFunc(stays)); err != nil || len(told) != 3 {
			t.Fatalf("%v, told %v", err, told)
		}
		early.end()
		whole.end()
		synctest.Wait()
		b.isEmpty(t)
		if u := b.use(); u.evicted != 3 || u.refused != 1 {
			t.Errorf("%+v", u)
		}
	})
}

// TestNobodyEvictsTheFaster: who has been slow for longer than others may not have them cut
// off, and does not cut off itself.
func TestNobodyEvictsTheFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 0, patience)
		oldest := member(t, b, 50, func() { t.Error("the one that asks was told to leave") })
		time.Sleep(time.Millisecond)
		newer := member(t, b, 50, func() { t.Error("the faster one was told to leave") })
		time.Sleep(2 * patience)
		if err := oldest.claim(t.Context(), 60); !errors.Is(err, errNoRoom) {
			t.Error(err)
		}
		if oldest.grow(60) {
			t.Error("grown without room")
		}
		oldest.settle(50) // it waits for its client no longer
		left := false
		newer.client = leaverFunc(func() { left = true; go newer.end() })
		if err := oldest.claim(t.Context(), 60); err != nil || !left {
			t.Error(err, left)
		}
		oldest.end()
		synctest.Wait()
		b.isEmpty(t)
	})
}

// TestWaitersComeInTurn: room goes to who has waited for longest, and nobody who comes later
// gets in between.
func TestWaitersComeInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, 0, patience)
		all := member(t, b, 100, stays)
		all.settle(100)
		got := make(chan string, 3)
		await := func(name string, n int64, ctx context.Context) *holder {
			h := &holder{budget: b}
			go func() {
				if err := h.await(ctx, n); err != nil {
					name += ": " + err.Error()
				}
				got <- name
			}()
			synctest.Wait()
			return h
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := await("gone", 60, ctx)
		large, small := await("large", 50, t.Context()), await("small", 10, t.Context())
		all.shrink(55) // 45 free: enough for the last in line
		synctest.Wait()
		late := &holder{budget: b}
		if late.grow(1) || late.claim(t.Context(), 1) == nil || len(got) > 0 {
			t.Fatal("somebody has passed those who wait")
		}
		cancel()
		if g := <-got; g != "gone: context canceled" {
			t.Fatal(g)
		}
		all.shrink(50)
		if g := <-got; g != "large" {
			t.Fatal(g)
		}
		start := time.Now()
		if g := <-got; g != "small: "+errNoRoom.Error() || time.Since(start) != budgetWait {
			t.Fatal(g, time.Since(start))
		}
		if err := late.await(t.Context(), 101); !errors.Is(err, errNoRoom) || time.Since(start) != budgetWait {
			t.Error("what never fits was waited for:", err)
		}
		for _, h := range []*holder{all, gone, large, small, late} {
			h.end()
			h.end() // again
		}
		b.isEmpty(t)
	})
}

// TestEachCountsForItsShare: a budget for so many holders has room for no more of them,
// however little they hold.
func TestEachCountsForItsShare(t *testing.T) {
	b := newBudget(1000, 10, patience)
	var in []*holder
	for range 10 {
		h := member(t, b, 1, stays)
		h.settle(1)
		in = append(in, h)
	}
	if err := (&holder{budget: b}).admit(t.Context(), time.Now(), 1, 1, leaverFunc(stays)); !errors.Is(err, errNoRoom) {
		t.Error(err)
	}
	if used := b.use().used; used != 1000 {
		t.Errorf("%d bytes in use", used)
	}
	for _, h := range in {
		h.end()
	}
	b.isEmpty(t)
}

// TestBudgetStorm: whatever many holders do at the same time, no more than the size is
// given away, and all of it comes back.
func TestBudgetStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1<<20, 30, patience)
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(rand.Uint64(), 0))
				for range 100 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(3000))*time.Millisecond)
					mingle(ctx, b, r)
					cancel()
					if u := b.use(); u.used > u.size || u.used < 0 {
						t.Errorf("%d of %d in use", u.used, u.size)
					}
				}
			})
		}
		all.Wait()
		b.isEmpty(t)
		if u := b.use(); u.evicted == 0 || u.refused == 0 {
			t.Errorf("nothing has happened: %+v", u)
		}
	})
}

// mingle is a request that does this and that.
func mingle(ctx context.Context, b *budget, r *rand.Rand) {
	h := &holder{budget: b}
	defer h.end()
	left := make(chan struct{})
	client := leaverFunc(func() { close(left) })
	if r.IntN(4) > 0 {
		if h.admit(ctx, time.Now(), r.Int64N(1<<12), r.Int64N(1<<18), client) != nil {
			return
		}
	}
	for range 4 {
		switch n := r.Int64N(1 << 18); r.IntN(6) {
		case 0:
			h.grow(n)
		case 1:
			if h.claim(ctx, n) != nil {
				return
			}
		case 2:
			if h.await(ctx, n) != nil {
				return
			}
		case 3:
			h.shrink(n)
		case 4:
			h.watch(client)
		default:
			select {
			case <-left:
				return
			case <-time.After(time.Duration(r.IntN(4000)) * time.Millisecond):
			}
		}
	}
	if r.IntN(2) == 0 {
		h.settle(r.Int64N(1 << 12))
	}
}
