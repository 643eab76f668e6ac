package bolt_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// TestHeldBatchesAreShown: while they wait, and what became of them after that.
func TestHeldBatchesAreShown(t *testing.T) {
	r := newRig(t, bolt.Options{ReorderWait: time.Minute})
	p := r.topic("t", nil)
	pid, other := r.pid(), r.pid()
	r.must(app(p, pid, 2, 0, 1), 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late := r.held(ctx, app(p, pid, 2, 4, 3))
	r.parked(p, 1)
	early := r.held(ctx, app(p, pid, 2, 2, 2))
	r.parked(p, 2)
	held := r.Held(p, pid)
	if len(held) != 2 || held[0].BaseSeq != 2 || held[0].LastSeq != 3 || held[1].BaseSeq != 4 || held[1].LastSeq != 6 ||
		held[0].Epoch != 2 || held[0].Since.IsZero() || held[0].Since.Before(held[1].Since) {
		t.Errorf("held: %+v", held)
	}
	if got := r.Held(p, other); len(got) != 0 {
		t.Errorf("held of another producer: %+v", got)
	}
	if got := r.Incidents(0, 10); len(got) != 0 {
		t.Errorf("incidents while nothing is decided: %+v", got)
	}
	r.must(app(p, pid, 2, 1, 1), 1)
	<-early
	<-late
	if got := r.Held(p, pid); len(got) != 0 {
		t.Errorf("still held: %+v", got)
	}
	got := r.Incidents(0, 10)
	if len(got) != 2 || got[0].Producer.BaseSeq != 2 || got[0].Offset != 2 || got[1].Producer.BaseSeq != 4 || got[1].Offset != 4 {
		t.Fatalf("incidents: %+v", got)
	}
	for _, i := range got {
		if i.Code != "" || i.Duplicate() || i.Waited <= 0 || i.CurrentEpoch != 2 || i.At.IsZero() {
			t.Errorf("a batch that waited and was stored: %+v", i)
		}
	}
	if got := r.Rejections(pid); len(got) != 0 {
		t.Errorf("rejections: %+v", got)
	}
}

// TestLastingGapIsAnIncident: a gap that outlasts the hold, and one that is too large for
// a hold, are told apart from one that is merely refused early.
func TestLastingGapIsAnIncident(t *testing.T) {
	r := newRig(t, bolt.Options{ReorderWait: time.Millisecond})
	p := r.topic("t", nil)
	pid := r.pid()
	r.must(app(p, pid, 0, 0, 1), 0)
	<-r.held(context.Background(), app(p, pid, 0, 2, 1))
	_, _ = r.Append(context.Background(), app(p, pid, 0, 3, 1)) // not held
	_, _ = r.Append(context.Background(), app(p, pid, 0, 1000, 1))
	got := r.Rejections(pid)
	if len(got) != 3 {
		t.Fatalf("rejections: %+v", got)
	}
	for i, want := range []struct {
		seq     int64
		lasting bool
		waited  bool
	}{{1000, true, false}, {3, false, false}, {2, true, true}} {
		if g := got[i]; g.Producer.BaseSeq != want.seq || g.Lasting != want.lasting || g.Waited > 0 != want.waited ||
			g.ExpectedSeq != 1 || g.Code != store.CodeOutOfOrderSequence {
			t.Errorf("rejection %d: %+v, want %+v", i, g, want)
		}
	}
}

// TestHeldIsReadWhileItChanges is for the race detector.
func TestHeldIsReadWhileItChanges(t *testing.T) {
	r := newRig(t, bolt.Options{ReorderWait: 100 * time.Microsecond})
	p := r.topic("t", nil)
	pid := r.pid()
	r.must(app(p, pid, 0, 0, 1), 0)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				r.Held(p, pid)
				r.Incidents(0, 10)
				r.Rejections(pid)
			}
		}
	})
	for seq := range int64(50) {
		ahead := r.held(context.Background(), app(p, pid, 0, 2*seq+2, 1))
		if _, err := r.Append(context.Background(), app(p, pid, 0, 2*seq+1, 1)); err != nil {
			t.Fatal(err)
		}
		if a := <-ahead; a.err != nil {
			r.must(app(p, pid, 0, 2*seq+2, 1), 2*seq+2)
		}
	}
	close(done)
	wg.Wait()
}
