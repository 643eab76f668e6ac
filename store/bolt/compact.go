package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

// compactName is the file that a compaction writes.
const compactName = fileName + ".compact"

// compactTx bounds one transaction of a compaction, in bytes.
const compactTx = 16 << 20

// Compacted is what a compaction has done.
type Compacted struct {
	Before, After int64 // size of the file, in bytes
	Rows          int64 // that were copied and compared
}

// Compact gives back the space in a data directory's file that is free in it. No process
// may have the directory open. What is in use is written to a new file, which needs as much
// space; when that has been read again and is the same, it takes the place of the old one,
// in one step: whatever ends the compaction, the end of ctx too, one of the two is there,
// whole. progress, if not nil, is told of the bytes copied and of what they are at most.
func Compact(ctx context.Context, dir string, progress func(done, total int64)) (Compacted, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return Compacted{}, fmt.Errorf("there is no oncelog store in %s: %w", dir, err)
	}
	if err := checkLength(path); err != nil {
		return Compacted{}, openError(dir, err)
	}
	if err := checkTrees(path); err != nil {
		return Compacted{}, openError(dir, err)
	}
	old, err := openLocked(path, boltOptions(Options{}, false))
	if err != nil {
		return Compacted{}, openError(dir, err)
	}
	c, err := compact(ctx, old, dir, progress)
	if err != nil {
		err = errors.Join(err, old.Close(), removeIfThere(filepath.Join(dir, compactName)))
	}
	return c, err
}

// compact writes the new file and puts it into place. It closes old unless it fails.
func compact(ctx context.Context, old *bbolt.DB, dir string, progress func(done, total int64)) (c Compacted, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped
	defer func() {                                           // bbolt panics on pages that make no sense
		if v := recover(); v != nil {
			err = fmt.Errorf("the file cannot be read: %v", v)
		}
	}()
	if err := old.View(recognise); err != nil {
		return c, err
	}
	path, fresh := filepath.Join(dir, fileName), filepath.Join(dir, compactName)
	if err := dropLeftovers(dir); err != nil {
		return c, err
	}
	if err := writeCompact(ctx, old, fresh, progress); err != nil {
		return c, err
	}
	c.Rows, err = compare(ctx, old, fresh)
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	if err != nil {
		return c, fmt.Errorf("the new file is not the same as the old one, which stays: %w", err)
	}
	before, err := os.Stat(path)
	if err != nil {
		return c, err
	}
	c.Before = before.Size()
	// Whoever compacts may be another user than the server is.
	if err := errors.Join(os.Chmod(fresh, before.Mode().Perm()), keepOwner(fresh, before)); err != nil {
		return c, err
	}
	if runtime.GOOS == "windows" { // which renames no file that is open
		if err := old.Close(); err != nil {
			return c, err
		}
	}
	if err := os.Rename(fresh, path); err != nil {
		return c, err
	}
	after, err := os.Stat(path)
	if err != nil {
		return c, err
	}
	c.After = after.Size()
	return c, errors.Join(syncDir(dir), old.Close())
}

// writeCompact copies what is in use to a new file, durably.
func writeCompact(ctx context.Context, old *bbolt.DB, path string, progress func(done, total int64)) (err error) {
	db, err := bbolt.Open(path, 0o600, boltOptions(Options{}, false))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.NoSync, db.NoGrowSync = true, true // one fsync at the end is enough: nobody needs half of it
	db.AllocSize = 1 << 20                // free space that the file may end with
	err = old.View(func(from *bbolt.Tx) error {
		c := copier{ctx: ctx, to: db, progress: progress, total: from.Size(), kept: newKept(from)}
		return from.ForEach(c.bucket)
	})
	if err != nil {
		return err
	}
	return db.Sync()
}

// copier copies rows. bbolt has a function for it, which nobody can end.
type copier struct {
	ctx         context.Context
	to          *bbolt.DB
	progress    func(done, total int64)
	done, total int64
	kept        *kept
}

