package verify_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/verify"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// stored is a data directory with a topic that has some of everything.
func stored(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	st, err := bolt.Open(dir, bolt.Options{DiskReserve: -1})
	must(t, err)
	c := store.DefaultConfig()
	c.SegmentBytes = store.MinSegmentBytes
	_, err = st.CreateTopic(t.Context(), "t", 1, c)
	must(t, err)
	for pid := range int64(2) {
		_, err := st.AllocateProducer(t.Context(), "")
		must(t, err)
		for i := range int64(40) {
			a := store.Append{Partition: place(0), Producer: &store.ProducerSeq{ID: pid, BaseSeq: 2 * i}, Batch: records(fmt.Sprintf("%d/%02d", pid, i), 2)}
			_, err := st.Append(t.Context(), a)
			must(t, err)
		}
	}
	_, err = st.TakeSnapshots(t.Context(), store.SnapshotFilter{})
	must(t, err)
	must(t, st.Close())
	_, err = bolt.Compact(t.Context(), dir, nil) // to a small file, of which there will be many
	must(t, err)
	return dir
}

// rows are the keys of a bucket, in order.
func rows(b *bbolt.Bucket) (keys [][]byte) {
	_ = b.ForEach(func(k, _ []byte) error { keys = append(keys, bytes.Clone(k)); return nil })
	return keys
}

// flip changes the last bit of a row.
func flip(b *bbolt.Bucket, key []byte) error {
	v := bytes.Clone(b.Get(key))
	v[len(v)/2] ^= 1
	return b.Put(key, v)
}

// swap exchanges the values of two rows.
func swap(b *bbolt.Bucket, k, l []byte) error {
	v, w := bytes.Clone(b.Get(k)), bytes.Clone(b.Get(l))
	if err := b.Put(k, w); err != nil {
		return err
	}
	return b.Put(l, v)
}

// TestDamageOnDisk: whatever is wrong with a row of the store, a server on it or verify
// notices, and verify says so.
func TestDamageOnDisk(t *testing.T) {
	whole := stored(t)
	if found := problemsOf(t, whole); len(found) > 0 {
		t.Fatalf("nothing is wrong, and found was %q", found)
	}
	type harm func(b *bbolt.Bucket, keys [][]byte) error
	middle := func(keys [][]byte) []byte { return keys[len(keys)/2] }
	last := func(keys [][]byte) []byte { return keys[len(keys)-1] }
	flipped := func(b *bbolt.Bucket, keys [][]byte) error { return flip(b, middle(keys)) }
	gone := func(b *bbolt.Bucket, keys [][]byte) error { return b.Delete(middle(keys)) }
	goneLast := func(b *bbolt.Bucket, keys [][]byte) error { return b.Delete(last(keys)) }
	swapped := func(b *bbolt.Bucket, keys [][]byte) error { return swap(b, middle(keys), last(keys)) }
	for name, tc := range map[string]struct {
		buckets string
		harm    harm
	}{
		"a bit of a batch":                {"batches", flipped},
		"a batch":                         {"batches", gone},
		"the last batch":                  {"batches", goneLast},
		"two batches swapped":             {"batches", swapped},
		"a bit of a header":               {"headers", flipped},
		"a header":                        {"headers", gone},
		"the last header":                 {"headers", goneLast},
		"two headers swapped":             {"headers", swapped},
		"a batch and its header":          {"batches headers", gone},
		"two batches and headers swapped": {"batches headers", swapped},
		"a bit of a snapshot":             {"chunks", flipped},
		"a snapshot without its contents": {"chunks", gone},
		"two snapshots swapped":           {"chunks", swapped},
		"a bit of a segment":              {"segments", flipped},
		"a segment":                       {"segments", gone},
		"a bit of a partition":            {"partitions", flipped},
		"a partition":                     {"partitions", gone},
		"a bit of a topic":                {"topics", flipped},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.CopyFS(dir, os.DirFS(whole)))
			db, err := bbolt.Open(filepath.Join(dir, "oncelog.db"), 0o600, nil)
			must(t, err)
			err = db.Update(func(tx *bbolt.Tx) error {
				for bucket := range strings.FieldsSeq(tc.buckets) {
					b := tx.Bucket([]byte(bucket))
					if err := tc.harm(b, rows(b)); err != nil {
						return err
					}
				}
				return nil
			})
			must(t, err)
			must(t, db.Close())
			found := problemsOf(t, dir)
			if len(found) == 0 {
				t.Error("it is not noticed")
			}
			t.Logf("%q", found)
		})
	}
}

// problemsOf is what verify finds with a server on a directory.
func problemsOf(t *testing.T, dir string) []string {
	t.Helper()
	st, err := bolt.Open(dir, bolt.Options{DiskReserve: -1})
	must(t, err)
	defer func() { must(t, st.Close()) }()
	s, err := server.New(server.Options{})
	must(t, err)
	s.Serve(st)
	web := httptest.NewServer(s)
	defer web.Close()
	c, err := producer.NewClient(web.URL)
	must(t, err)
	defer c.CloseIdleConnections()
	r, err := verify.Partition(context.Background(), c, "t", 0, nil)
	if err != nil {
		return []string{err.Error()}
	}
	return r.Problems
}
