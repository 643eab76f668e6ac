package bolt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/bolt"
)

// The directories in testdata were written by earlier versions of oncelog, format1 by the
// very first, format2 by the last that put each batch into one row, format3 by one with
// pieces, garbage and a tail, and closed or killed; beside each lies what that version
// showed of it. The programs that did both are there too, for whoever
// wants to know what is in them.
func TestOldFormatsOpenForEver(t *testing.T) {
	for _, format := range []string{"format1", "format2", "format3"} {
		for _, kind := range []string{"clean", "killed"} {
			t.Run(format+" "+kind, func(t *testing.T) {
				r := oldRig(t, format, kind)
				rep, err := bolt.Check(r.dir, nil)
				switch bare := format == "format1"; {
				case bare && (err == nil || !strings.Contains(err.Error(), "start the server on it once")),
					!bare && (err != nil || len(rep.Problems) > 0):
					t.Errorf("check of an old format: %+v, %v", rep, err)
				}
				r.sameAsOld(format, kind)
			})
		}
	}
}

func TestUpgradeInterrupted(t *testing.T) {
	for _, kind := range []string{"clean", "killed"} {
		for _, rows := range []int{1, 5, 1000} {
			r := oldRig(t, "format1", kind)
			if err := bolt.UpgradePart(r.dir, rows); err != nil {
				t.Fatal(err)
			}
			r.sameAsOld("format1", kind)
		}
	}
}

// TestOwnersOfAnOldFormat: ids stay with whom they were given to.
func TestOwnersOfAnOldFormat(t *testing.T) {
	for _, kind := range []string{"clean", "killed"} {
		r := oldRig(t, "format2", kind)
		r.open()
		a := app(store.Partition{Topic: "cut"}, store.ProducerBlockSize, 0, 2, 1)
		r.refused(a, store.CodeForbidden)
		a.Principal = "alice"
		r.must(a, 9)
		r.close()
		r.check()
	}
}

// oldRig is a rig with an old directory that is not open.
func oldRig(t *testing.T, format, kind string) *rig {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", format, kind+".db.zst"))
	if err != nil {
		t.Fatal(err)
	}
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unpack.Close()
	file, err := unpack.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: t.TempDir(), opts: bolt.Options{
		Now:         func() time.Time { return time.Date(2026, 1, 3, 3, 4, 5, 678e6, time.UTC) },
		DiskReserve: -1, RetentionInterval: time.Hour,
	}}
	t.Cleanup(func() {
		if r.Store != nil {
			r.close()
		}
	})
	writeSparse(t, filepath.Join(r.dir, "oncelog.db"), file)
	return r
}

// writeSparse writes a file whose pages are empty for the most part.
func writeSparse(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Truncate(int64(len(b)))
	const page = 4096
	empty := make([]byte, page)
	for at := 0; at < len(b) && err == nil; at += page {
		if p := b[at:min(at+page, len(b))]; !bytes.Equal(p, empty[:len(p)]) {
			_, err = f.WriteAt(p, int64(at))
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// sameAsOld opens the directory and expects to see what the old version saw, at once and
// after a restart.
func (r *rig) sameAsOld(format, kind string) {
	r.t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", format, kind+".txt"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.open()
	if d := cmp.Diff(string(want), r.view()); d != "" {
		r.t.Fatalf("the old version showed (-), this one shows (+):\n%s", d)
	}
	r.crash()
	r.check()
	r.open()
	if d := cmp.Diff(afterRestart(string(want)), afterRestart(r.view())); d != "" {
		r.t.Fatalf("after a restart:\n%s", d)
	}
	r.must(app(store.Partition{Topic: "orders"}, 0, 0, 121, 2), 135)
	r.close()
	r.check()
}

// afterRestart is a view without what a look and a restart may change: the next producer,
// and snapshots, of which one may come in the place of another.
func afterRestart(view string) string {
	view, _, _ = strings.Cut(view, "the next producer")
	lines := slices.Collect(strings.Lines(view))
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "snapshot at") }), "")
}

