package bolt_test

import (
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
	"github.com/oncelog/oncelog/store/storetest"
)

// opened is an engine with what it takes to open it again.
type opened struct {
	*bolt.Store
	dir     string
	options bolt.Options
}

func (o *opened) open(t testing.TB) *opened {
	t.Helper()
	s, err := bolt.Open(o.dir, o.options)
	if err != nil {
		t.Fatal(err)
	}
	next := &opened{Store: s, dir: o.dir, options: o.options}
	t.Cleanup(func() {
		if err := next.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return next
}

func TestConformance(t *testing.T) { testConformance(t, false) }

// TestConformanceInTail is TestConformance with every batch going through the tail.
func TestConformanceInTail(t *testing.T) { testConformance(t, true) }

func testConformance(t *testing.T, tail bool) {
	t.Helper()
	open := func(t testing.TB, clock *storetest.Clock, b storetest.Bounds) store.Store {
		t.Helper()
		o := opened{dir: t.TempDir(), options: bolt.Options{
			Now: clock.Now, DiskReserve: -1,
			RetentionInterval: time.Hour, // the suite says when
			MaxProducers:      b.MaxProducers, MaxTombstones: b.MaxTombstones,
		}}
		if tail {
			o.options = bolt.WithTail(o.options)
		}
		t.Cleanup(func() { // after the last engine was closed
			rep, err := bolt.Check(o.dir, nil)
			if err != nil || len(rep.Problems) > 0 {
				t.Errorf("check: %+v, %v", rep, err)
			}
		})
		return o.open(t)
	}
	storetest.Run(t, storetest.Factory{
		Open: func(t testing.TB, clock *storetest.Clock) store.Store {
			t.Helper()
			return open(t, clock, storetest.Bounds{})
		},
		OpenBounded: open,
		Reopen: func(t testing.TB, s store.Store, kill bool) store.Store {
			t.Helper()
			o := s.(*opened)
			end := o.Close
			if kill {
				end = o.Crash
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			return o.open(t)
		},
		Sweep: func(t testing.TB, s store.Store) {
			t.Helper()
			if err := s.(*opened).Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	})
}
