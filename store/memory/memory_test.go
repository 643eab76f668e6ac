package memory_test

import (
	"testing"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory"
	"github.com/oncelog/oncelog/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Factory{
		Open: func(_ testing.TB, clock *storetest.Clock) store.Store {
			return memory.Open(memory.Options{Now: clock.Now})
		},
		OpenBounded: func(_ testing.TB, clock *storetest.Clock, b storetest.Bounds) store.Store {
			return memory.Open(memory.Options{Now: clock.Now, MaxProducers: b.MaxProducers, MaxTombstones: b.MaxTombstones})
		},
		Reopen: func(_ testing.TB, s store.Store, kill bool) store.Store {
			return s.(*memory.Store).Restart(kill)
		},
		Sweep: func(_ testing.TB, s store.Store) { s.(*memory.Store).Sweep() },
	})
}
