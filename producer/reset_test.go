package producer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

func TestC16GapAtTheHead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &hooks{}
		p := w.producer(producer.WithHook(h))
		wantOffsets(t, sendAll(p, 0, 3), 0)
		if err := w.store.DeleteTopic(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		w.recreate("t")
		wantOffsets(t, sendAll(p, 3, 2), 0)
		closeProducer(t, p)
		w.wantLog(0, "r3", "r4")
		if got := h.reasons(); !slices.Equal(got, []producer.ResetReason{producer.ResetGap}) {
			t.Errorf("resets for %v", got)
		}
		if got := w.appends(0); !slices.Equal(got[len(got)-2:], []string{"1:0", "1:1"}) {
			t.Errorf("sent %q", got)
		}
	})
}

func TestC17OtherPartitionKeepsEpochUntilDrained(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			switch {
			case r.Partition == 0 && first(r, 0):
				return fate{code: producer.CodeInvalidArgument}
			case r.Partition == 1 && r.Epoch == 0 && r.Try == 1:
				return fate{loseAnswer: true, late: time.Second}
			}
			return fate{}
		})
		p := w.producer()
		bad := p.Send(t.Context(), recTo(0, "bad"))
		a := p.Send(t.Context(), recTo(1, "a"))
		b := p.Send(t.Context(), recTo(1, "b"))
		wantFailure(t, bad, producer.CodeInvalidArgument, openapi.NotApplied)
		synctest.Wait()                         // the epoch rises after the failure is told
		c := p.Send(t.Context(), recTo(1, "c")) // while a and b are undecided
		wantOffset(t, a, 0, true)
		wantOffset(t, b, 1, true)
		wantOffset(t, c, 2, false)
		closeProducer(t, p)
		w.wantLog(1, "a", "b", "c")
		w.wantAppends(1, "0:0", "0:1", "0:0", "0:1", "1:0")
	})
}

func TestC18OtherPartitionStartsAtZero(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer()
		wantOffset(t, p.Send(t.Context(), recTo(1, "a")), 0, false)
		w.decide(func(r request) fate {
			if r.Partition == 0 && first(r, 0) {
				return fate{code: producer.CodeInvalidArgument}
			}
			return fate{}
		})
		wantFailure(t, p.Send(t.Context(), rec("bad")), producer.CodeInvalidArgument, openapi.NotApplied)
		synctest.Wait()
		wantOffset(t, p.Send(t.Context(), recTo(1, "b")), 1, false)
		closeProducer(t, p)
		w.wantAppends(1, "0:0", "1:0")
	})
}

func TestC19C20FencedIsFatal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer()
		wantOffset(t, sendAll(p, 0, 1)[0], 0, false)
		other := w.producer() // takes over the id
		other.SetIdentity(0, 1)
		wantOffset(t, other.Send(t.Context(), rec("other")), 1, false)
		fs := sendAll(p, 1, 8)
		wantFailure(t, fs[0], producer.CodeProducerFenced, openapi.NotApplied)
		for _, f := range fs[1:] {
			if _, err := f.Wait(t.Context()); !errors.Is(err, producer.CodeProducerFenced) {
				t.Errorf("got %v", err)
			}
		}
		before := w.count("append")
		wantFailure(t, p.Send(t.Context(), rec("late")), producer.CodeProducerFenced, openapi.NotApplied)
		if err := p.Close(t.Context()); !errors.Is(err, producer.CodeProducerFenced) {
			t.Errorf("close: %v", err)
		}
		closeProducer(t, other)
		if n := w.count("append"); n != before {
			t.Errorf("%d requests after the fatal error", n-before)
		}
		w.wantLog(0, "r0", "other")
	})
}