// bucket copies a bucket, some rows a transaction. No bucket of a store is in another.
func (c *copier) bucket(name []byte, from *bbolt.Bucket) error {
	cur := c.kept.rows(name, from)
	k, v := cur.first()
	for first := true; first || k != nil; first = false { // an empty one is made too
		if err := c.ctx.Err(); err != nil {
			return err
		}
		err := c.to.Update(func(tx *bbolt.Tx) error {
			to, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			to.FillPercent = 1 // what was written in order stays so
			if err := to.SetSequence(from.Sequence()); err != nil {
				return err
			}
			for size := 0; k != nil && size < compactTx; k, v = cur.next() {
				if v == nil {
					return fmt.Errorf("there is a bucket in bucket %q", name)
				}
				if err := to.Put(k, v); err != nil {
					return err
				}
				size += len(k) + len(v)
				c.done += int64(len(k) + len(v))
			}
			return nil
		})
		if err != nil {
			return err
		}
		if c.progress != nil {
			c.progress(c.done, c.total)
		}
	}
	return nil
}

// compare fails unless both files hold the same rows and the pages of the new one are
// consistent.
func compare(ctx context.Context, old *bbolt.DB, path string) (rows int64, err error) {
	db, err := bbolt.Open(path, 0o600, boltOptions(Options{}, true))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = old.View(func(before *bbolt.Tx) error {
		return db.View(func(after *bbolt.Tx) error {
			for err := range after.Check() {
				return err
			}
			rows, err = compareRows(ctx, before, after)
			return err
		})
	})
	return rows, err
}

func compareRows(ctx context.Context, before, after *bbolt.Tx) (rows int64, err error) {
	kept := newKept(before)
	a, b := before.Cursor(), after.Cursor()
	name, _ := a.First()
	other, _ := b.First()
	for ; name != nil || other != nil; rows++ {
		if !bytes.Equal(name, other) {
			return rows, fmt.Errorf("bucket %q is in the place of %q", other, name)
		}
		if before.Bucket(name).Sequence() != after.Bucket(name).Sequence() {
			return rows, fmt.Errorf("bucket %q: its sequence is another one", name)
		}
		n, err := compareBuckets(ctx, kept.rows(name, before.Bucket(name)), after.Bucket(name))
		if err != nil {
			return rows, fmt.Errorf("bucket %q: %w", name, err)
		}
		rows += n - 1
		name, _ = a.Next()
		other, _ = b.Next()
	}
	return rows, nil
}

// compareStep is how many rows are compared between looks at the context.
const compareStep = 1024

func compareBuckets(ctx context.Context, a *keptRows, after *bbolt.Bucket) (rows int64, err error) {
	b := after.Cursor()
	ak, av := a.first()
	bk, bv := b.First()
	for ; ak != nil || bk != nil; rows++ {
		if rows%compareStep == 0 && ctx.Err() != nil {
			return rows, ctx.Err()
		}
		if !bytes.Equal(ak, bk) || !bytes.Equal(av, bv) {
			return rows, fmt.Errorf("row %x: %d bytes instead of %d of row %x", bk, len(bv), len(av), ak)
		}
		ak, av = a.next()
		bk, bv = b.Next()
	}
	return rows, nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// openLocked opens a store file to write to. It waits for the lock, and meanwhile a
// compaction may have put another file in its place: then that one is opened instead, for
// writes to the old one would be lost.
func openLocked(path string, o *bbolt.Options) (*bbolt.DB, error) {
	for {
		db, file, err := openGuarded(path, o)
		if err != nil {
			return nil, err
		}
		opened, err := file.Stat()
		now, errNow := os.Stat(path)
		if err = errors.Join(err, errNow); err == nil && os.SameFile(opened, now) {
			return db, nil
		}
		if err := errors.Join(err, db.Close()); err != nil {
			return nil, err
		}
	}
}
