//go:build linux

package bolt_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
	"github.com/oncelog/oncelog/store/storetest/faultfs"
)

// serveFaults is what a process that was started to serve a disk with faults does.
func serveFaults() { faultfs.Serve() }

// faultRig is a rig whose directory lies on a disk with faults. It knows what was
// acknowledged.
type faultRig struct {
	*rig
	fs    *faultfs.FS
	acked map[store.Partition][]ackedBatch
}

// ackedBatch is an append and where it was stored.
type ackedBatch struct {
	store.Append
	base int64
}

func newFaultRig(t *testing.T, o bolt.Options) *faultRig {
	t.Helper()
	fs := faultfs.New(t)
	r := &faultRig{
		rig:   &rig{t: t, dir: filepath.Join(fs.Dir, "data"), opts: o, log: &logBuffer{}},
		fs:    fs,
		acked: map[store.Partition][]ackedBatch{},
	}
	r.opts.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	if r.opts.DiskReserve == 0 {
		r.opts.DiskReserve = -1
	}
	if r.opts.RetentionInterval == 0 {
		r.opts.RetentionInterval = time.Hour // nobody else writes
	}
	r.open()
	t.Cleanup(func() {
		fs.Inject()
		if r.Store != nil {
			_ = r.Store.Close()
		}
	})
	return r
}

// store appends and notes what is acknowledged.
func (r *faultRig) store(a store.Append) error {
	r.t.Helper()
	ack, err := r.Append(context.Background(), a)
	if err == nil {
		r.note(a, ack)
	}
	return err
}

func (r *faultRig) note(a store.Append, ack store.Ack) {
	for _, b := range r.acked[a.Partition] {
		if b.base == ack.BaseOffset && !ack.Duplicate {
			r.t.Errorf("%v: two batches at offset %d", a.Partition, ack.BaseOffset)
		}
	}
	r.acked[a.Partition] = append(r.acked[a.Partition], ackedBatch{a, ack.BaseOffset})
}

// mustStore appends and expects it to be stored.
func (r *faultRig) mustStore(a store.Append) {
	r.t.Helper()
	if err := r.store(a); err != nil {
		r.t.Fatalf("append %+v: %v", a.Producer, err)
	}
}

// expect reads everything that was acknowledged.
func (r *faultRig) expect() {
	r.t.Helper()
	for p, all := range r.acked {
		for _, b := range all {
			got, err := r.Read(context.Background(), store.Read{Partition: p, Offset: b.base, MaxRecords: 1, MaxBytes: 1})
			if err != nil {
				r.t.Errorf("%v: the batch that was acknowledged at offset %d: %v", p, b.base, err)
			} else if string(got.Batches[0].Bytes) != string(b.Batch.Bytes) {
				r.t.Errorf("%v: at offset %d lies another batch than was acknowledged", p, b.base)
			}
		}
	}
}

// restart ends the engine, examines the directory and starts it again; everything that
// was acknowledged must be there.
func (r *faultRig) restart() {
	r.t.Helper()
	_ = r.Store.Close() // says how it has failed
	r.fs.Inject()
	r.check()
	r.open()
	r.expect()
}
