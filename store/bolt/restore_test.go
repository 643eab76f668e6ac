package bolt_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// TestRestoreGivesNoIDTwice: ids that were issued after the copy was made are no longer
// known, and are not given to anybody else.
func TestRestoreGivesNoIDTwice(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	old := r.pid()
	owned, err := r.AllocateProducer(context.Background(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	r.must(app(p, old, 0, 0, 1), 0)
	issued := map[int64]bool{}
	for range 2 { // the second time with the ids that the first restore skipped
		content := r.copied()
		for range 2 * store.ProducerBlockSize {
			later, err := r.AllocateProducer(context.Background(), "bob")
			if err != nil {
				t.Fatal(err)
			}
			issued[r.pid()], issued[later.ID] = true, true
		}
		highest := r.Stats().ProducerIDMark

		r = r.restored(content)
		for range 2 * store.ProducerBlockSize {
			if pid := r.pid(); pid < highest || issued[pid] {
				t.Fatalf("id %d has been given away before", pid)
			}
		}
		if owner, err := r.ProducerOwner(context.Background(), owned.ID); err != nil || owner != "alice" {
			t.Errorf("owner of %d: %q, %v", owned.ID, owner, err)
		}
		for _, id := range []int64{highest - 1, highest + 1<<31} {
			r.refused(app(p, id, 0, 0, 1), store.CodeUnknownProducerID)
		}
		r.again(app(p, old, 0, 0, 1), 0)
	}
}

func TestRestoreRefuses(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	r.must(store.Append{Partition: p, Batch: texts("needle", 1)}, 0)
	r.close()
	if _, err := bolt.Compact(context.Background(), r.dir, nil); err != nil { // a small file will do
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(r.dir, "oncelog.db"))
	if err != nil {
		t.Fatal(err)
	}
	r.open()
	at := bytes.Index(good, []byte("needle-0"))
	flipped := bytes.Clone(good)
	flipped[at] ^= 1
	sum := sha256.Sum256(good)
	for _, tc := range []struct {
		name, want string
		content    []byte
		sum        *[sha256.Size]byte
	}{
		{"another digest", "damaged or incomplete", flipped, &sum},
		{"a damaged record", "the batch at offset 0", flipped, nil},
		{"the end is missing", "cut off", good[:len(good)/2], nil},
		{"the beginning is missing", "damaged", good[len(good)/2:], nil},
		{"nothing", "empty", nil, nil},
		{"something else", "damaged", []byte(strings.Repeat("no store at all ", 4096)), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			rep, err := bolt.Restore(context.Background(), dir, bytes.NewReader(tc.content), bolt.RestoreOptions{SHA256: tc.sum})
			if got := fmt.Sprint(rep, err); !strings.Contains(got, tc.want) || err == nil && len(rep.Problems) == 0 {
				t.Errorf("%s", got)
			}
			if err == nil != (tc.name == "a damaged record") || err != nil && !errors.Is(err, bolt.ErrDamaged) {
				t.Errorf("%v", err)
			}
			if left, err := os.ReadDir(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("left behind: %v, %v", left, err)
			}
			dir = t.TempDir() // one that was there before stays, with what is in it
			if err := os.WriteFile(filepath.Join(dir, "access.json"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			bolt.Restore(context.Background(), dir, bytes.NewReader(tc.content), bolt.RestoreOptions{SHA256: tc.sum}) //nolint:errcheck // it has failed before
			if got := names(t, dir); !slices.Equal(got, []string{"access.json"}) {
				t.Errorf("in the directory are %v", got)
			}
		})
	}
}

// names are those of what is in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// reading calls a function when all but the end has been read.
type reading struct {
	io.Reader
	then func()
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && r.then != nil {
		r.then()
		r.then = nil
	}
	return n, err
}

// TestRestoreWritesOverNothing: neither over a store that is there nor over one that comes
// while it is at work.
func TestRestoreWritesOverNothing(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	content := r.copied()
	r.must(store.Append{Partition: p, Batch: texts("x", 1)}, 0)
	r.close()
	other := t.TempDir()
	for name, tc := range map[string]struct {
		dir  string
		then func()
	}{
		"it is there": {dir: r.dir},
		"it comes meanwhile": {other, func() {
			if err := os.Link(filepath.Join(r.dir, "oncelog.db"), filepath.Join(other, "oncelog.db")); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			from := &reading{bytes.NewReader(content), tc.then}
			_, err := bolt.Restore(t.Context(), tc.dir, from, bolt.RestoreOptions{})
			if err == nil || !strings.Contains(err.Error(), "there is a store already") {
				t.Errorf("%v", err)
			}
			if got := names(t, tc.dir); !slices.Equal(got, []string{"oncelog.db"}) {
				t.Errorf("in the directory are %v", got)
			}
		})
	}
	if err := os.RemoveAll(other); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.bounds(p, 0, 1)
}

func TestRestoreInterrupted(t *testing.T) {
	r := newRig(t, bolt.Options{})
	content := r.copied()
	ctx, cancel := context.WithCancel(t.Context())
	dir := filepath.Join(t.TempDir(), "data")
	_, err := bolt.Restore(ctx, dir, &reading{bytes.NewReader(content), cancel}, bolt.RestoreOptions{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// TestRestoreOfAnOldFormat: a copy may have been made long ago.
func TestRestoreOfAnOldFormat(t *testing.T) {
	old := oldRig(t, "format1", "killed")
	content, err := os.ReadFile(filepath.Join(old.dir, "oncelog.db"))
	if err != nil {
		t.Fatal(err)
	}
	next := old.restored(content)
	next.must(app(store.Partition{Topic: "orders"}, 0, 0, 121, 2), 135)
}
