package bolt_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// spoil changes one value of a bucket, or deletes it when change returns nil.
func spoil(bucket []byte, last bool, change func([]byte) []byte) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		k, v := b.Cursor().First()
		if last {
			k, v = b.Cursor().Last()
		}
		k = append([]byte(nil), k...)
		if v = change(append([]byte(nil), v...)); v == nil {
			return b.Delete(k)
		}
		return b.Put(k, v)
	}
}

// respoil changes the first value of a bucket as if it had been written so.
func respoil(bucket []byte, change func([]byte) []byte) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		k, v := b.Cursor().First()
		return bolt.Reseal(b, k, change(append([]byte(nil), v[:len(v)-bolt.SumLen]...)))
	}
}

// move puts the last value of a bucket under a key further on.
func move(bucket []byte) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		k, v := b.Cursor().Last()
		k, v = append([]byte(nil), k...), append([]byte(nil), v...)
		if err := b.Delete(k); err != nil {
			return err
		}
		return b.Put(flip(-1)(k), v)
	}
}

func flip(i int) func([]byte) []byte {
	return func(v []byte) []byte {
		v[(i+len(v))%len(v)] ^= 1
		return v
	}
}

func gone([]byte) []byte { return nil }

func TestCheckNamesTheDamage(t *testing.T) {
	cases := map[string]struct {
		spoil func(*bbolt.Tx) error
		want  string
	}{
		"flipped record":      {spoil(bolt.BucketBatches, false, flip(-1)), "batch at offset 0: record batch fails its CRC32C"},
		"flipped batch crc":   {spoil(bolt.BucketBatches, false, flip(16)), "batch at offset 0 is not the one that its header describes"},
		"missing batch":       {spoil(bolt.BucketBatches, true, gone), "batch at offset 7 is missing"},
		"flipped header":      {spoil(bolt.BucketHeaders, false, flip(-1)), "batch at offset 0: damaged batch header"},
		"missing header":      {spoil(bolt.BucketHeaders, false, gone), "begins at offset 2"},
		"flipped mark":        {spoil(bolt.BucketMarks, false, flip(0)), "damaged mark"},
		"unknown mark":        {respoil(bolt.BucketMarks, flip(0)), "unknown mark"},
		"flipped topic":       {spoil(bolt.BucketTopics, false, flip(9)), `topic "t": damaged row`},
		"flipped partition":   {spoil(bolt.BucketPartitions, false, flip(-9)), `topic "t" partition 0: row: damaged row`},
		"flipped segment":     {spoil(bolt.BucketSegments, false, flip(20)), "segment 0: damaged row"},
		"flipped id mark":     {spoil(bolt.BucketMeta, true, flip(7)), "mark of producer ids: damaged row"},
		"moved header":        {move(bolt.BucketHeaders), "damaged batch header"},
		"flipped chunk":       {spoil(bolt.BucketChunks, true, flip(-1)), "snapshot at 4: damaged snapshot"},
		"missing snapshot":    {spoil(bolt.BucketChunks, true, gone), "snapshot at 4: damaged snapshot"},
		"wrong segment total": {respoil(bolt.BucketSegments, func(v []byte) []byte { return []byte(strings.Replace(string(v), `"batches":3`, `"batches":4`, 1)) }), "totals of segment 0"},
		"missing segment":     {spoil(bolt.BucketSegments, true, gone), "marked closed"},
		"stray partition": {func(tx *bbolt.Tx) error {
			return tx.Bucket(bolt.BucketHeaders).Put([]byte("12345678abcdefgh"), []byte("x"))
		}, "which is in no topic"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bolt.Options{})
			history(r, r.topic("t", nil))
			r.crash()
			r.check()
			if err := bolt.Edit(r.dir, c.spoil); err != nil {
				t.Fatal(err)
			}
			rep, err := bolt.Check(r.dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(rep.Problems, "\n"), c.want) {
				t.Errorf("problems %q, want one with %q", rep.Problems, c.want)
			}
		})
	}
}

// A batch that was stored twice, or lost from the middle, is what check is for.
func TestCheckFindsDoubledAndLostBatches(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	pid := r.pid()
	for i := range int64(4) {
		r.must(app(p, pid, 0, i, 1), i)
	}
	r.crash()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bolt.BucketHeaders, bolt.BucketBatches} {
			c := tx.Bucket(name).Cursor()
			k, _ := c.Last()
			_, first := c.First()
			k, first = append([]byte(nil), k...), append([]byte(nil), first...)
			err := tx.Bucket(name).Put(k, first)
			if bytes.Equal(name, bolt.BucketHeaders) {
				err = bolt.Reseal(tx.Bucket(name), k, first[:len(first)-bolt.SumLen])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := bolt.Check(r.dir, nil)
	if err != nil || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0], "offset 3, producer 0 epoch 0 sequence 0, does not follow") {
		t.Fatalf("%q, %v", rep.Problems, err)
	}
}

func TestDamagedBatchIsNeverServed(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	other := r.topic("other", nil)
	pid := r.pid()
	for i := range int64(4) {
		r.must(app(p, pid, 0, i, 1), i)
	}
	r.must(app(other, pid, 0, 0, 1), 0)
	r.crash()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		c := tx.Bucket(bolt.BucketBatches).Cursor()
		c.First()
		k, v := c.Next()
		return tx.Bucket(bolt.BucketBatches).Put(append([]byte(nil), k...), flip(-1)(append([]byte(nil), v...)))
	})
	if err != nil {
		t.Fatal(err)
	}
	r.open()
	ctx := context.Background()
	read := func(p store.Partition, offset int64) (store.Records, error) {
		return r.Read(ctx, store.Read{Partition: p, Offset: offset, MaxRecords: 100, MaxBytes: 1 << 20})
	}
	if got, err := read(p, 0); err != nil || len(got.Batches) != 1 {
		t.Errorf("before the damage: %d batches, %v, want those up to it", len(got.Batches), err)
	}
	if _, err := read(p, 1); store.CodeOf(err) != store.CodeRecordsDamaged || !strings.Contains(err.Error(), "offset 1") {
		t.Errorf("the damaged batch: %v", err)
	}
	if got, err := read(p, 2); err != nil || len(got.Batches) != 2 {
		t.Errorf("after the damage: %v", err)
	}
	if got, err := read(other, 0); err != nil || len(got.Batches) != 1 {
		t.Errorf("another partition: %v", err)
	}
}

// A file that has lost its end must not take the process down with it.
func TestFileThatIsCutOff(t *testing.T) {
	r := newRig(t, bolt.Options{})
	history(r, r.topic("t", nil))
	r.close()
	path := filepath.Join(r.dir, "oncelog.db")
	for _, size := range []int64{20_000, 10_000, 8192, 5000} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		rep, err := bolt.Check(r.dir, nil)
		if err != nil || len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0], "cut off: it has "+strconv.FormatInt(size, 10)) {
			t.Errorf("check at %d bytes: %+v, %v", size, rep, err)
		}
		if _, err := bolt.Open(r.dir, bolt.Options{}); err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("open at %d bytes: %v", size, err)
		}
	}
}
