package producer_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// The names of these tests are those of the scenarios that the design lists: C01 to
// C51, batches B1 to B5 of one record each with sequences 0 to 4.

func first(r request, baseSeq int64) bool {
	return r.Op == "append" && r.BaseSeq == baseSeq && r.Epoch == 0 && r.Try == 1
}

func TestC01FiveInFlight(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer()
		fs := sendAll(p, 0, 5)
		for i, f := range fs {
			wantOffset(t, f, int64(i), false)
		}
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2", "r3", "r4")
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:3", "0:4")
	})
}

func TestC02AnswerLostAfterAppend(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{loseAnswer: first(r, 1)} })
		p := w.producer()
		fs := sendAll(p, 0, 5)
		for i, f := range fs {
			wantOffset(t, f, int64(i), i == 1)
		}
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2", "r3", "r4")
	})
}

func TestC03RequestLostBeforeAppend(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{lose: first(r, 1)} })
		h := &hooks{}
		p := w.producer(producer.WithHook(h))
		wantOffsets(t, sendAll(p, 0, 5), 0)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2", "r3", "r4")
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:3", "0:4", "0:1", "0:2", "0:3", "0:4")
		if len(h.resets) > 0 {
			t.Errorf("resets %v, want none", h.resets)
		}
	})
}

func TestC04ResendsInOrderOneAtATime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		open, most := 0, 0
		w.decide(func(r request) fate {
			if r.Op != "append" {
				return fate{}
			}
			if r.Try == 1 {
				return fate{status: map[bool]int{true: 503}[r.BaseSeq == 0]}
			}
			open++
			most = max(most, open)
			return fate{then: func() { w.mu.Lock(); open--; w.mu.Unlock() }}
		})
		var order []int64
		p := w.producer()
		for i := range 5 {
			p.SendFunc(t.Context(), rec(fmt.Sprint("r", i)), func(a producer.Ack, err error) {
				if err != nil {
					t.Error(err)
				}
				order = append(order, a.Offset)
			})
		}
		closeProducer(t, p)
		if !slices.Equal(order, []int64{0, 1, 2, 3, 4}) || most != 1 {
			t.Errorf("reported in order %v, %d resends at a time; want 0 to 4 and 1", order, most)
		}
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:3", "0:4", "0:0", "0:1", "0:2", "0:3", "0:4")
	})
}

func TestC05BreakWithAllAppended(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{loseAnswer: r.Op == "append" && r.Try == 1} })
		p := w.producer()
		for i, f := range sendAll(p, 0, 5) {
			wantOffset(t, f, int64(i), true)
		}
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2", "r3", "r4")
	})
}

func TestC06BreakWithTwoAppended(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			lost := r.Op == "append" && r.Try == 1
			return fate{loseAnswer: lost && r.BaseSeq < 2, lose: lost && r.BaseSeq >= 2}
		})
		p := w.producer()
		for i, f := range sendAll(p, 0, 5) {
			wantOffset(t, f, int64(i), i < 2)
		}
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2", "r3", "r4")
	})
}

func TestC07FailuresInAnyOrderAreResentInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			switch { // B3's answer fails before B1's
			case first(r, 2):
				return fate{lose: true}
			case first(r, 0):
				return fate{loseAnswer: true, late: 50 * time.Millisecond}
			}
			return fate{}
		})
		p := w.producer()
		fs := sendAll(p, 0, 3)
		for i, f := range fs {
			wantOffset(t, f, int64(i), i == 0)
		}
		closeProducer(t, p)
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:0", "0:2")
	})
}

func TestC08AnswerAfterRequestTimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if first(r, 0) {
				return fate{delay: 40 * time.Second} // arrives after the timeout, and is too late
			}
			return fate{}
		})
		calls := 0
		p := w.producer()
		p.SendFunc(t.Context(), rec("r0"), func(a producer.Ack, err error) {
			calls++
			if err != nil || a.Offset != 0 {
				t.Errorf("got %+v, %v", a, err)
			}
		})
		closeProducer(t, p)
		time.Sleep(time.Hour)
		if calls != 1 {
			t.Errorf("%d outcomes, want 1", calls)
		}
		w.wantLog(0, "r0")
	})
}

