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

// TestFailedSettling lets each of the writes of a transaction that settles the tail fail in
// turn. Where there is no room, nothing has happened and everything goes on; after another
// failure nothing is written any more. Either way all batches can still be read.
func TestFailedSettling(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		for n := 0; ; n += 3 {
			r := newFaultRig(t, bolt.WithTail(bolt.Options{}))
			p, q := r.topic("p", nil), r.topic("q", nil)
			pid := r.pid()
			for i := range int64(20) {
				r.mustStore(app(p, pid, 0, i, 1))
				r.mustStore(app(q, pid, 0, i, 1))
			}
			r.inTail(p, 20, 40)
			r.fs.Inject(faultfs.Fault{Kind: faultfs.Write, After: n, Times: 1, Errno: errno})
			_, err := r.Roll(context.Background(), p)
			struck := r.fs.Struck() > 0
			r.fs.Inject()
			r.expect()
			switch {
			case !struck:
				r.inTail(p, 0, 0)
			case errno == syscall.ENOSPC:
				if store.CodeOf(err) != store.CodeStorageFull {
					t.Fatalf("write %d: %v", n, err)
				}
				r.inTail(p, 20, 40)
				r.mustStore(app(p, pid, 0, 20, 1))
				r.inTail(p, 21, 41)
				if _, err := r.Roll(context.Background(), p); err != nil {
					t.Fatal(err)
				}
				r.inTail(p, 0, 0)
			default:
				if store.CodeOf(err) != store.CodeStorageFailed {
					t.Fatalf("write %d: %v", n, err)
				}
				r.refused(app(p, pid, 0, 20, 1), store.CodeStorageFailed)
			}
			r.expect()
			r.restart()
			r.close()
			if !struck {
				if n == 0 {
					t.Fatal("a transaction without a write")
				}
				break
			}
		}
	}
}

// TestStartWithoutRoom starts a store with batches in the tail on a full disk: they are
// there, and when there is room again the log goes on behind them.
func TestStartWithoutRoom(t *testing.T) {
	r := newFaultRig(t, bolt.WithTail(bolt.Options{RetentionInterval: time.Hour}))
	p, q := r.topic("p", nil), r.topic("q", nil)
	pid := r.pid()
	for i := range int64(5) {
		r.mustStore(app(p, pid, 0, i, 1))
		r.mustStore(app(q, pid, 0, i, 1))
	}
	r.crash()
	r.fs.Inject(faultfs.Fault{Kind: faultfs.Write, Errno: syscall.ENOSPC})
	r.open()
	r.inTail(p, 5, 10)
	r.expect()
	r.again(app(p, pid, 0, 4, 1), 4)
	r.refused(app(p, pid, 0, 5, 1), store.CodeStorageFull)
	r.fs.Inject()
	r.mustStore(app(p, pid, 0, 5, 1))
	r.inTail(p, 6, 11)
	r.restart()
	r.bounds(p, 0, 6)
}
