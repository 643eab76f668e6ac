package producer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

func TestAtMostOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if r.Op != "append" {
				return fate{}
			}
			switch r.Try {
			case 1:
				return fate{loseAnswer: true}
			case 2:
				return fate{code: producer.CodeOverloaded}
			}
			return fate{}
		})
		p := w.producer(producer.WithDelivery(producer.AtMostOnce))
		fs := sendAll(p, 0, 3)
		wantFailure(t, fs[0], producer.CodeUnreachable, openapi.Unknown)
		wantFailure(t, fs[1], producer.CodeOverloaded, openapi.NotApplied)
		wantOffset(t, fs[2], 1, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r2")
		if n := w.count("allocate"); n != 0 {
			t.Errorf("%d ids allocated", n)
		}
	})
}

func TestAtLeastOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			return fate{loseAnswer: r.Op == "append" && r.Try == 2, lose: r.Op == "append" && r.Try == 4}
		})
		p := w.producer(producer.WithDelivery(producer.AtLeastOnce))
		fs := sendAll(p, 0, 4)
		for _, f := range fs {
			if _, err := f.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r1", "r2", "r3") // in order, one of them twice
	})
}

func TestAtLeastOnceGivesUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{status: 503} })
		p := w.producer(short(producer.WithDelivery(producer.AtLeastOnce), producer.WithRetries(2))...)
		wantFailure(t, sendAll(p, 0, 1)[0], producer.CodeForeignAnswer, openapi.Unknown)
		w.wantAppends(0, "0:0", "0:0", "0:0")
		closeProducer(t, p)

		p = w.producer(short(producer.WithDelivery(producer.AtLeastOnce), producer.WithMaxInFlight(3))...)
		for _, f := range sendAll(p, 0, 3) {
			wantFailure(t, f, producer.CodeDeliveryTimeout, openapi.Unknown)
		}
		w.decide(nil)
		wantOffset(t, sendAll(p, 3, 1)[0], 0, false)
		closeProducer(t, p)
	})
}

// A refusal does not tell what an earlier request has done.
func TestAtLeastOnceRefusedAfterALostAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if r.Op == "append" && r.Try == 1 {
				return fate{loseAnswer: true}
			}
			return fate{code: producer.CodeForbidden}
		})
		p := w.producer(producer.WithDelivery(producer.AtLeastOnce))
		wantFailure(t, sendAll(p, 0, 1)[0], producer.CodeForbidden, openapi.Unknown)
		closeProducer(t, p)
		w.wantLog(0, "r0")
	})
}

func TestAtLeastOnceSplits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			if r.Op == "append" && r.Try == 1 {
				return fate{code: producer.CodeTooLarge}
			}
			return fate{}
		})
		p := w.producer(producer.WithDelivery(producer.AtLeastOnce), producer.WithBatchBytes(1<<16), producer.WithLinger(time.Second))
		fs := sendAll(p, 0, 5)
		closeProducer(t, p)
		wantOffsets(t, fs, 0)
		w.wantLog(0, "r0", "r1", "r2", "r3", "r4")
	})
}

func TestIdempotenceRequired(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		yes := true
		if _, err := mustClient(t, w).UpdateTopic(t.Context(), "t", openapi.PutTopicRequest{TopicConfig: openapi.TopicConfig{RequireIdempotence: &yes}}, nil); err != nil {
			t.Fatal(err)
		}
		p := w.producer(producer.WithDelivery(producer.AtLeastOnce))
		wantFailure(t, sendAll(p, 0, 1)[0], producer.CodeIdempotenceRequired, openapi.NotApplied)
		closeProducer(t, p)
	})
}

// Records come back in the form in which they went, whatever coding carried them.
func TestFormsAndCompression(t *testing.T) {
	for _, enc := range []producer.Encoding{producer.Identity, producer.Gzip, producer.Zstd} {
		t.Run(string(enc), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.producer(producer.WithCompression(enc), producer.WithBatchBytes(1<<20), producer.WithLinger(time.Second))
				long := strings.Repeat("compress me ", 1000)
				at := time.UnixMilli(1767323045678).UTC()
				for _, r := range []producer.Record{
					{Value: []byte("text"), Key: []byte("key")},
					{Value: []byte{0xff, 0}, Key: []byte{0xfe}},
					{Value: []byte(`{"a": 1}`), ValueFormat: producer.FormatJSON},
					{Value: []byte("plain"), ValueFormat: producer.FormatBytes, KeyFormat: producer.FormatBytes, Key: []byte("b")},
					{Key: []byte("gone")},
					{Value: []byte{}, Timestamp: at, Headers: []producer.Header{{Name: "h", Value: "v"}}},
					{Value: []byte(long)},
				} {
					r.Topic, r.Partition = "t", new(0)
					p.Send(t.Context(), r)
				}
				closeProducer(t, p)
				if n := len(w.requests[len(w.requests)-1].Body); (n < 2000) != (enc != producer.Identity) {
					t.Errorf("the body has %d bytes", n)
				}
				got, err := mustClient(t, w).Records(t.Context(), "t", 0, producer.Read{})
				if err != nil {
					t.Fatal(err)
				}
				rs := got.Records
				if len(rs) != 7 {
					t.Fatalf("%d records", len(rs))
				}
				check := []bool{
					*rs[0].ValueText == "text" && *rs[0].Key == "key",
					*rs[1].ValueBase64 == "/wA=" && *rs[1].KeyBase64 == "/g==",
					string(rs[2].Value) == `{"a": 1}`,
					*rs[3].ValueBase64 == "cGxhaW4=" && *rs[3].KeyBase64 == "Yg==",
					string(rs[4].Value) == "null",
					*rs[5].ValueText == "" && rs[5].Timestamp == "2026-01-02T03:04:05.678Z" && rs[5].Headers[0].Value == "v",
					*rs[6].ValueText == long,
				}
				if i := slices.Index(check, false); i >= 0 {
					t.Errorf("record %d came back as %+v", i, rs[i])
				}
			})
		})
	}
}