// view writes down what a client can see of a store, by looking and by trying appends that
// change nothing.
func (r *rig) view() string {
	r.t.Helper()
	ctx := context.Background()
	var out strings.Builder
	topics, err := r.Topics(ctx, "", 100)
	for _, t := range topics {
		fmt.Fprintf(&out, "topic %s %s, version %d, created %d, %+v\n", t.Name, t.ID, t.Version, t.CreatedAt.UnixMilli(), t.Config)
		for n := range t.Partitions {
			r.viewPartition(&out, store.Partition{Topic: t.Name, Number: n})
		}
	}
	for pid := range int64(7) {
		states, errState := r.Producer(ctx, pid)
		var all []string
		for _, s := range states {
			all = append(all, fmt.Sprintf("%s/%d", s.Partition.Topic, s.Partition.Number))
		}
		fmt.Fprintf(&out, "producer %d: %v\n", pid, all)
		err = errors.Join(err, errState)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	fmt.Fprintf(&out, "the next producer is %d\n", r.pid())
	return out.String()
}

func (r *rig) viewPartition(out *strings.Builder, p store.Partition) {
	r.t.Helper()
	ctx := context.Background()
	i, err := r.Partition(ctx, p)
	if err != nil {
		r.t.Fatal(err)
	}
	fmt.Fprintf(out, " partition %d: %d to %d, %d bytes, %d producers\n", p.Number, i.Earliest, i.HighWatermark, i.Bytes, i.Producers)
	for _, s := range i.Segments {
		fmt.Fprintf(out, "  segment %d to %d, %d bytes in %d batches, since %d\n", s.BaseOffset, s.NextOffset, s.Bytes, s.Batches, s.CreatedAt.UnixMilli())
	}
	for at := i.Earliest; at < i.HighWatermark; {
		at = r.viewBatches(out, p, at)
	}
	states, err := r.PartitionProducers(ctx, p, -1, 100)
	for _, s := range states {
		fmt.Fprintf(out, "  producer %d: epoch %d, next %d, last %d, expires %d, %+v\n",
			s.ID, s.State.Epoch(), s.State.NextSeq(), s.State.LastTimestamp(), s.ExpiresAt.UnixMilli(), s.State.Recent())
	}
	snapshots, errList := r.Snapshots(ctx, store.SnapshotFilter{Topic: p.Topic, Partition: &p.Number})
	for _, s := range snapshots {
		if s.Reason == store.SnapshotStartup {
			continue // the look itself has taken it
		}
		fmt.Fprintf(out, "  snapshot at %d, %s at %d, %d producers, %d bytes, crc %08x", s.Offset, s.Reason, s.CreatedAt.UnixMilli(), s.Producers, s.Bytes, s.CRC)
		_, in, err := r.Snapshot(ctx, p, s.Offset)
		diff, errVerify := r.VerifySnapshot(ctx, p, s.Offset)
		fmt.Fprintf(out, ": %d, %v, %+v\n", len(in), errors.Join(err, errVerify), diff.Differences)
	}
	if err := errors.Join(err, errList); err != nil {
		r.t.Fatal(err)
	}
	r.viewTries(out, p)
}

// viewBatches reads some batches and returns the offset after them.
func (r *rig) viewBatches(out *strings.Builder, p store.Partition, at int64) int64 {
	r.t.Helper()
	read, err := r.Read(context.Background(), store.Read{Partition: p, Offset: at, MaxRecords: 1000, MaxBytes: 1 << 20})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, b := range read.Batches {
		if err := batch.Verify(b.Bytes, b.Count()); err != nil {
			r.t.Fatal(err)
		}
		fmt.Fprintf(out, "  batch %d to %d at %d, crc %08x, sha256 %.8x", b.BaseOffset, b.LastOffset, b.AppendedAt.UnixMilli(), b.CRC, sha256.Sum256(b.Bytes))
		if b.Producer != nil {
			fmt.Fprintf(out, " by %+v", *b.Producer)
		}
		out.WriteString("\n")
		at = b.LastOffset + 1
	}
	return at
}

// viewTries tries appends that can only be refused or found to be there.
func (r *rig) viewTries(out *strings.Builder, p store.Partition) {
	r.t.Helper()
	const nothingKnown = "out-of-order-sequence, expected 0, last none, epoch none, last epoch 0, original 0"
	for pid := range int64(7) {
		for _, epoch := range []int64{0, 1, 3, 5} {
			for _, seq := range []int64{0, 3, 117, 118} {
				if answer := r.try(p, pid, epoch, seq); answer != nothingKnown {
					fmt.Fprintf(out, "  append %d/%d/%d: %s\n", pid, epoch, seq, answer)
				}
			}
		}
	}
}

func (r *rig) try(p store.Partition, pid, epoch, seq int64) string {
	r.t.Helper()
	if seq == 0 {
		seq = 1 << 30 // 0 might be new; a batch that can never be in order tells as much
	}
	ack, err := r.Append(context.Background(), app(p, pid, epoch, seq, 3))
	if err == nil {
		if !ack.Duplicate {
			r.t.Fatalf("%d/%d/%d has been stored", pid, epoch, seq)
		}
		return fmt.Sprintf("duplicate of %d to %d at %d", ack.BaseOffset, ack.LastOffset, ack.AppendedAt.UnixMilli())
	}
	e, ok := errors.AsType[*store.Error](err)
	if !ok || e.Sequence == nil {
		return err.Error()
	}
	show := func(n *int64) string {
		if n == nil {
			return "none"
		}
		return fmt.Sprint(*n)
	}
	q := e.Sequence
	out := fmt.Sprintf("%s, expected %d, last %s, epoch %s, last epoch %d, original %d",
		e.Code, q.ExpectedSeq, show(q.LastSeq), show(q.CurrentEpoch), q.LastEpoch, q.OriginalOffset)
	if e.Code == store.CodeProducerExpired {
		out += fmt.Sprintf(", expired at %d", q.ExpiredAt.UnixMilli())
	}
	return out
}
