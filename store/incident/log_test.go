package incident_test

import (
	"sync"
	"testing"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/incident"
)

func add(l *incident.Log, producer, seq int64, code store.Code) {
	l.Add(&store.Incident{Producer: store.ProducerSeq{ID: producer, BaseSeq: seq}, Code: code, Count: 1})
}

func TestIncidentsInOrder(t *testing.T) {
	var l incident.Log
	if got := l.Incidents(0, 10); got != nil {
		t.Fatalf("an empty log gives %v", got)
	}
	const total = 2*incident.Recent + 7
	for n := int64(1); n <= total; n++ {
		add(&l, 1, n, "")
		for _, c := range []struct {
			after int64
			limit int
			first int64 // number of the first one
		}{
			{0, total, max(1, n-incident.Recent+1)},
			{-5, 3, max(1, n-2)},
			{n - 1, total, n},
			{n - 3, 2, max(1, n-1)},
		} {
			got := l.Incidents(c.after, c.limit)
			if len(got) != int(n-c.first+1) {
				t.Fatalf("after %d of %d, limit %d: %d incidents, want %d", c.after, n, c.limit, len(got), n-c.first+1)
			}
			for i, in := range got {
				if want := c.first + int64(i); in.Number != want || in.Producer.BaseSeq != want {
					t.Fatalf("incident %d after %d of %d is %+v", want, c.after, n, in)
				}
			}
		}
		if got := l.Incidents(n, 10); got != nil {
			t.Fatalf("after the last one: %v", got)
		}
	}
}

func TestRejectionsNewestFirst(t *testing.T) {
	var l incident.Log
	for n := range int64(3*incident.PerProducer + 1) {
		add(&l, 7, n, store.CodeProducerFenced)
		add(&l, 7, n, "") // a duplicate is no rejection and pushes none out
		add(&l, 8, n, store.CodeSequenceReused)
		got := l.Rejections(7)
		if want := min(n+1, incident.PerProducer); int64(len(got)) != want {
			t.Fatalf("%d rejections after %d, want %d", len(got), n+1, want)
		}
		for i, in := range got {
			if in.Producer.ID != 7 || in.Producer.BaseSeq != n-int64(i) || in.Code != store.CodeProducerFenced {
				t.Fatalf("rejection %d is %+v", i, in)
			}
		}
	}
	if got := l.Rejections(9); got != nil {
		t.Fatalf("a producer that was not refused has %v", got)
	}
}

// TestProducersAreForgotten: the one that has not been refused for longest goes.
func TestProducersAreForgotten(t *testing.T) {
	var l incident.Log
	for id := range int64(incident.Producers) {
		add(&l, id, 0, store.CodeProducerFenced)
	}
	add(&l, 0, 1, store.CodeProducerFenced) // now 1 is the oldest
	add(&l, incident.Producers, 0, store.CodeProducerFenced)
	for id, want := range map[int64]int{0: 2, 1: 0, 2: 1, incident.Producers: 1} {
		if got := l.Rejections(id); len(got) != want {
			t.Errorf("producer %d has %d rejections, want %d", id, len(got), want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	var l incident.Log
	var wg sync.WaitGroup
	for w := range int64(4) {
		wg.Go(func() {
			for n := range int64(1000) {
				add(&l, w, n, store.CodeProducerFenced)
				last := int64(0)
				for _, i := range l.Incidents(0, 50) {
					if i.Number <= last {
						t.Errorf("number %d after %d", i.Number, last)
					}
					last = i.Number
				}
				l.Rejections(w)
			}
		})
	}
	wg.Wait()
	if got := l.Incidents(0, 1); len(got) != 1 || got[0].Number != 4000 {
		t.Errorf("the last one is %+v", got)
	}
}

func BenchmarkAdd(b *testing.B) {
	var l incident.Log
	i := store.Incident{Code: store.CodeProducerFenced}
	for n := range b.N {
		i.Producer.ID = int64(n % 64)
		l.Add(&i)
	}
}