func TestC20UnauthenticatedIsFatal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if r.Op == "append" {
				return fate{code: producer.CodeUnauthenticated}
			}
			return fate{}
		})
		p := w.producer(producer.WithMaxInFlight(1))
		fs := sendAll(p, 0, 3)
		for _, f := range fs {
			wantFailure(t, f, producer.CodeUnauthenticated, openapi.NotApplied)
		}
		_ = p.Close(t.Context())
		w.wantAppends(0, "0:0")
	})
}

func TestC32ExpiredGoesOnUnderNextEpoch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &hooks{}
		p := w.producer(producer.WithHook(h))
		wantOffsets(t, sendAll(p, 0, 2), 0)
		if err := w.store.ExpireProducer(context.Background(), w.place(0), 0); err != nil {
			t.Fatal(err)
		}
		wantOffsets(t, sendAll(p, 2, 5), 2)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2", "r3", "r4", "r5", "r6")
		if got := h.reasons(); !slices.Equal(got, []producer.ResetReason{producer.ResetExpired}) {
			t.Errorf("resets for %v", got)
		}
	})
}

// The append is stored, its answer lost, and then the state expires: the tombstone
// tells that the batch was stored, so it is not written again.
func TestC33ExpiredBeforeTheRetry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer()
		wantOffset(t, sendAll(p, 0, 1)[0], 0, false)
		w.decide(func(r request) fate {
			if first(r, 1) || first(r, 2) {
				f := fate{loseAnswer: true}
				if r.BaseSeq == 2 {
					f.then = func() { _ = w.store.ExpireProducer(context.Background(), w.place(0), 0) }
				}
				return f
			}
			return fate{lose: first(r, 3)}
		})
		fs := sendAll(p, 1, 3)
		wantOffset(t, fs[0], -1, true)
		wantOffset(t, fs[1], -1, true)
		wantOffset(t, fs[2], 3, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2", "r3")
	})
}

func TestC32UnknownProducerGetsAnotherID(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &hooks{}
		p := w.producer(producer.WithHook(h))
		p.SetIdentity(4711, 3)
		a, b := sendAll(p, 0, 3), p.Send(t.Context(), recTo(1, "x"))
		wantOffsets(t, a, 0)
		wantOffset(t, b, 0, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2")
		if n := w.count("allocate"); n != 1 {
			t.Errorf("%d ids allocated, want 1", n)
		}
		for _, r := range h.resets {
			if r.Reason != producer.ResetUnknownID || r.OldPID != 4711 || r.PID != 0 {
				t.Errorf("reset %+v", r)
			}
		}
	})
}

func TestC34SharedIdentityIsFound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.producer(), w.producer()
		wantOffset(t, p.Send(t.Context(), rec("p0")), 0, false)
		q.SetIdentity(0, 0)
		e := wantFailure(t, q.Send(t.Context(), rec("q0")), producer.CodeSequenceReused, openapi.NotApplied)
		if e.Problem == nil || e.Problem.OriginalOffset == nil || *e.Problem.OriginalOffset != 0 {
			t.Errorf("problem %+v", e.Problem)
		}
		wantOffset(t, q.Send(t.Context(), rec("q1")), 1, false) // under an id of its own
		wantOffset(t, p.Send(t.Context(), rec("p1")), 2, false)
		closeProducer(t, p)
		closeProducer(t, q)
		w.wantLog(0, "p0", "q1", "p1")
	})
}

func TestC35CancelledCallKeepsItsSequence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if r.Op == "append" && r.BaseSeq == 1 && r.Try < 3 {
				return fate{lose: true}
			}
			return fate{}
		})
		p := w.producer()
		a := p.Send(t.Context(), rec("r0"))
		ctx, cancel := context.WithCancel(t.Context())
		b := p.Send(ctx, rec("r1"))
		cancel()
		if _, err := b.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("wait: %v", err)
		}
		c := p.Send(t.Context(), rec("r2"))
		wantOffset(t, a, 0, false)
		wantOffset(t, c, 2, false)
		wantOffset(t, b, 1, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2")
	})
}
