package producer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/memory"
)

// The server remembers one expired producer. Ours never was in partition 1, and counts as
// one of those that were, up to epoch 3.
func TestC35CutOffGoesOnAboveTheEpoch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.renewWith(memory.Options{MaxTombstones: 1})
		h := &hooks{}
		p := w.producer(producer.WithHook(h))
		wantOffsets(t, sendAll(p, 0, 1), 0) // as producer 0
		w.cutOff(1, 3)
		wantOffset(t, p.Send(t.Context(), recTo(1, "x")), 2, false)
		wantOffset(t, p.Send(t.Context(), recTo(1, "y")), 3, false)
		wantOffsets(t, sendAll(p, 1, 2), 1)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "r2")
		if n := w.count("allocate"); n != 1 {
			t.Errorf("%d ids allocated, want 1", n)
		}
		if r := h.resets; len(r) != 1 || r[0].Reason != producer.ResetExpired || r[0].Epoch != 4 {
			t.Errorf("resets %+v", r)
		}
	})
}

// cutOff lets two further producers expire in a partition under an epoch, so that the
// server, which remembers one, no longer knows which producers were there.
func (w *world) cutOff(partition int, epoch int64) {
	w.t.Helper()
	for range 2 {
		id, err := w.store.AllocateProducer(context.Background(), "")
		if err != nil {
			w.t.Fatal(err)
		}
		var b batch.Builder
		b.Add(&batch.Record{Value: []byte("other"), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
		_, err = w.store.Append(context.Background(), store.Append{
			Partition: w.place(partition), Producer: &store.ProducerSeq{ID: id.ID, Epoch: epoch}, Batch: b.Build(),
		})
		if err = errors.Join(err, w.store.ExpireProducer(context.Background(), w.place(partition), id.ID)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// The append is stored, its answer lost, the state expires and is dropped: nobody can say
// any more that the batch was stored, so it is not written again, and its outcome unknown.
func TestCutOffAfterALostAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.renewWith(memory.Options{MaxTombstones: 1})
		p := w.producer()
		wantOffset(t, sendAll(p, 0, 1)[0], 0, false)
		w.decide(func(r request) fate {
			if !first(r, 1) {
				return fate{lose: first(r, 2)}
			}
			return fate{loseAnswer: true, then: func() {
				_ = w.store.ExpireProducer(context.Background(), w.place(0), 0)
				w.cutOff(0, 0)
			}}
		})
		fs := sendAll(p, 1, 2)
		for i, f := range fs {
			_, err := f.Wait(t.Context())
			e, ok := errors.AsType[*producer.Error](err)
			if !ok || e.Outcome != openapi.Unknown {
				t.Errorf("batch %d: %v, want an unknown outcome", i+1, err)
			}
		}
		wantOffset(t, sendAll(p, 3, 1)[0], 4, false)
		closeProducer(t, p)
		w.wantLog(0, "r0", "r1", "other", "other", "r3")
	})
}
