package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// tailRig is a rig whose small batches all go to the tail, and nobody else writes.
func tailRig(t *testing.T) *rig {
	t.Helper()
	return newRig(t, bolt.WithTail(bolt.Options{DiskReserve: -1, RetentionInterval: time.Hour}))
}

// inTail expects so many batches of a partition in the tail, and so many of all.
func (r *rig) inTail(p store.Partition, n, all int) {
	r.t.Helper()
	if gotN, gotAll := r.InTail(p); gotN != n || gotAll != all {
		r.t.Fatalf("%v: %d batches in the tail, of all %d; want %d and %d", p, gotN, gotAll, n, all)
	}
}

func (r *rig) settle() {
	r.t.Helper()
	if err := r.Settle(); err != nil {
		r.t.Fatalf("settle: %v", err)
	}
}

// halfInTail fills two partitions by turns: the first six batches of each lie in the trees,
// the others in the tail. It gives the ends of the logs.
func halfInTail(r *rig, p, q store.Partition, pid int64) int64 {
	r.t.Helper()
	next := int64(0)
	for i := range 12 {
		n := 1 + i%3
		r.must(app(p, pid, 0, next, n), next)
		r.must(app(q, pid, 0, next, n), next)
		next += int64(n)
		if i == 5 {
			r.settle()
		}
	}
	r.inTail(p, 6, 12)
	return next
}

// TestReadsOverTheTail expects every read and every list of headers to be the same when the
// end of the log lies in the tail as when all of it has been settled.
func TestReadsOverTheTail(t *testing.T) {
	r := tailRig(t)
	p, q := r.topic("p", nil), r.topic("q", nil)
	end := halfInTail(r, p, q, r.pid())
	ctx := context.Background()
	all := func() (out []string) {
		for offset := range end + 1 {
			for _, limit := range [][2]int{{1, 1}, {1, 1 << 20}, {2, 1 << 20}, {4, 1 << 20}, {1000, 200}, {1000, 333}, {1000, 1 << 20}} {
				got, err := r.Read(ctx, store.Read{Partition: p, Offset: offset, MaxRecords: limit[0], MaxBytes: limit[1]})
				line := fmt.Sprintf("read %d %v: %v", offset, limit, err)
				for _, b := range got.Batches {
					line += fmt.Sprintf(" %d-%d %x", b.BaseOffset, b.LastOffset, b.Bytes)
				}
				out = append(out, line)
			}
			for _, limit := range []int{1, 2, 5, 100} {
				got, err := r.Headers(ctx, p, offset, limit)
				line := fmt.Sprintf("headers %d %v: %v", offset, limit, err)
				for _, h := range got {
					line += fmt.Sprintf(" %d-%d %d %v %v", h.BaseOffset, h.LastOffset, h.Bytes, h.AppendedAt, *h.Producer)
				}
				out = append(out, line)
			}
		}
		return out
	}
	before := all()
	r.inTail(p, 6, 12)
	r.settle()
	r.inTail(p, 0, 0)
	after := all()
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("with the tail\n%s\nand without\n%s", before[i], after[i])
		}
	}
}

