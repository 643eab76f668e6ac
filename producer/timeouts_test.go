package producer_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// short gives a producer little time.
func short(opts ...producer.Option) []producer.Option {
	return append([]producer.Option{
		producer.WithRequestTimeout(time.Second), producer.WithDeliveryTimeout(5 * time.Second),
	}, opts...)
}

// B1 is stored but its answers are lost until it has timed out; B2 is acknowledged,
// which proves B1.
func TestC21TimedOutBatchIsProvenByALaterOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			return fate{
				loseAnswer: r.Op == "append" && r.BaseSeq == 0 && r.Epoch == 0,
				late:       map[bool]time.Duration{true: 900 * time.Millisecond}[r.Op == "append" && r.BaseSeq == 0],
				lose:       r.Op == "ask",
			}
		})
		h := &hooks{}
		p := w.producer(short(producer.WithHook(h))...)
		fs := sendAll(p, 0, 2)
		wantOffset(t, fs[1], 1, false)
		wantFailure(t, fs[0], producer.CodeDeliveryTimeout, openapi.Unknown)
		wantOffset(t, sendAll(p, 2, 1)[0], 2, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2")
		if len(h.resets) > 0 {
			t.Errorf("resets %v, want none", h.resets)
		}
	})
}

// The only batch times out after its request was lost: nothing new goes out before the
// server has said that it is not stored, and then under the next epoch.
func TestC22TimedOutBatchIsResolvedBeforeAnythingNew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		start := time.Now()
		down := func() bool { return time.Since(start) < 20*time.Second }
		w.decide(func(r request) fate { return fate{lose: down() && r.Op != "allocate"} })
		p := w.producer(short()...)
		f := sendAll(p, 0, 1)[0]
		wantFailure(t, f, producer.CodeDeliveryTimeout, openapi.Unknown)
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("reported after %v, want 5s", d)
		}
		time.Sleep(13 * time.Second)
		wantOffset(t, sendAll(p, 1, 1)[0], 0, false)
		closeProducer(t, p)
		w.wantLog(0, "r1")
		got := w.appends(0)
		if got[len(got)-1] != "1:0" || slices.Contains(got, "0:1") {
			t.Errorf("sent %q, want only 0:0 and then 1:0", got)
		}
	})
}

// As C22, but the batch is stored and only its answers are lost: the partition goes on
// under the same epoch.
func TestC22TimedOutBatchThatIsStored(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		start := time.Now()
		w.decide(func(r request) fate {
			return fate{loseAnswer: time.Since(start) < 8*time.Second && r.Op != "allocate"}
		})
		h := &hooks{}
		p := w.producer(short(producer.WithHook(h))...)
		wantFailure(t, sendAll(p, 0, 1)[0], producer.CodeDeliveryTimeout, openapi.Unknown)
		wantOffset(t, sendAll(p, 1, 1)[0], 1, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1")
		if got := w.appends(0); got[len(got)-1] != "0:1" || len(h.resets) > 0 {
			t.Errorf("sent %q, resets %v", got, h.resets)
		}
	})
}

// A timed-out batch with others in flight behind it that still have time: it is sent
// again, for skipping it might store the others twice.
func TestTimedOutBatchIsSentAgainForThoseBehindIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if first(r, 0) {
				return fate{lose: true, delay: 800 * time.Millisecond}
			}
			return fate{}
		})
		p := w.producer(short(producer.WithBackoff(time.Minute, time.Minute))...)
		a := sendAll(p, 0, 1)[0]
		time.Sleep(500 * time.Millisecond)
		b := sendAll(p, 1, 1)[0]
		wantFailure(t, a, producer.CodeDeliveryTimeout, openapi.Unknown)
		wantOffset(t, b, 1, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1")
		w.wantAppends(0, "0:0", "0:1", "0:0", "0:1")
	})
}

func TestC23TimeoutBeforeFirstSend(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		start := time.Now()
		w.decide(func(r request) fate {
			return fate{lose: r.Op == "allocate" && time.Since(start) < 10*time.Second}
		})
		p := w.producer(short()...)
		wantFailure(t, sendAll(p, 0, 1)[0], producer.CodeDeliveryTimeout, openapi.NotApplied)
		time.Sleep(4 * time.Second)
		wantOffset(t, sendAll(p, 1, 1)[0], 0, false)
		closeProducer(t, p)
		w.wantAppends(0, "0:0")
		w.wantLog(0, "r1")
	})
}

