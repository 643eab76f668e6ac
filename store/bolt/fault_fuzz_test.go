package bolt_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// fuzzStore is a small store with something of everything in it, closed.
func fuzzStore(f *testing.F) (dir string) {
	f.Helper()
	r := newRig(f, bolt.Options{DiskReserve: -1, RetentionInterval: time.Hour})
	history(r, r.topic("t", nil))
	if _, err := r.TakeSnapshots(context.Background(), store.SnapshotFilter{}); err != nil {
		f.Fatal(err)
	}
	r.close()
	return r.dir
}

// FuzzRows: a row of the log, or a snapshot, is refused or understood in full, and each has
// one encoding. The checksum is made right, or hardly anything would get past it.
func FuzzRows(f *testing.F) {
	err := bolt.Edit(fuzzStore(f), func(tx *bbolt.Tx) error {
		for kind, bucket := range [][]byte{bolt.BucketHeaders, bolt.BucketMarks, bolt.BucketChunks} {
			err := tx.Bucket(bucket).ForEach(func(k, v []byte) error {
				f.Add(uint8(kind), bytes.Clone(k), bytes.Clone(v[:len(v)-bolt.SumLen]))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(2), []byte{}, []byte{2, 1, 1, 1, 0}) // a snapshot with a cutoff
	f.Fuzz(func(t *testing.T, kind uint8, key, v []byte) {
		recode, row := bolt.RecodeHeader, bolt.Seal(key, v)
		switch kind % 3 {
		case 1:
			recode = bolt.RecodeMark
		case 2:
			recode, row = func(_, v []byte) ([]byte, bool) { return bolt.RecodeSnapshot(v) }, v
		}
		again, ok := recode(key, row)
		if !ok {
			return
		}
		if second, ok := recode(key, again); !ok || !bytes.Equal(again, second) {
			t.Fatalf("%x under %x becomes %x, and that %x (%v)", row, key, again, second, ok)
		}
	})
}

// FuzzRestore: a copy that was changed on its way is refused, or it makes a store in which
// Check finds nothing and from which nothing but what was stored is read.
func FuzzRestore(f *testing.F) {
	dir := fuzzStore(f)
	whole := inUseOf(f, filepath.Join(dir, "oncelog.db"))
	f.Add(uint32(0), []byte{})
	f.Add(uint32(len(whole)-1), []byte{0})
	f.Add(uint32(4096), bytes.Repeat([]byte{0xff}, 100))
	for at := uint32(0); int(at) < len(whole); at += 4096 {
		f.Add(at+8, []byte{0x10, 0, 1})
	}
	work := shm(f)
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		file := bytes.Clone(whole)
		copy(file[int(at)%len(file):], change)
		if len(change) > 4096 { // cut off
			file = file[:int(at)%len(file)]
		}
		to, err := os.MkdirTemp(work, "restore-") //nolint:usetesting // that of the test lies on the disk
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(to)
		report, err := bolt.Restore(t.Context(), to, bytes.NewReader(file), bolt.RestoreOptions{})
		if err != nil || len(report.Problems) > 0 {
			if bytes.Equal(file, whole) {
				t.Fatalf("the copy as it was is refused: %+v, %v", report, err)
			}
			if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
				t.Fatalf("what was refused has left %v, %v", left, err)
			}
			return
		}
		s, err := bolt.Open(to, bolt.Options{DiskReserve: -1, RetentionInterval: time.Hour})
		if err != nil {
			t.Fatalf("what was taken does not open: %v", err)
		}
		defer s.Close()
		texts, err := readTexts(s, store.Partition{Topic: "t"})
		if err != nil || len(texts) != 6 {
			t.Fatalf("%q, %v", texts, err)
		}
		for _, text := range texts {
			if strings.Trim(text, "0123456789/-") != "" {
				t.Fatalf("%q was never stored", text)
			}
		}
	})
}

// inUseOf reads the part of a file that is in use.
func inUseOf(f *testing.F, path string) []byte {
	f.Helper()
	file, err := os.Open(path)
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	pages, err := bolt.PagesInUse(file)
	if err != nil {
		f.Fatal(err)
	}
	b, err := io.ReadAll(io.LimitReader(file, pages*damagePage))
	if err != nil {
		f.Fatal(err)
	}
	return b
}
