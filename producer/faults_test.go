package producer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

func TestC36OnePartitionFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{lose: r.Partition == 1 && first(r, 0)} })
		p := w.producer()
		start := time.Now()
		var fs []producer.Future
		for i := range 3 {
			fs = append(fs, p.Send(t.Context(), recTo(i, "x")))
		}
		wantOffset(t, fs[0], 0, false)
		wantOffset(t, fs[2], 0, false)
		if d := time.Since(start); d > 20*time.Millisecond {
			t.Errorf("the others took %v", d)
		}
		wantOffset(t, fs[1], 0, false)
		closeProducer(t, p)
		w.wantAppends(0, "0:0")
		w.wantAppends(1, "0:0", "0:0")
	})
}

// C38 and C51: an error that came after the commit looks like one before it.
func TestC38C51ErrorAfterTheCommit(t *testing.T) {
	for _, status := range []int{408, 429, 500, 502, 503, 504, 507} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.decide(func(r request) fate {
					switch {
					case first(r, 0):
						return fate{statusLate: status}
					case first(r, 1):
						return fate{status: status}
					}
					return fate{}
				})
				p := w.producer()
				fs := sendAll(p, 0, 2)
				wantOffset(t, fs[0], 0, true)
				wantOffset(t, fs[1], 1, false)
				closeProducer(t, p)
				w.wantLog(0, "r0", "r1")
			})
		})
	}
}

// C39: every request in flight times out; they are sent again by sequence.
func TestC39AllInFlightTimeOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if r.Op == "append" && r.Try == 1 {
				return fate{delay: time.Hour}
			}
			return fate{}
		})
		p := w.producer()
		wantOffsets(t, sendAll(p, 0, 5), 0)
		closeProducer(t, p)
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:3", "0:4", "0:0", "0:1", "0:2", "0:3", "0:4")
		time.Sleep(2 * time.Hour)
		w.wantLog(0, "r0", "r1", "r2", "r3", "r4")
	})
}

func TestC40CloseFlushes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer(producer.WithLinger(time.Hour), producer.WithDeliveryTimeout(3*time.Hour), producer.WithBatchBytes(1<<16))
		start := time.Now()
		fs := sendAll(p, 0, 50)
		closeProducer(t, p)
		wantOffsets(t, fs, 0)
		if d := time.Since(start); d > time.Second {
			t.Errorf("closing took %v", d)
		}
		wantFailure(t, sendAll(p, 0, 1)[0], producer.CodeClosed, openapi.NotApplied)
	})
}

func TestC40CloseInAHurry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{lose: r.Op == "append"} })
		p := w.producer()
		fs := sendAll(p, 0, 7)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		for i, f := range fs { // five were sent, two never
			want := openapi.Unknown
			if i >= 5 {
				want = openapi.NotApplied
			}
			wantFailure(t, f, producer.CodeClosed, want)
		}
	})
}

func TestC41FirstBatchesOvertaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			return fate{delay: map[bool]time.Duration{true: 100 * time.Millisecond}[first(r, 0)]}
		})
		p := w.producer()
		wantOffsets(t, sendAll(p, 0, 2), 0)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1")
		w.wantAppends(0, "0:0", "0:1", "0:1")
	})
}

// C48: the window is a span. B1 is stored but unanswered, B2 to B5 are acknowledged:
// B6 has to wait.
func TestC48WindowIsASpan(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if first(r, 0) {
				return fate{late: 10 * time.Second, loseAnswer: true}
			}
			return fate{}
		})
		p := w.producer()
		fs := sendAll(p, 0, 8)
		wantOffsets(t, fs[1:5], 1)
		time.Sleep(5 * time.Second)
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:3", "0:4")
		wantOffset(t, fs[0], 0, true)
		wantOffsets(t, fs[5:], 5)
		closeProducer(t, p)
		w.wantAppends(0, "0:0", "0:1", "0:2", "0:3", "0:4", "0:0", "0:5", "0:6", "0:7")
	})
}

