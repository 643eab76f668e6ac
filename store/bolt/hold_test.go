package bolt_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// held sends an append that may be held and returns where its answer will come.
func (r *rig) held(ctx context.Context, a store.Append) <-chan answer {
	a.NoHold = false
	out := make(chan answer, 1)
	go func() {
		ack, err := r.Append(ctx, a)
		out <- answer{ack, err}
	}()
	return out
}

type answer struct {
	ack store.Ack
	err error
}

// parked waits until n batches are held.
func (r *rig) parked(p store.Partition, n int) {
	r.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		info, err := r.Partition(context.Background(), p)
		if err != nil {
			r.t.Fatal(err)
		}
		if info.Parked == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatalf("never %d batches were held", n)
}

func TestHeldBatchesCommitWithTheirPredecessor(t *testing.T) {
	r := newRig(t, bolt.Options{ReorderWait: time.Minute})
	p := r.topic("t", nil)
	pid := r.pid()
	ctx := context.Background()
	var answers []<-chan answer
	for seq := int64(4); seq >= 1; seq-- {
		answers = append(answers, r.held(ctx, app(p, pid, 0, seq, 1)))
		r.parked(p, len(answers))
	}
	before := r.Stats().Commits
	r.must(app(p, pid, 0, 0, 1), 0)
	if n := r.Stats().Commits - before; n != 1 {
		t.Errorf("%d commits, want the held batches in that of their predecessor", n)
	}
	for i, ch := range answers {
		if a := <-ch; a.err != nil || a.ack.BaseOffset != int64(4-i) {
			t.Errorf("sequence %d: %+v", 4-i, a)
		}
	}
	r.parked(p, 0)
	if st, err := r.PartitionProducer(ctx, p, pid); err != nil || st.Counters != (store.Counters{Accepted: 5, Held: 4}) {
		t.Errorf("counters %+v, %v", st.Counters, err)
	}
	if st := r.Stats(); st.Held != 4 || st.LastingGaps != 0 {
		t.Errorf("held %d, lasting gaps %d", st.Held, st.LastingGaps)
	}
}

func TestHoldEndsWithRefusal(t *testing.T) {
	r := newRig(t, bolt.Options{ReorderWait: 20 * time.Millisecond})
	p := r.topic("t", nil)
	pid := r.pid()
	for range 2 {
		a := <-r.held(context.Background(), app(p, pid, 0, 3, 1))
		var e *store.Error
		if !errors.As(a.err, &e) || e.Code != store.CodeOutOfOrderSequence || e.Sequence.ExpectedSeq != 0 {
			t.Fatalf("after the hold: %+v", a)
		}
	}
	if st := r.Stats(); st.LastingGaps != 2 || st.PassingGaps != 0 {
		t.Errorf("lasting %d, passing %d, want 2 and 0", st.LastingGaps, st.PassingGaps)
	}
	if n := strings.Count(r.log.String(), "left a gap"); n != 1 {
		t.Errorf("%d warnings, want one per producer and partition", n)
	}
}

func TestHoldEndsWithItsCaller(t *testing.T) {
	r := newRig(t, bolt.Options{ReorderWait: time.Minute})
	p := r.topic("t", nil)
	pid := r.pid()
	ctx, cancel := context.WithCancel(context.Background())
	ch := r.held(ctx, app(p, pid, 0, 1, 1))
	r.parked(p, 1)
	cancel()
	if a := <-ch; !errors.Is(a.err, context.Canceled) {
		t.Fatalf("cancelled hold: %+v", a)
	}
	r.parked(p, 0)
	r.must(app(p, pid, 0, 0, 1), 0)
	r.bounds(p, 0, 1) // what was given up must not follow
}

func TestWhatIsNotHeld(t *testing.T) {
	r := newRig(t, bolt.Options{ReorderWait: time.Minute})
	p := r.topic("t", nil)
	pid := r.pid()
	ctx := context.Background()
	r.refused(app(p, pid, 0, 1, 1), store.CodeOutOfOrderSequence) // asked not to
	r.must(app(p, pid, 0, 0, 1), 0)
	if a := <-r.held(ctx, app(p, pid, 0, 7, 1)); store.CodeOf(a.err) != store.CodeOutOfOrderSequence {
		t.Errorf("six batches ahead: %+v", a)
	}
	if a := <-r.held(ctx, app(p, r.pid(), 0, 5001, 1)); store.CodeOf(a.err) != store.CodeOutOfOrderSequence {
		t.Errorf("more than five batches of a thousand ahead: %+v", a)
	}
	if st := r.Stats(); st.PassingGaps != 1 || st.LastingGaps != 2 {
		t.Errorf("passing %d, lasting %d, want 1 and 2", st.PassingGaps, st.LastingGaps)
	}
	for seq := int64(2); seq <= 6; seq++ {
		r.held(ctx, app(p, pid, 0, seq, 1))
		r.parked(p, int(seq-1))
	}
	if a := <-r.held(ctx, app(p, pid, 0, 6, 1)); store.CodeOf(a.err) != store.CodeOutOfOrderSequence {
		t.Errorf("a sixth held batch: %+v", a)
	}
	if n := r.Stats().Held; n != 5 {
		t.Errorf("%d batches were held, want at most 5 of a producer", n)
	}
	r.close() // answers what is held
}

// A small batch may overtake a large one: of a new producer nobody knows how large its
// batches are, of a known one its batches tell.
func TestSmallBatchOvertakesALargeOne(t *testing.T) {
	r := newRig(t, bolt.Options{ReorderWait: time.Minute})
	p := r.topic("t", nil)
	pid := r.pid()
	for _, base := range []int64{0, 11} {
		ch := r.held(context.Background(), app(p, pid, 0, base+10, 1))
		r.parked(p, 1)
		r.must(app(p, pid, 0, base, 10), base)
		if a := <-ch; a.err != nil || a.ack.BaseOffset != base+10 {
			t.Errorf("the small one: %+v", a)
		}
	}
}

func TestDeletingTheTopicEndsHolds(t *testing.T) {
	r := newRig(t, bolt.Options{ReorderWait: time.Minute})
	p := r.topic("t", nil)
	ch := r.held(context.Background(), app(p, r.pid(), 0, 1, 1))
	r.parked(p, 1)
	if err := r.DeleteTopic(context.Background(), "t"); err != nil {
		t.Fatal(err)
	}
	if a := <-ch; store.CodeOf(a.err) != store.CodeUnknownTopic {
		t.Fatalf("held batch of a deleted topic: %+v", a)
	}
	if n := r.Stats().Parked; n != 0 {
		t.Errorf("%d still parked", n)
	}
}

func TestWaitersSeeOnlyWhatIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, bolt.Options{})
		p := r.topic("t", nil)
		woken := make(chan error, 1)
		go func() { woken <- r.Wait(t.Context(), p, 0) }()
		synctest.Wait()
		select {
		case err := <-woken:
			t.Fatalf("woken before any append: %v", err)
		default:
		}
		r.must(store.Append{Partition: p, Batch: texts("x", 1)}, 0)
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
		r.close()
	})
}