// A record that the server would refuse is refused by Send, so that it takes no
// others with it.
func TestRefusedRecords(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer()
		for name, r := range map[string]producer.Record{
			"no topic":           {},
			"bad text":           {Topic: "t", Value: []byte{0xff}, ValueFormat: producer.FormatText},
			"bad text key":       {Topic: "t", Key: []byte{0xff}, KeyFormat: producer.FormatText},
			"JSON key":           {Topic: "t", Key: []byte("1"), KeyFormat: producer.FormatJSON},
			"bad JSON":           {Topic: "t", Value: []byte("{"), ValueFormat: producer.FormatJSON},
			"unknown format":     {Topic: "t", ValueFormat: 9},
			"timestamp":          {Topic: "t", Timestamp: time.Unix(-1, 0)},
			"header without":     {Topic: "t", Headers: []producer.Header{{}}},
			"long header name":   {Topic: "t", Headers: []producer.Header{{Name: strings.Repeat("n", 257)}}},
			"long header value":  {Topic: "t", Headers: []producer.Header{{Name: "n", Value: strings.Repeat("v", 8193)}}},
			"bad header":         {Topic: "t", Headers: []producer.Header{{Name: "\xff"}}},
			"many headers":       {Topic: "t", Headers: slices.Repeat([]producer.Header{{Name: "n"}}, 65)},
			"negative partition": {Topic: "t", Partition: new(-1)},
		} {
			called := false
			p.SendFunc(t.Context(), r, func(_ producer.Ack, err error) {
				called = err != nil && producer.OutcomeOf(err) == openapi.NotApplied
			})
			if !called {
				t.Errorf("%s: not refused", name)
			}
			wantFailure(t, p.Send(t.Context(), r), producer.CodeInvalidArgument, openapi.NotApplied)
		}
		wantFailure(t, p.Send(t.Context(), producer.Record{Topic: "t", Key: make([]byte, 32<<10+1)}), producer.CodeTooLarge, openapi.NotApplied)
		wantFailure(t, p.Send(t.Context(), producer.Record{Topic: "t", Value: make([]byte, 1<<20+1)}), producer.CodeTooLarge, openapi.NotApplied)
		closeProducer(t, p)
		if len(w.requests) != 0 {
			t.Errorf("%d requests", len(w.requests))
		}
	})
}

// An answer to something else is no answer.
func TestAnswerToAnotherRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer(producer.WithMaxInFlight(1))
		wantOffset(t, sendAll(p, 0, 1)[0], 0, false)
		w.decide(func(r request) fate { return fate{swap: first(r, 1)} }) // it gets the answer to the first one
		wantOffset(t, sendAll(p, 1, 1)[0], 1, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1")
	})
}

func TestHookAndStats(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate {
			switch {
			case first(r, 0):
				return fate{loseAnswer: true}
			case first(r, 1):
				return fate{code: producer.CodeInvalidArgument}
			}
			return fate{}
		})
		h := &hooks{}
		p := w.producer(producer.WithHook(h))
		sendAll(p, 0, 3)
		closeProducer(t, p)
		if s := p.Stats(); s != (producer.Stats{Sent: 3, Acked: 2, Duplicates: 1, Failed: 1, Retries: 2}) {
			t.Errorf("stats %+v", s)
		}
		if len(h.tries) != 5 || len(h.done) != 3 || len(h.resets) != 1 {
			t.Errorf("%d attempts, %d batches, %d resets", len(h.tries), len(h.done), len(h.resets))
		}
		if a := h.tries[0]; a.Err == nil && a.Number != 1 || a.Bytes == 0 || a.Records != 1 {
			t.Errorf("attempt %+v", a)
		}
		if r := h.resets[0]; r != (producer.Reset{Topic: "t", Reason: producer.ResetRefused, OldPID: 0, OldEpoch: 0, PID: 0, Epoch: 1}) {
			t.Errorf("reset %+v", r)
		}
	})
}

func TestLingerFillsBatches(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer(producer.WithLinger(10*time.Millisecond), producer.WithBatchBytes(1<<16))
		start := time.Now()
		f := p.Send(t.Context(), rec("a"))
		time.Sleep(9 * time.Millisecond)
		g := p.Send(t.Context(), rec("b"))
		wantOffset(t, f, 0, false)
		if d := time.Since(start); d < 10*time.Millisecond || d > 15*time.Millisecond {
			t.Errorf("sent after %v", d)
		}
		wantOffset(t, g, 1, false)
		closeProducer(t, p)
		w.wantAppends(0, "0:0")
	})
}

// The bound on requests holds over all partitions.
func TestMaxRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		open, most := 0, 0
		w.decide(func(r request) fate {
			if r.Op != "append" {
				return fate{}
			}
			open++
			most = max(most, open)
			return fate{late: 50 * time.Millisecond, then: func() { w.mu.Lock(); open--; w.mu.Unlock() }}
		})
		p := w.producer(producer.WithMaxRequests(2))
		for i := range 30 {
			p.Send(t.Context(), recTo(i%3, fmt.Sprint(i)))
		}
		closeProducer(t, p)
		if most != 2 {
			t.Errorf("%d requests at a time, want 2", most)
		}
	})
}
