//go:build linux

package bolt_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
	"github.com/oncelog/oncelog/store/storetest/faultfs"
)

// TestFailedReturnLeavesTheTombstone: a producer that has expired comes back with a higher
// epoch, and that cannot be written. It is expired as before.
func TestFailedReturnLeavesTheTombstone(t *testing.T) {
	r := newFaultRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	r.mustStore(app(p, pid, 0, 0, 1))
	if err := r.ExpireProducer(context.Background(), p, pid); err != nil {
		t.Fatal(err)
	}
	r.fs.Inject(faultfs.Fault{Kind: faultfs.Write, Times: 1, Errno: syscall.ENOSPC})
	r.refused(app(p, pid, 1, 0, 1), store.CodeStorageFull)
	r.fs.Inject()
	r.refused(app(p, pid, 0, 0, 1), store.CodeProducerExpired)
	r.mustStore(app(p, pid, 1, 0, 1))
	r.restart()
}

// TestFailedEvictionIsNone: when newcomers cannot be stored, nobody has made room for them,
// and whoever was the quietest still is.
func TestFailedEvictionIsNone(t *testing.T) {
	clock := newTicker()
	r := newFaultRig(t, bolt.Options{MaxProducers: 3, Now: clock.Now})
	p, q := r.topic("p", nil), r.topic("q", nil)
	quietest, second, third, c, d := r.pid(), r.pid(), r.pid(), r.pid(), r.pid()
	for i, a := range []store.Append{app(p, quietest, 0, 0, 1), app(q, second, 0, 0, 1), app(p, third, 0, 0, 1)} {
		clock.add(time.Duration(i) * time.Second)
		r.mustStore(a)
	}
	r.fs.Inject(faultfs.Fault{Kind: faultfs.Write, Times: 1, Errno: syscall.ENOSPC})
	for _, g := range r.queue(app(q, c, 0, 0, 1), app(q, d, 0, 0, 1)) {
		if store.CodeOf(g.err) != store.CodeStorageFull {
			t.Errorf("%+v", g)
		}
	}
	r.fs.Inject()
	if s := r.Stats(); s.Producers != 3 || s.EvictedProducers != 0 {
		t.Errorf("%d producers, %d evicted", s.Producers, s.EvictedProducers)
	}
	r.mustStore(app(q, c, 0, 0, 1))
	r.refused(app(p, quietest, 0, 0, 1), store.CodeProducerExpired)
	r.again(app(q, second, 0, 0, 1), 0)
	r.again(app(p, third, 0, 0, 1), 1)
	r.restart()
}
