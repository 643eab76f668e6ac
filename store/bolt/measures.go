package bolt

import (
	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

var _ store.Measured = (*Store)(nil)

// Measures tells what bbolt counts; see [store.Measured]. Pages are those of the file,
// nodes what they become in memory while a transaction changes them.
func (s *Store) Measures() []store.Measure {
	st := s.db.Stats()
	return append(fileMeasures(&st), txMeasures(&st.TxStats)...)
}

func fileMeasures(st *bbolt.Stats) []store.Measure {
	return []store.Measure{
		gauge("bbolt_free_pages", "Pages of the file that are free.", float64(st.FreePageN)),
		gauge("bbolt_pending_pages", "Pages that will be free when no transaction reads them any more.", float64(st.PendingPageN)),
		gauge("bbolt_free_bytes", "Size of the free pages.", float64(st.FreeAlloc)),
		gauge("bbolt_freelist_bytes", "Size of the list of free pages.", float64(st.FreelistInuse)),
		gauge("bbolt_open_read_transactions", "Read transactions that are open; one that stays open keeps pages from becoming free.", float64(st.OpenTxN)),
		counter("bbolt_read_transactions_total", "Read transactions begun.", float64(st.TxN)),
	}
}

func txMeasures(t *bbolt.TxStats) []store.Measure {
	return []store.Measure{
		counter("bbolt_pages_allocated_total", "Pages allocated by transactions.", float64(t.GetPageCount())),
		counter("bbolt_allocated_bytes_total", "Bytes of the pages allocated.", float64(t.GetPageAlloc())),
		counter("bbolt_cursors_total", "Cursors made.", float64(t.GetCursorCount())),
		counter("bbolt_nodes_total", "Nodes made of pages to change them.", float64(t.GetNodeCount())),
		counter("bbolt_node_dereferences_total", "Nodes copied because the file was mapped anew.", float64(t.GetNodeDeref())),
		counter("bbolt_rebalances_total", "Nodes merged after deletions.", float64(t.GetRebalance())),
		counter("bbolt_rebalance_seconds_total", "Time spent merging nodes.", t.GetRebalanceTime().Seconds()),
		counter("bbolt_splits_total", "Nodes split because they were too large for a page.", float64(t.GetSplit())),
		counter("bbolt_spills_total", "Nodes written to pages.", float64(t.GetSpill())),
		counter("bbolt_spill_seconds_total", "Time spent writing nodes to pages.", t.GetSpillTime().Seconds()),
		counter("bbolt_writes_total", "Writes to the file.", float64(t.GetWrite())),
		counter("bbolt_write_seconds_total", "Time spent writing to the file, syncs included.", t.GetWriteTime().Seconds()),
	}
}

func gauge(name, help string, value float64) store.Measure {
	return store.Measure{Name: name, Help: help, Value: value}
}

func counter(name, help string, value float64) store.Measure {
	return store.Measure{Name: name, Help: help, Counter: true, Value: value}
}
