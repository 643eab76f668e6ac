package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/bolt"
)

// sized makes an encoded batch of one record that is so long.
func sized(t *testing.T, length int) batch.Batch {
	t.Helper()
	value := bytes.Repeat([]byte("0123456789abcdef"), length/16+1)
	n := length - 40 // about what there is beside the value
	for range 5 {
		var b batch.Builder
		b.Add(&batch.Record{Value: value[:n], ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
		got := b.Build()
		if len(got.Bytes) == length {
			return got
		}
		n += length - len(got.Bytes)
	}
	t.Fatalf("no batch has %d bytes", length)
	return batch.Batch{}
}

// everything reads a partition from an offset on, the given bytes at a time.
func (r *rig) everything(p store.Partition, from int64, maxBytes int) (out []store.StoredBatch) {
	r.t.Helper()
	for at := from; ; {
		got, err := r.Read(context.Background(), store.Read{Partition: p, Offset: at, MaxRecords: math.MaxInt, MaxBytes: maxBytes})
		if err != nil {
			r.t.Fatalf("read at %d: %v", at, err)
		}
		if len(got.Batches) == 0 {
			return out
		}
		out = append(out, got.Batches...)
		at = out[len(out)-1].LastOffset + 1
	}
}

// TestPieces: batches around the lengths of pieces are what they were, however they are
// read, after a crash too, and nothing stays of them when they have been trimmed.
func TestPieces(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	var want []batch.Batch
	for _, n := range []int{64, bolt.PieceLen - 1, bolt.PieceLen, bolt.PieceLen + 1, 100, 2 * bolt.PieceLen, 2*bolt.PieceLen + 1, 5*bolt.PieceLen - 1, 1 << 20, 64} {
		b := sized(t, n)
		r.must(store.Append{Partition: p, Batch: b}, int64(len(want)))
		want = append(want, b)
	}
	same := func() {
		t.Helper()
		for _, limit := range []int{1, bolt.PieceLen, 3 * bolt.PieceLen, 4 << 20} {
			for from := range want {
				got := r.everything(p, int64(from), limit)
				if len(got) != len(want)-from {
					t.Fatalf("%d batches from offset %d on, %d bytes at a time", len(got), from, limit)
				}
				for i := range got {
					if !bytes.Equal(got[i].Bytes, want[from+i].Bytes) {
						t.Errorf("the batch at offset %d has %d other bytes, want %d", from+i, len(got[i].Bytes), len(want[from+i].Bytes))
					}
				}
			}
		}
	}
	same()
	r.crash()
	if rep := r.check(); rep.Batches != int64(len(want)) {
		t.Errorf("check: %d batches, want %d", rep.Batches, len(want))
	}
	r.open()
	same()
	if _, err := r.Trim(context.Background(), p, int64(len(want))); err != nil {
		t.Fatal(err)
	}
	r.sweep()
	r.close()
	r.check()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		if k, _ := tx.Bucket(bolt.BucketBatches).Cursor().First(); k != nil {
			t.Errorf("row %x is left", k)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLargeBatchesLeaveNoHoles: what each commit frees is used by the next ones.
func TestLargeBatchesLeaveNoHoles(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	for i, n := range []int{1 << 20, 1 << 20, 300_000, 1 << 20, 40_000, 1 << 20, 1 << 20, 5000, 1 << 20, 1 << 20, 1 << 20, 1 << 20} {
		r.must(store.Append{Partition: p, Batch: sized(t, n)}, int64(i))
	}
	if s := r.Stats(); s.FreeBytes > 512<<10 {
		t.Errorf("%d of %d bytes are free", s.FreeBytes, s.StoreBytes)
	}
}

// TestWholeRows: in files of the format before, each batch is one row. They are read, and
// what is added to them is in pieces.
func TestWholeRows(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	want := []batch.Batch{sized(t, 200_000), sized(t, 100), sized(t, 4*bolt.PieceLen)}
	for i, b := range want {
		r.must(store.Append{Partition: p, Batch: b}, int64(i))
	}
	r.close()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		rows := tx.Bucket(bolt.BucketBatches)
		var pieces, whole [][]byte
		err := rows.ForEach(func(k, _ []byte) error {
			if len(k) == 16 {
				whole = append(whole, bytes.Clone(k))
			} else {
				pieces = append(pieces, bytes.Clone(k))
			}
			return nil
		})
		for _, k := range pieces {
			err = errors.Join(err, rows.Delete(k))
		}
		for i, k := range whole {
			err = errors.Join(err, rows.Put(k, want[i].Bytes))
		}
		return errors.Join(err, tx.Bucket(bolt.BucketMeta).Put(bolt.KeyFormat, binary.BigEndian.AppendUint64(nil, bolt.FormatWhole)))
	})
	if err != nil {
		t.Fatal(err)
	}
	r.check()
	for range 2 {
		r.open()
		want = append(want, sized(t, 100_000))
		r.must(store.Append{Partition: p, Batch: want[len(want)-1]}, int64(len(want)-1))
		for i, b := range r.everything(p, 0, 1<<20) {
			if !bytes.Equal(b.Bytes, want[i].Bytes) {
				t.Errorf("the batch at offset %d is another", i)
			}
		}
		r.crash()
		r.check()
	}
	err = bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		if v := tx.Bucket(bolt.BucketMeta).Get(bolt.KeyFormat); binary.BigEndian.Uint64(v) == bolt.FormatWhole {
			t.Error("programs that know no pieces would open it")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamagedPieces: a batch whose pieces are not what they were is refused, the others go
// on, and check names it.
func TestDamagedPieces(t *testing.T) {
	key := func(offset int64, piece ...uint32) []byte {
		k := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 1), uint64(offset))
		for _, n := range piece {
			k = binary.BigEndian.AppendUint32(k, n)
		}
		return k
	}
	cases := map[string]struct {
		spoil func(rows *bbolt.Bucket) error
		want  string
		reads bool // all batches are whole nonetheless
	}{
		"first gone":  {func(b *bbolt.Bucket) error { return b.Delete(key(1)) }, "at offset 1 is missing", false},
		"middle gone": {func(b *bbolt.Bucket) error { return b.Delete(key(1, 2)) }, "batch at offset 1: pieces", false},
		"last gone":   {func(b *bbolt.Bucket) error { return b.Delete(key(1, 3)) }, "at offset 1 is not the one", false},
		"one more":    {func(b *bbolt.Bucket) error { return b.Put(key(1, 4), []byte("x")) }, "batch at offset 1: pieces", false},
		"swapped": {func(b *bbolt.Bucket) error {
			one, two := bytes.Clone(b.Get(key(1, 1))), bytes.Clone(b.Get(key(1, 2)))
			one[0]++ // the text repeats itself
			return errors.Join(b.Put(key(1, 1), two), b.Put(key(1, 2), one))
		}, "batch at offset 1", false},
		"of no batch": {func(b *bbolt.Bucket) error { return b.Put(key(7, 1), []byte("x")) }, "belongs to no batch", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bolt.Options{})
			p := r.topic("t", nil)
			for i, n := range []int{100, 3*bolt.PieceLen + 5, 100} {
				r.must(store.Append{Partition: p, Batch: sized(t, n)}, int64(i))
			}
			r.close()
			if err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error { return c.spoil(tx.Bucket(bolt.BucketBatches)) }); err != nil {
				t.Fatal(err)
			}
			rep, err := bolt.Check(r.dir, nil)
			if err != nil || !strings.Contains(strings.Join(rep.Problems, "\n"), c.want) {
				t.Errorf("check: %q, %v; want %q", rep.Problems, err, c.want)
			}
			if c.reads {
				return
			}
			r.open()
			for offset, whole := range []bool{true, false, true} {
				got, err := r.Read(context.Background(), store.Read{Partition: p, Offset: int64(offset), MaxRecords: 1, MaxBytes: 1})
				if whole && (err != nil || len(got.Batches) != 1) || !whole && store.CodeOf(err) != store.CodeRecordsDamaged {
					t.Errorf("read at %d: %d batches, %v", offset, len(got.Batches), err)
				}
			}
			if got, err := r.Read(context.Background(), store.Read{Partition: p, MaxRecords: 10, MaxBytes: 1 << 20}); err != nil || len(got.Batches) != 1 {
				t.Errorf("read over the damaged batch: %d batches, %v", len(got.Batches), err)
			}
			r.close()
		})
	}
}