func TestC49ConcurrentSendersDoNotShareSequences(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer()
		fs := make(chan producer.Future, 20)
		for i := range 20 {
			go func() { fs <- p.Send(context.Background(), rec(fmt.Sprint("r", i))) }()
		}
		seen := map[int64]bool{}
		for range 20 {
			a, err := (<-fs).Wait(t.Context())
			if err != nil || seen[a.Offset] || a.Duplicate {
				t.Errorf("got %+v, %v", a, err)
			}
			seen[a.Offset] = true
		}
		closeProducer(t, p)
		if got := w.log(0); len(got) != 20 {
			t.Errorf("%d records stored, want 20", len(got))
		}
	})
}

// C50: P1 has a gap while an answer for P2 is lost; P2's batch keeps its epoch.
func TestC50GapHereLostAnswerThere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			switch {
			case r.Partition == 0 && first(r, 0):
				return fate{code: producer.CodeInvalidArgument}
			case r.Partition == 1 && first(r, 0):
				return fate{loseAnswer: true}
			}
			return fate{}
		})
		p := w.producer()
		x := p.Send(t.Context(), recTo(1, "x"))
		wantFailure(t, p.Send(t.Context(), rec("bad")), producer.CodeInvalidArgument, openapi.NotApplied)
		wantOffset(t, p.Send(t.Context(), rec("good")), 0, false)
		wantOffset(t, x, 0, true)
		closeProducer(t, p)
		w.wantLog(1, "x")
		w.wantAppends(1, "0:0", "0:0")
	})
}

func TestDoubledAndDelayedRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			return fate{double: r.Op == "append", delay: time.Duration(r.BaseSeq%3) * 7 * time.Millisecond}
		})
		p := w.producer()
		fs := sendAll(p, 0, 20)
		wantOffsets(t, fs, 0)
		closeProducer(t, p)
		if got := w.log(0); len(got) != 20 {
			t.Errorf("%d records stored, want 20", len(got))
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if first(r, 0) {
				return fate{code: producer.CodeRateLimited, retryAfter: "7"}
			}
			return fate{}
		})
		p := w.producer()
		start := time.Now()
		wantOffset(t, sendAll(p, 0, 1)[0], 0, false)
		if d := time.Since(start); d < 7*time.Second || d > 8*time.Second {
			t.Errorf("it took %v, want 7s and a little", d)
		}
		closeProducer(t, p)
	})
}

func TestBackoffGrows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{lose: r.Op == "append" && r.Try < 8} })
		p := w.producer()
		wantOffset(t, sendAll(p, 0, 1)[0], 0, false)
		closeProducer(t, p)
		var at []time.Time
		for _, r := range w.requests {
			if r.Op == "append" {
				at = append(at, r.At)
			}
		}
		for i := 1; i < len(at); i++ {
			want := min(100*time.Millisecond<<(i-1), time.Second)
			got := at[i].Sub(at[i-1]) - time.Millisecond // under way
			if got < want*79/100 || got > want*121/100 {
				t.Errorf("wait %d is %v, want %v and at most a fifth more or less", i, got, want)
			}
		}
	})
}

