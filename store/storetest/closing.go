package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/oncelog/oncelog/store"
)

func testClosing(t *testing.T, f Factory) {
	if f.Traits.NoClose {
		t.Skip("the engine cannot be closed")
	}
	t.Run("draining", func(t *testing.T) { closingDraining(newEnv(t, f)) })
	t.Run("in-flight", func(t *testing.T) { closingInFlight(newEnv(t, f)) })
	t.Run("snapshot", func(t *testing.T) {
		if f.Reopen == nil {
			t.Skip("the engine cannot be restarted")
		}
		closingSnapshot(newEnv(t, f))
	})
}

func closingDraining(e *env) {
	p := e.topic()
	pid := e.pid()
	e.stored(seq(p, pid, 0, 0, 1), 0)
	if err := e.Ready(); err != nil {
		e.t.Errorf("ready: %v", err)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			e.t.Fatalf("close: %v", err)
		}
	}
	e.coded("ready", e.Ready(), store.CodeDraining)
	e.Stats()
	e.refused(seq(p, pid, 0, 1, 1), store.CodeDraining)
	e.refused(plain(p, "x"), store.CodeDraining)
	_, err := e.AllocateProducer(e.ctx, "")
	e.coded("allocate", err, store.CodeDraining)
	_, err = e.CreateTopic(e.ctx, "late", 1, store.DefaultConfig())
	e.coded("create", err, store.CodeDraining)
	_, err = e.Topic(e.ctx, p.Topic)
	e.coded("topic", err, store.CodeDraining)
	_, err = e.Topics(e.ctx, "", 10)
	e.coded("topics", err, store.CodeDraining)
	_, err = e.Producers(e.ctx, -1, 10)
	e.coded("producers", err, store.CodeDraining)
	_, err = e.Producer(e.ctx, pid)
	e.coded("producer", err, store.CodeDraining)
	_, err = e.UpdateTopic(e.ctx, p.Topic, func(t store.Topic) (store.Topic, error) { return t, nil })
	e.coded("update", err, store.CodeDraining)
	e.coded("delete", e.DeleteTopic(e.ctx, p.Topic), store.CodeDraining)
	e.nowhereAfterClose(p, pid)
}

// nowhereAfterClose expects draining of all that names a partition.
func (e *env) nowhereAfterClose(p store.Partition, pid int64) {
	e.t.Helper()
	for what, call := range partitionCalls(e, p, pid) {
		e.coded(what, call(), store.CodeDraining)
	}
}

// closingInFlight: what an append answers during a close is the truth.
func closingInFlight(e *env) {
	p := e.topic()
	const writers = 8
	results := make([][]string, writers)
	var wg sync.WaitGroup
	var started sync.WaitGroup
	started.Add(writers)
	for w := range writers {
		wg.Go(func() {
			for i := 0; ; i++ {
				value := fmt.Sprintf("%d-%d", w, i)
				_, err := e.Append(e.ctx, plain(p, value))
				if i == 0 {
					started.Done()
				}
				if err != nil {
					if c := store.CodeOf(err); c != store.CodeDraining && c != store.CodeOverloaded {
						e.t.Errorf("append while closing: %v", err)
					}
					return
				}
				results[w] = append(results[w], value)
			}
		})
	}
	started.Wait()
	if err := e.Close(); err != nil {
		e.t.Error(err)
	}
	wg.Wait()
	if e.f.Reopen == nil {
		return
	}
	e.restart(false)
	stored := map[string]int{}
	values, err := readAll(e.ctx, e, p, 0, e.f.Traits)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, v := range values {
		stored[v]++
	}
	acked := 0
	for _, values := range results {
		for _, v := range values {
			acked++
			if stored[v] != 1 {
				e.t.Errorf("%s was acknowledged and is there %d times", v, stored[v])
			}
		}
	}
	if len(values) != acked {
		e.t.Errorf("%d were acknowledged, %d are there", acked, len(values))
	}
}

// closingSnapshot: a clean shutdown leaves a snapshot where there was a change.
func closingSnapshot(e *env) {
	p, unused := e.topic(), e.topic()
	e.stored(seq(p, e.pid(), 0, 0, 2), 0)
	e.restart(false)
	all := e.snapshots(store.SnapshotFilter{Topic: p.Topic})
	if len(all) != 1 || all[0].Offset != 2 || all[0].Reason != store.SnapshotShutdown || all[0].Producers != 1 {
		e.t.Errorf("snapshots %+v", all)
	}
	e.restart(false)
	if again := e.snapshots(store.SnapshotFilter{}); len(again) != 1 || !sameSnapshot(again[0], all[0]) {
		e.t.Errorf("without a change: %+v, want %+v", again, all)
	}
	e.verifyAll(p)
	e.bounds(unused, 0, 0)
}
