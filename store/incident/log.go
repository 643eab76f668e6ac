// Package incident remembers the last appends that were not simply stored, for engines
// that implement [store.Incidents].
package incident

import (
	"container/list"
	"slices"
	"sync"

	"github.com/oncelog/oncelog/store"
)

// Bounds of what a [Log] remembers: about 3 MiB when all of it is used.
const (
	Recent      = 512  // incidents over all
	PerProducer = 16   // refusals of one producer
	Producers   = 1024 // producers with refusals
)

// Log remembers incidents. The zero value is ready for use, by many goroutines.
type Log struct {
	mu     sync.Mutex
	last   int64
	recent []store.Incident // a ring once it is full; the oldest is at last % Recent
	// refused are rings too, by producer; order lists them from the one that was refused
	// least recently, which is forgotten when there are too many.
	refused map[int64]*list.Element
	order   list.List
}

// refusals are those of one producer.
type refusals struct {
	producer int64
	total    int
	ring     []store.Incident
}

// Add remembers an incident and numbers it.
func (l *Log) Add(i *store.Incident) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i.Number = l.last + 1
	put(&l.recent, int(l.last%Recent), Recent, i)
	l.last++
	if i.Code != "" {
		r := l.refusalsOf(i.Producer.ID)
		put(&r.ring, r.total%PerProducer, PerProducer, i)
		r.total++
	}
}

// put writes to a place in a ring, which grows to its size as it fills.
func put(ring *[]store.Incident, at, size int, i *store.Incident) {
	if len(*ring) < size {
		*ring = append(*ring, *i)
		return
	}
	(*ring)[at] = *i
}

// refusalsOf gives those of a producer, which becomes the one refused most recently.
func (l *Log) refusalsOf(producer int64) *refusals {
	if e := l.refused[producer]; e != nil {
		l.order.MoveToBack(e)
		return e.Value.(*refusals) //nolint:errcheck // nothing else is in the list
	}
	if l.refused == nil {
		l.refused = map[int64]*list.Element{}
	}
	if len(l.refused) >= Producers {
		oldest := l.order.Remove(l.order.Front()).(*refusals) //nolint:errcheck // nothing else is in the list
		delete(l.refused, oldest.producer)
	}
	r := &refusals{producer: producer}
	l.refused[producer] = l.order.PushBack(r)
	return r
}

// Incidents implements [store.Incidents].
func (l *Log) Incidents(after int64, limit int) []store.Incident {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(l.last-max(after, 0), int64(limit), int64(len(l.recent)))
	if n <= 0 {
		return nil
	}
	out := make([]store.Incident, 0, n)
	for at := l.last - n; at < l.last; at++ {
		out = append(out, l.recent[at%Recent])
	}
	return out
}

// Rejections implements [store.Incidents].
func (l *Log) Rejections(producer int64) []store.Incident {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.refused[producer]
	if e == nil {
		return nil
	}
	r := e.Value.(*refusals) //nolint:errcheck // nothing else is in the list
	oldest := 0
	if len(r.ring) == PerProducer {
		oldest = r.total % PerProducer
	}
	out := slices.Concat(r.ring[oldest:], r.ring[:oldest])
	slices.Reverse(out)
	return out
}
