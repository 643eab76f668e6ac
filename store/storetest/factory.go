package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
)

// Factory makes engines of one kind.
type Factory struct {
	// Open gives an empty engine that takes the time from clock if it can. The factory
	// sees to it that the engine is closed when t ends; the suite may have closed it
	// by then.
	Open func(t testing.TB, clock *Clock) store.Store
	// OpenBounded is Open for an engine with bounds. Nil: it has none that can be set.
	OpenBounded func(t testing.TB, clock *Clock, b Bounds) store.Store
	// Reopen ends an engine, with kill as loss of power would, and gives the one that
	// finds its data. Nil: the engine cannot be restarted.
	Reopen func(t testing.TB, s store.Store, kill bool) store.Store
	// Sweep makes the engine apply retention now, which it must not do at any other
	// time. Nil: it cannot be made to.
	Sweep  func(t testing.TB, s store.Store)
	Traits Traits
}

// Traits are what an engine, or the way to it, cannot express. The zero value is an
// engine that does all that store.Store says.
type Traits struct {
	// RealTime: the engine does not take the suite's clock.
	RealTime bool
	// Records: reads give single records and not the batches that they came in, so
	// that batch bounds, bytes and checksums cannot be compared.
	Records bool
	// NoOwners: the way to the engine cannot say who asks.
	NoOwners bool
	// NoClose: closing the engine closes only the way to it.
	NoClose bool
	// Slow: each call is dear, and the engine behind it has been through the random
	// tests by itself.
	Slow bool
}

// Clock is the time of an engine under test. It moves when it is told to.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock gives a clock that stands at a fixed time.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)}
}

// Now gives the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves the clock, back too.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Run holds an engine to everything that package store promises.
func Run(t *testing.T, f Factory) {
	subjects := []struct {
		name string
		run  func(*testing.T, Factory)
	}{
		{"Topics", testTopics},
		{"AppendRule", testAppendRule},
		{"Duplicates", testDuplicates},
		{"Limits", testLimits},
		{"Producers", testProducers},
		{"Owners", testOwners},
		{"Expiry", testExpiry},
		{"Bounds", testBounds},
		{"Incidents", testIncidents},
		{"Reads", testReads},
		{"Wait", testWait},
		{"Headers", testHeaders},
		{"Trim", testTrim},
		{"Segments", testSegments},
		{"Retention", testRetention},
		{"Snapshots", testSnapshots},
		{"Closing", testClosing},
		{"Concurrency", testConcurrency},
		{"Linearizability", testLinearizability},
		{"Restart", testRestart},
		{"Machine", testMachine},
	}
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) { s.run(t, f) })
	}
	t.Run("Cases", func(t *testing.T) {
		if f.Reopen == nil {
			t.Skip("the cases restart the engine")
		}
		Cases(t, func(t testing.TB, topic string) CaseTarget {
			t.Helper()
			return StoreTarget(t, f.Open(t, NewClock()), topic, func(s store.Store, kill bool) store.Store {
				return f.Reopen(t, s, kill)
			})
		})
	})
}