// TestTailSurvivesKill kills a store with batches in the tail: check counts them, a start
// knows them, and so do compaction and restore.
func TestTailSurvivesKill(t *testing.T) {
	r := tailRig(t)
	p, q := r.topic("p", nil), r.topic("q", nil)
	pid := r.pid()
	end := halfInTail(r, p, q, pid)
	r.crash()
	if rep := r.check(); rep.Batches != 24 || rep.Records != 2*end {
		t.Errorf("check counts %d batches and %d records", rep.Batches, rep.Records)
	}
	if _, err := bolt.Compact(context.Background(), r.dir, nil); err != nil {
		t.Fatal(err)
	}
	r.check()
	r.open()
	r.bounds(p, 0, end)
	r.again(app(q, pid, 0, end-3, 3), end-3)
	r.must(app(p, pid, 0, end, 1), end)
	r.must(app(p, pid, 0, end+1, 1), end+1)
	r.inTail(p, 2, 2)

	b, err := r.Backup(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	copied := &rig{t: t, dir: t.TempDir(), opts: r.opts, log: r.log}
	if rep, err := bolt.Restore(context.Background(), copied.dir, b.Content, bolt.RestoreOptions{SHA256: &b.SHA256}); err != nil || len(rep.Problems) > 0 {
		t.Fatalf("restore: %+v, %v", rep, err)
	}
	copied.open()
	copied.bounds(p, 0, end+2)
	copied.again(app(p, pid, 0, end+1, 1), end+1)
	copied.close()
	copied.check()
}

// TestOtherWritesSettle expects whatever else is written to find the log in the trees, but
// for expiries and what makes room.
func TestOtherWritesSettle(t *testing.T) {
	ctx := context.Background()
	r := tailRig(t)
	p, q := r.topic("p", nil), r.topic("q", nil)
	pid, other := r.pid(), r.pid()
	next := halfInTail(r, p, q, pid)
	seq := next
	left := func(what string, want bool, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if _, all := r.InTail(p); all > 0 != want {
			t.Errorf("%s leaves %d batches in the tail", what, all)
		}
		r.must(app(p, pid, 0, seq, 1), next)
		if n, _ := r.InTail(p); n == 0 {
			t.Fatalf("behind %s nothing goes to the tail", what)
		}
		next++
		seq++
	}
	_, err := r.Trim(ctx, p, 3)
	left("a trim", true, err)
	_, err = r.Roll(ctx, p)
	left("a roll", false, err)
	_, err = r.TakeSnapshots(ctx, store.SnapshotFilter{Topic: "q"})
	left("a snapshot", false, err)
	at := next
	_, err = r.TakeSnapshots(ctx, store.SnapshotFilter{})
	left("snapshots", false, err)
	diff, err := r.VerifySnapshot(ctx, p, at)
	if err != nil || len(diff.Differences) > 0 {
		t.Errorf("verify: %v, %v", diff, err)
	}
	left("a deleted snapshot", false, r.DeleteSnapshot(ctx, p, at))
	trimmed := next
	_, err = r.Trim(ctx, p, trimmed)
	left("a trim of everything", false, err)
	left("a sweep", false, r.Sweep(ctx)) // that deletes
	_, err = r.CreateTopic(ctx, "u", 1, store.DefaultConfig())
	left("a new topic", false, err)
	_, err = r.UpdateTopic(ctx, "u", func(t store.Topic) (store.Topic, error) {
		t.Partitions++
		return t, nil
	})
	left("a change of a topic", false, err)
	left("a deleted topic", false, r.DeleteTopic(ctx, "q"))
	r.must(app(p, other, 0, 0, 1), next)
	next++
	left("an expiry", true, r.ExpireProducer(ctx, p, other))
	r.close()
	if err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		if tx.Bucket(bolt.BucketTail) != nil {
			t.Error("a clean end leaves a tail")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	r.check()
	r.open()
	r.bounds(p, trimmed, next)
}

// TestQuietStoreSettles expects upkeep to empty the tail when nothing has been written since
// it looked last, and not before.
func TestQuietStoreSettles(t *testing.T) {
	r := tailRig(t)
	p, q := r.topic("p", nil), r.topic("q", nil)
	halfInTail(r, p, q, r.pid())
	for _, all := range []int{12, 0} {
		if err := r.SaveFreelist(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, got := r.InTail(p); got != all {
			t.Errorf("%d batches in the tail, want %d", got, all)
		}
	}
}

// TestWhatGoesToTheTail: small batches for many partitions do, and what comes after them;
// others do not, and settle what they would come behind.
func TestWhatGoesToTheTail(t *testing.T) {
	r := newRig(t, bolt.Options{DiskReserve: -1, RetentionInterval: time.Hour})
	ctx := context.Background()
	if _, err := r.CreateTopic(ctx, "t", 9, store.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	var parts []store.Partition
	for n := range 9 {
		parts = append(parts, store.Partition{Topic: "t", Number: n})
	}
	together := func(parts []store.Partition, size int) {
		t.Helper()
		release := r.Block()
		var all errgroup.Group
		for _, p := range parts {
			all.Go(func() error {
				_, err := r.Append(ctx, store.Append{Partition: p, Batch: large(size)})
				return err
			})
		}
		for r.QueueLen() < len(parts) {
			time.Sleep(time.Millisecond)
		}
		release()
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	together(parts[:7], 100)
	r.inTail(parts[0], 0, 0) // too few
	together(parts[:8], 10<<10)
	r.inTail(parts[0], 0, 0) // too large
	together(parts[:8], 100)
	r.inTail(parts[0], 1, 8)
	together(parts[8:], 100)
	r.inTail(parts[8], 0, 8) // has nothing in the tail
	together(parts[8:], 1<<20)
	r.inTail(parts[8], 0, 8)
	together(parts[:1], 100)
	r.inTail(parts[0], 2, 9) // has
	together(parts[:1], 1<<20)
	r.inTail(parts[0], 0, 0) // too large: it settles
	together(parts[:8], 100)
	var all errgroup.Group
	all.SetLimit(64)
	for range bolt.TailRows - 8 {
		all.Go(func() error {
			_, err := r.Append(ctx, store.Append{Partition: parts[0], Batch: large(10)})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	r.inTail(parts[0], bolt.TailRows-7, bolt.TailRows) // full
	together(parts[:8], 100)
	r.inTail(parts[0], 1, 8)
	r.crash()
	r.check()
}

// TestReadersWhileSettling reads whole partitions while batches go to the tail and from it
// to the trees: no read meets a gap or a batch that is not what was stored.
func TestReadersWhileSettling(t *testing.T) {
	r := tailRig(t)
	parts := []store.Partition{r.topic("p", nil), r.topic("q", nil)}
	pid := r.pid()
	const batches = 60
	var work errgroup.Group
	var done atomic.Bool
	for _, p := range parts {
		work.Go(func() error {
			for i := range int64(batches) {
				if _, err := r.Append(context.Background(), app(p, pid, 0, i, 1)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var others sync.WaitGroup
	others.Go(func() {
		for !done.Load() {
			if err := r.Settle(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for _, p := range parts {
		others.Go(func() {
			for !done.Load() {
				b, err := r.Bounds(context.Background(), p)
				headers, errHeaders := r.Headers(context.Background(), p, 0, 2*batches)
				got, errRead := readTexts(r.Store, p)
				if err := errors.Join(err, errHeaders, errRead); err != nil {
					t.Error(err)
					return
				}
				if len(got) < int(b.HighWatermark) || len(headers) < int(b.HighWatermark) {
					t.Errorf("%d records, %d headers of at least %d", len(got), len(headers), b.HighWatermark)
				}
				for i, text := range got {
					if want := fmt.Sprintf("%d/0/%d-0", pid, i); !strings.Contains(text, want) {
						t.Errorf("record %d is %q", i, text)
					}
				}
			}
		})
	}
	err := work.Wait()
	done.Store(true)
	others.Wait()
	if err != nil {
		t.Fatal(err)
	}
	r.crash()
	r.check()
}

// TestTailFromAnyTransaction: who has looked where batches are finds them in a transaction
// that began before they were settled, after that, and when the tail has been born again.
func TestTailFromAnyTransaction(t *testing.T) {
	r := tailRig(t)
	p, q := r.topic("p", nil), r.topic("q", nil)
	pid := r.pid()
	end := halfInTail(r, p, q, pid)
	list := r.Ends(p)
	var got [][]int64
	for i := range 3 {
		tx, err := r.BeginRead()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			r.settle() // while the transaction is open
		} else {
			r.must(app(q, pid, 0, end, 1), end)
			end++
		}
		got = append(got, list(tx))
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range got {
		if len(got[i]) != 12 || !slices.Equal(got[i], got[0]) {
			t.Errorf("transaction %d: batches at %d", i, got[i])
		}
	}
}

// spoilTail changes the key or the value of the n-th row of the tail; either nil: it goes.
func spoilTail(n int, change func(k, v []byte) (key, value []byte)) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket(bolt.BucketTail)
		c := b.Cursor()
		k, v := c.First()
		for range n {
			k, v = c.Next()
		}
		k, v = append([]byte(nil), k...), append([]byte(nil), v...)
		if err := b.Delete(k); err != nil {
			return err
		}
		if k, v = change(k, v); k == nil {
			return nil
		}
		return b.Put(k, v)
	}
}

// TestDamagedTailRow damages the header or the batch of a row: it concerns the partition
// that the row belongs to, as it would in the trees, and stays so when it is moved there.
func TestDamagedTailRow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(v []byte) []byte
		check  string
		out    bool
	}{
		"length": {flip(0), "damaged batch header", true},
		"header": {func(v []byte) []byte {
			h, _ := bolt.TailValue(v)
			return flip(h + 4)(v)
		}, "damaged batch header", true},
		"batch": {flip(-1), "batch at offset 21: record batch fails its CRC32C", false},
		"batch crc": {func(v []byte) []byte {
			_, b := bolt.TailValue(v)
			return flip(b + 16)(v)
		}, "batch at offset 21 is not the one that its header describes", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := tailRig(t)
			p, q := r.topic("p", nil), r.topic("q", nil)
			pid := r.pid()
			end := halfInTail(r, p, q, pid)
			r.crash()
			err := bolt.Edit(r.dir, spoilTail(11, func(k, v []byte) ([]byte, []byte) { return k, c.change(v) }))
			if err != nil {
				t.Fatal(err)
			}
			for _, where := range []string{"tail", "trees"} {
				rep, err := bolt.Check(r.dir, nil)
				if got := strings.Join(rep.Problems, "\n"); err != nil || !strings.Contains(got, `"q" partition 0`) || !strings.Contains(got, c.check) || strings.Contains(got, `"p"`) {
					t.Errorf("in the %s: check: %q, %v", where, got, err)
				}
				r.open()
				read := func(offset int64) error {
					_, err := r.Read(context.Background(), store.Read{Partition: q, Offset: offset, MaxRecords: 1, MaxBytes: 1})
					return err
				}
				if err := errors.Join(read(0), read(18)); err != nil {
					t.Errorf("in the %s: what is whole: %v", where, err)
				}
				if err := read(21); store.CodeOf(err) != store.CodeRecordsDamaged {
					t.Errorf("in the %s: what is not: %v", where, err)
				}
				if c.out {
					r.outOfService(q, c.check, true)
				}
				r.must(app(p, pid, 0, end, 1), end)
				end++
				r.settle()
				r.crash()
			}
		})
	}
}

// TestLostTail damages the tail in ways that leave unknown whose newest batches are lost:
// every partition is out of service, what is in the trees can be read, and what is left of
// the tail stays as it is.
func TestLostTail(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*bbolt.Tx) error
		want  string
	}{
		"key":        {spoilTail(3, func(k, v []byte) ([]byte, []byte) { return flip(15)(k), v }), "a key in it is damaged"},
		"first gone": {spoilTail(0, func(_, _ []byte) ([]byte, []byte) { return nil, nil }), "in the place of row 1 is another"},
		"gone":       {spoilTail(5, func(_, _ []byte) ([]byte, []byte) { return nil, nil }), "in the place of row 6 is another"},
		"last gone":  {spoilTail(11, func(_, _ []byte) ([]byte, []byte) { return nil, nil }), "it has 11 rows and should have 12"},
		"number":     {spoilTail(11, func(k, v []byte) ([]byte, []byte) { return bolt.Rekey(k, 13), v }), "in the place of row 12 is another"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tailRig(t)
			ctx := context.Background()
			p, q := r.topic("p", nil), r.topic("q", nil)
			halfInTail(r, p, q, r.pid())
			r.crash()
			if err := bolt.Edit(r.dir, c.spoil); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				rep, err := bolt.Check(r.dir, nil)
				if got := strings.Join(rep.Problems, "\n"); err != nil || !strings.Contains(got, "the tail of the log") || !strings.Contains(got, c.want) {
					t.Errorf("check: %q, %v", got, err)
				}
				r.open()
				for _, p := range []store.Partition{p, q} {
					if e := r.refused(app(p, 0, 0, 0, 1), store.CodeRecordsDamaged); !strings.Contains(e.Detail, c.want) {
						t.Error(e)
					}
					if got, err := readTexts(r.Store, p); err != nil || len(got) != 6 {
						t.Errorf("%d batches of 6 can be read, %v", len(got), err)
					}
				}
				_, err = r.CreateTopic(ctx, "u", 1, store.DefaultConfig())
				_, errUpdate := r.UpdateTopic(ctx, "p", func(t store.Topic) (store.Topic, error) {
					t.Partitions++
					return t, nil
				})
				if store.CodeOf(err) != store.CodeRecordsDamaged || store.CodeOf(errUpdate) != store.CodeRecordsDamaged {
					t.Errorf("create %v, update %v", err, errUpdate)
				}
				r.pid() // which is written
				r.close()
			}
		})
	}
}

// TestTailOfALostTopic expects batches in the tail to be kept whose topic cannot be read.
func TestTailOfALostTopic(t *testing.T) {
	r := tailRig(t)
	p, q := r.topic("p", nil), r.topic("q", nil)
	pid := r.pid()
	end := halfInTail(r, p, q, pid)
	r.crash()
	var row []byte
	change := func(v []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			b := tx.Bucket(bolt.BucketTopics)
			row = append([]byte(nil), b.Get([]byte("q"))...)
			return b.Put([]byte("q"), v)
		}
	}
	if err := bolt.Edit(r.dir, change([]byte("damaged"))); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.must(app(p, pid, 0, end, 1), end)
	r.close()
	if err := bolt.Edit(r.dir, change(row)); err != nil {
		t.Fatal(err)
	}
	r.check()
	r.open()
	r.bounds(q, 0, end)
	r.again(app(q, pid, 0, end-3, 3), end-3)
}