func TestC24RetriesExhausted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{status: map[bool]int{true: 503}[r.Op == "append" && r.Epoch == 0]} })
		p := w.producer(producer.WithRetries(2))
		e := wantFailure(t, sendAll(p, 0, 1)[0], producer.CodeDeliveryTimeout, openapi.Unknown)
		if !errors.Is(e.Err, producer.CodeForeignAnswer) || e.Status != 503 || e.RequestID == "" {
			t.Errorf("got %+v", e)
		}
		w.wantAppends(0, "0:0", "0:0", "0:0")
		wantOffset(t, sendAll(p, 1, 1)[0], 0, false)
		closeProducer(t, p)
		w.wantLog(0, "r1")
	})
}

func TestC26SuccessAfterTimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if first(r, 0) {
				return fate{late: 6 * time.Second}
			}
			return fate{}
		})
		p := w.producer(producer.WithRequestTimeout(8*time.Second), producer.WithDeliveryTimeout(8*time.Second), producer.WithRetries(9))
		outcomes := 0
		time.Sleep(time.Millisecond)
		p.SendFunc(t.Context(), rec("r0"), func(a producer.Ack, err error) { outcomes++ })
		closeProducer(t, p)
		if outcomes != 1 {
			t.Errorf("%d outcomes, want 1", outcomes)
		}
		w.wantLog(0, "r0")
	})
	inWorld(t, func(t *testing.T, w *world) { // the batch waited first, so that its time is up in mid-request
		start := time.Now()
		w.decide(func(r request) fate {
			switch {
			case r.Op == "allocate":
				return fate{late: 3 * time.Second}
			case first(r, 0):
				return fate{late: 3 * time.Second}
			}
			return fate{}
		})
		h := &hooks{}
		p := w.producer(producer.WithRequestTimeout(4*time.Second), producer.WithDeliveryTimeout(5*time.Second), producer.WithHook(h))
		wantFailure(t, sendAll(p, 0, 1)[0], producer.CodeDeliveryTimeout, openapi.Unknown)
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("reported after %v", d)
		}
		wantOffset(t, sendAll(p, 1, 1)[0], 1, false)
		closeProducer(t, p)
		w.wantAppends(0, "0:0", "0:1")
		if len(h.done) != 2 {
			t.Errorf("%d outcomes, want 2", len(h.done))
		}
	})
}

func TestC27AllocationIsTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if r.Op == "allocate" && r.Try < 3 {
				return fate{code: producer.CodeNotReady}
			}
			return fate{}
		})
		p := w.producer()
		wantOffset(t, sendAll(p, 0, 1)[0], 0, false)
		closeProducer(t, p)
		w.wantAppends(0, "0:0")
		if n := w.count("allocate"); n != 3 {
			t.Errorf("%d allocations, want 3", n)
		}
	})
}

func TestC28LostIDIsNeverUsed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{loseAnswer: r.Op == "allocate" && r.Try == 1} })
		p := w.producer()
		wantOffset(t, sendAll(p, 0, 1)[0], 0, false)
		closeProducer(t, p)
		for _, r := range w.requests {
			if r.Op == "append" && r.PID != 1 {
				t.Errorf("sent under id %d, want 1", r.PID)
			}
		}
	})
}

func TestC29EpochsExhausted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if r.Op == "append" && r.Epoch == producer.MaxEpoch && r.BaseSeq == 0 {
				return fate{code: producer.CodeInvalidArgument}
			}
			return fate{}
		})
		id, err := mustClient(t, w).AllocateProducer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := w.producer()
		p.SetIdentity(id.PID, producer.MaxEpoch)
		fs := sendAll(p, 0, 3)
		wantFailure(t, fs[0], producer.CodeInvalidArgument, openapi.NotApplied)
		wantOffsets(t, fs[1:], 0)
		closeProducer(t, p)
		last := w.requests[len(w.requests)-1]
		if last.PID != id.PID+1 || last.Epoch != 0 || last.BaseSeq != 1 || w.count("allocate") != 2 {
			t.Errorf("last sent %+v", last)
		}
	})
}
