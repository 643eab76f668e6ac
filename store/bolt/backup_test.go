package bolt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// copied takes a backup to its end.
func (r *rig) copied() []byte {
	r.t.Helper()
	b, err := r.Backup(context.Background())
	if err != nil {
		r.t.Fatalf("backup: %v", err)
	}
	content, err := io.ReadAll(b.Content)
	if err != nil || int64(len(content)) != b.Size || sha256.Sum256(content) != b.SHA256 {
		r.t.Fatalf("a backup of %d bytes gave %d, %v, or they have another digest", b.Size, len(content), err)
	}
	if err := b.Close(); err != nil {
		r.t.Fatal(err)
	}
	return content
}

// restored is a rig of what a backup makes.
func (r *rig) restored(content []byte) *rig {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "data")
	sum := sha256.Sum256(content)
	rep, err := bolt.Restore(context.Background(), dir, bytes.NewReader(content), bolt.RestoreOptions{SHA256: &sum})
	if err != nil || len(rep.Problems) > 0 {
		r.t.Fatalf("restore: %+v, %v", rep, err)
	}
	next := &rig{t: r.t, dir: dir, opts: r.opts}
	next.open()
	r.t.Cleanup(func() {
		if next.Store != nil {
			next.close()
		}
		next.check()
	})
	return next
}

// TestBackupWhileAppending: a copy taken under load holds all that was acknowledged before
// it was asked for, a prefix of what each producer sent, and a state that goes with it.
func TestBackupWhileAppending(t *testing.T) {
	r := newRig(t, bolt.Options{})
	const producers = 4
	var parts [2]store.Partition
	for i := range parts {
		parts[i] = r.topic(fmt.Sprintf("t%d", i), func(c *store.Config) { c.SegmentBytes = store.MinSegmentBytes })
	}
	pids := make([]int64, producers)
	for i := range pids {
		pids[i] = r.pid()
	}
	var acked [producers][2]int64 // records, by producer and partition
	send := func(i, n int) {
		for range n {
			for p := range parts {
				if _, err := r.Append(context.Background(), app(parts[p], pids[i], 0, acked[i][p], 2)); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				acked[i][p] += 2
			}
		}
	}
	for i := range producers {
		send(i, 20)
	}
	before := acked
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					send(i, 1)
				}
			}
		})
	}
	content := r.copied()
	close(stop)
	wg.Wait()

	next := r.restored(content)
	for p := range parts {
		total := int64(0)
		for i, pid := range pids {
			st, err := next.PartitionProducer(context.Background(), parts[p], pid)
			if err != nil {
				t.Fatal(err)
			}
			n := st.State.NextSeq()
			if n < before[i][p] || n > acked[i][p]+2 {
				t.Errorf("producer %d: %d records are in the copy, %d were acknowledged before it and %d after", pid, n, before[i][p], acked[i][p])
			}
			total += n
			next.again(app(parts[p], pid, 0, n-2, 2), st.State.LastOffset()-1)
		}
		next.bounds(parts[p], 0, total)
		// Producers go on from what the copy knows, those ahead of it are told.
		st, _ := next.PartitionProducer(context.Background(), parts[p], pids[0])
		next.refused(app(parts[p], pids[0], 0, st.State.NextSeq()+2, 2), store.CodeOutOfOrderSequence)
		next.must(app(parts[p], pids[0], 0, st.State.NextSeq(), 2), total)
	}
}

// TestBackupHoldsNobodyUp: while a client takes a copy, however slowly, no transaction is
// open, and the store goes on.
func TestBackupHoldsNobodyUp(t *testing.T) {
	r := newRig(t, bolt.Options{RetentionInterval: time.Hour}) // nobody else reads
	p := r.topic("t", nil)
	r.must(app(p, r.pid(), 0, 0, 1), 0)
	b, err := r.Backup(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if n := r.OpenTx(); n != 0 {
		t.Errorf("%d transactions are open while the copy waits to be read", n)
	}
	r.must(store.Append{Partition: p, Batch: texts("x", 1)}, 1)
	if _, err := r.Backup(context.Background()); store.CodeOf(err) != store.CodeOverloaded {
		t.Errorf("a second copy at the same time: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Backup(cancelled); err == nil {
		t.Error("a copy that nobody wants")
	}
	r.copied()
	left, err := filepath.Glob(filepath.Join(r.dir, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("in the directory are %v, %v", left, err)
	}
}

func TestBackupNeedsSpace(t *testing.T) {
	r := newRig(t, bolt.Options{RetentionInterval: time.Hour})
	p := r.topic("t", nil)
	r.close()
	r.opts.DiskReserve = 1 << 62 // more than any disk has
	r.open()
	if _, err := r.Backup(context.Background()); store.CodeOf(err) != store.CodeStorageFull {
		t.Errorf("a copy without space: %v", err)
	}
	r.SetDisk(1<<62, 0)
	r.must(store.Append{Partition: p, Batch: texts("x", 1)}, 0)
	closed := r.Store
	r.close()
	if _, err := closed.Backup(context.Background()); store.CodeOf(err) != store.CodeDraining {
		t.Errorf("a copy of a closed store: %v", err)
	}
	r.opts.DiskReserve = -1
	r.open()
}

// TestOpenRemovesLeftovers of what was ended halfway, and nothing else.
func TestOpenRemovesLeftovers(t *testing.T) {
	r := newRig(t, bolt.Options{})
	r.close()
	for _, name := range []string{"backup-1.tmp", "oncelog.db.compact", "restore-1.tmp/oncelog.db", "access.json", "backup-1.db"} {
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.open()
	if got := names(t, r.dir); !slices.Equal(got, []string{"access.json", "backup-1.db", "oncelog.db"}) {
		t.Errorf("in the directory are %v", got)
	}
}

// TestBackupKeepsNothingInMemory: a copy takes a buffer, however large the store is.
func TestBackupKeepsNothingInMemory(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	for i := range int64(48) {
		r.must(store.Append{Partition: p, Batch: large(1 << 20)}, i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b, err := r.Backup(t.Context())
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; b.Size < 48<<20 || n > 4<<20 {
		t.Errorf("a copy of %d bytes took %d bytes of memory", b.Size, n)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