func TestC09RestartWithAllAnswersLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			f := fate{loseAnswer: r.Op == "append" && r.Try == 1}
			if first(r, 4) {
				f.then = w.restart
			}
			return f
		})
		h := &hooks{}
		p := w.producer(producer.WithHook(h))
		for i, f := range sendAll(p, 0, 5) {
			wantOffset(t, f, int64(i), true)
		}
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2", "r3", "r4")
		if len(h.resets) > 0 {
			t.Errorf("resets %v, want none", h.resets)
		}
	})
}

func TestC11TooLargeIsSplit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer(producer.WithBatchBytes(1<<16), producer.WithLinger(time.Second))
		for range 10 { // sequences 0 to 9
			f := p.Send(t.Context(), rec("x"))
			_ = p.Flush(t.Context())
			if _, err := f.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		w.decide(func(r request) fate {
			if first(r, 10) {
				return fate{code: producer.CodeTooLarge}
			}
			return fate{}
		})
		fs := sendAll(p, 0, 4)
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantOffsets(t, fs, 10)
		wantOffset(t, sendAll(p, 4, 1)[0], 14, false)
		closeProducer(t, p)
		got := w.appends(0)[10:]
		if want := []string{"0:10", "0:10", "0:12", "0:14"}; !slices.Equal(got, want) {
			t.Errorf("sent %q, want %q", got, want)
		}
		if got := w.log(0)[10:]; !slices.Equal(got, []string{"r0", "r1", "r2", "r3", "r4"}) {
			t.Errorf("the log ends with %q", got)
		}
	})
}

func TestC12TooLargeSingleRecord(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if first(r, 0) {
				return fate{code: producer.CodeTooLarge}
			}
			return fate{}
		})
		p := w.producer()
		fs := sendAll(p, 0, 3)
		wantFailure(t, fs[0], producer.CodeTooLarge, openapi.NotApplied)
		wantOffsets(t, fs[1:], 0)
		closeProducer(t, p)
		w.wantLog(0, "r1", "r2")
		w.wantAppends(0, "0:0", "0:1", "0:2", "1:0", "1:1")
	})
}

func TestC13HoleWaitsForEarlierBatches(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			switch {
			case r.Op == "append" && r.Epoch == 0 && r.BaseSeq == 0 && r.Try < 4:
				return fate{loseAnswer: true} // stored, and nobody knows
			case first(r, 1):
				return fate{code: producer.CodeInvalidArgument}
			}
			return fate{}
		})
		p := w.producer()
		fs := sendAll(p, 0, 3)
		wantOffset(t, fs[0], 0, true)
		wantFailure(t, fs[1], producer.CodeInvalidArgument, openapi.NotApplied)
		wantOffset(t, fs[2], 1, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r2")
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:0", "0:0", "0:0", "1:0")
	})
}

func TestC14RefusedInTheMiddle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if first(r, 1) {
				return fate{code: producer.CodeInvalidArgument}
			}
			return fate{}
		})
		h := &hooks{}
		p := w.producer(producer.WithHook(h))
		fs := sendAll(p, 0, 5)
		wantOffset(t, fs[0], 0, false)
		wantFailure(t, fs[1], producer.CodeInvalidArgument, openapi.NotApplied)
		wantOffsets(t, fs[2:], 1)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r2", "r3", "r4")
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:3", "0:4", "1:0", "1:1", "1:2")
		if got := h.reasons(); !slices.Equal(got, []producer.ResetReason{producer.ResetRefused}) {
			t.Errorf("resets for %v", got)
		}
	})
}

func TestC15OutOfOrderBehindUndecided(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{delay: map[bool]time.Duration{true: time.Second}[first(r, 1)]} })
		h := &hooks{}
		p := w.producer(producer.WithHook(h))
		wantOffsets(t, sendAll(p, 0, 3), 0)
		closeProducer(t, p)
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:2")
		if len(h.resets) > 0 {
			t.Errorf("resets %v, want none", h.resets)
		}
	})
}