// A refusal after a lost answer says nothing of what the lost request did.
func TestRefusedAfterALostAnswer(t *testing.T) {
	refuseLater := func(stored bool) func(request) fate {
		return func(r request) fate {
			switch {
			case r.Op != "append" || r.BaseSeq != 0 || r.Epoch != 0:
			case r.Try == 1 && stored:
				return fate{loseAnswer: true}
			case r.Try == 1:
				return fate{lose: true}
			default:
				return fate{code: producer.CodeForbidden}
			}
			return fate{}
		}
	}
	t.Run("stored", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.decide(refuseLater(true))
			p := w.producer()
			fs := sendAll(p, 0, 3)
			wantOffset(t, fs[0], 0, true)
			wantOffsets(t, fs[1:], 1)
			closeProducer(t, p)
			w.wantLog(0, "r0", "r1", "r2")
		})
	})
	t.Run("not stored", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.decide(refuseLater(false))
			p := w.producer(producer.WithMaxInFlight(1))
			fs := sendAll(p, 0, 3)
			wantFailure(t, fs[0], producer.CodeForbidden, openapi.Unknown)
			wantOffsets(t, fs[1:], 0)
			closeProducer(t, p)
			w.wantLog(0, "r1", "r2")
			w.wantAppends(0, "0:0", "0:0", "1:0", "1:1")
		})
	})
	t.Run("not stored, others in flight behind it", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.decide(refuseLater(false))
			p := w.producer(producer.WithMaxInFlight(2))
			fs := sendAll(p, 0, 3)
			wantFailure(t, fs[0], producer.CodeForbidden, openapi.Unknown)
			wantFailure(t, fs[1], producer.CodeUndecided, openapi.Unknown)
			wantOffset(t, fs[2], 0, false)
			closeProducer(t, p)
			w.wantLog(0, "r2")
		})
	})
}

func TestFlushWaitsForSplitParts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			switch {
			case first(r, 0):
				return fate{code: producer.CodeTooLarge}
			case r.Op == "append" && r.Try < 3:
				return fate{late: 500 * time.Millisecond}
			}
			return fate{}
		})
		p := w.producer(producer.WithBatchBytes(1<<16), producer.WithLinger(time.Second))
		done := 0
		for i := range 9 {
			p.SendFunc(t.Context(), rec(fmt.Sprint("r", i)), func(a producer.Ack, err error) {
				if err != nil || a.Offset != int64(i) {
					t.Errorf("record %d: %+v, %v", i, a, err)
				}
				done++
			})
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if done != 9 {
			t.Errorf("flush returned after %d of 9 outcomes", done)
		}
		closeProducer(t, p)
		if n := p.Stats().BufferedBytes; n != 0 {
			t.Errorf("%d bytes are still held", n)
		}
	})
}

func TestLearnsTheTopicsLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		small := int64(300)
		if _, err := mustClient(t, w).UpdateTopic(t.Context(), "t", openapi.PutTopicRequest{TopicConfig: openapi.TopicConfig{MaxBatchBytes: &small}}, nil); err != nil {
			t.Fatal(err)
		}
		p := w.producer(producer.WithBatchBytes(1<<16), producer.WithLinger(time.Second))
		fs := sendAll(p, 0, 300)
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantOffsets(t, fs, 0)
		before := len(w.requests)
		fs = sendAll(p, 300, 300) // four times what a batch may hold
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantOffsets(t, fs, 300)
		closeProducer(t, p)
		for _, r := range w.requests[before:] {
			if r.Answer == 413 {
				t.Errorf("a batch at %d was too large after the limit was known", r.BaseSeq)
			}
		}
	})
}

func TestSendBlocksWhileTheBufferIsFull(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{late: time.Second} })
		p := w.producer(producer.WithBufferBytes(2<<20), producer.WithMaxBlock(500*time.Millisecond))
		big := make([]byte, 1<<20-100)
		a := p.Send(t.Context(), producer.Record{Topic: "t", Partition: new(0), Value: big})
		b := p.Send(t.Context(), producer.Record{Topic: "t", Partition: new(0), Value: big})
		wantFailure(t, p.Send(t.Context(), rec(string(make([]byte, 4096)))), producer.CodeBlocked, openapi.NotApplied)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		wantFailure(t, p.Send(ctx, rec(string(make([]byte, 4096)))), producer.CodeCanceled, openapi.NotApplied)
		time.Sleep(time.Second)
		synctest.Wait()
		c := p.Send(t.Context(), rec("c")) // there may be room by now
		for _, f := range []producer.Future{a, b} {
			if _, err := f.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		_, _ = c.Wait(t.Context())
		closeProducer(t, p)
		if n := p.Stats().BufferedBytes; n != 0 {
			t.Errorf("%d bytes are still held", n)
		}
	})
}
