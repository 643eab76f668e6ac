package bolt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store/sequence"
)

// ErrDamaged is why a copy is refused: it is damaged, incomplete, or none of a store.
var ErrDamaged = errors.New("the copy is damaged")

// RestoreOptions say how a copy is taken in. The zero value works.
type RestoreOptions struct {
	// SHA256 is what the copy must have. Nil: it is not known.
	SHA256 *[sha256.Size]byte
	// Progress, if not nil, is told of the bytes examined, as with [Check].
	Progress func(done, total int64)
	// Logger gets what an operator should know. Nil: nothing is logged.
	Logger *slog.Logger
}

// skippedIDs is how many producer ids a restored store leaves out. After the copy was
// made, the store may have given away further ids, and their holders may still be there:
// given to somebody else, such an id would have two producers take each other's batches for
// their own. Nobody gives away four thousand million ids between two backups, and there
// are two million times as many.
const skippedIDs = 1 << 32

// restorePattern names the directories that restores work in.
const restorePattern = "restore-*.tmp"

// Restore makes a data directory of a copy that [Store.Backup] gave, or of a store file that
// no process had open. There must be no store in dir, which need not be there yet: none is
// ever written over, and one that appears meanwhile stays. The copy is examined as by
// [Check]; when a problem is found, or its checksum is another one, nothing of it is left in
// dir. When ctx ends before that, so does the restore.
func Restore(ctx context.Context, dir string, from io.Reader, o RestoreOptions) (report *Report, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	dir = filepath.Clean(dir)
	_, missing := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if missing != nil && (err != nil || len(report.Problems) > 0) {
			os.Remove(dir) //nolint:errcheck // if there is something in it, it is not ours
		}
	}()
	place := filepath.Join(dir, fileName)
	if err := vacant(place); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(dir, restorePattern)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what is left says by its name what it is
	path := filepath.Join(work, fileName)
	if err := receive(ctx, path, from, o.SHA256); err != nil {
		return nil, err
	}
	if err := adopt(path, o.Logger); err != nil {
		return nil, err
	}
	report, err = Check(work, o.Progress)
	if err != nil {
		return nil, err
	}
	if len(report.Problems) > 0 {
		return report, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := moveNew(path, place); err != nil {
		return nil, err
	}
	return report, errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)))
}

// vacant fails when there is something at a path.
func vacant(path string) error {
	switch _, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return occupied(path)
}

func occupied(path string) error {
	return fmt.Errorf("there is a store already, which stays as it is: %s", path)
}

// moveNew gives a file a path at which there is nothing. A link fails when there is
// something, where a rename would write over it.
func moveNew(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, os.ErrExist):
		return occupied(to)
	}
	if err := vacant(to); err != nil { // not every file system has links
		return err
	}
	return os.Rename(from, to)
}

// receive writes a copy to a file, durably, and holds it to its checksum.
func receive(ctx context.Context, path string, from io.Reader, want *[sha256.Size]byte) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var h hash.Hash
	if want != nil {
		h = sha256.New()
		from = io.TeeReader(from, h)
	}
	n, err := io.Copy(f, &cancellable{ctx, from})
	switch {
	case err != nil:
		return err
	case n == 0:
		return fmt.Errorf("%w: it is empty", ErrDamaged)
	case h != nil && [sha256.Size]byte(h.Sum(nil)) != *want:
		return fmt.Errorf("%w or incomplete: it has %d bytes with the SHA-256 %x, not %x", ErrDamaged, n, h.Sum(nil), *want)
	}
	return f.Sync()
}

// cancellable is a reader that fails when its context has ended.
type cancellable struct {
	ctx  context.Context
	from io.Reader
}

func (c *cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.from.Read(p)
}

// adopt makes the store in a file one that goes on from a copy.
func adopt(path string, log *slog.Logger) (err error) {
	if err := checkLength(path); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err := checkTrees(path); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped
	defer func() {                                           // bbolt panics on pages that make no sense
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %w", ErrDamaged, misread(v))
		}
	}()
	db, err := openLocked(path, boltOptions(Options{}, false))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(recognise)
	if errors.Is(err, errOldFormat) {
		err = upgrade(db, log)
	}
	if err != nil {
		return err
	}
	return db.Update(skipIDs)
}

// recognise fails unless the file is a store of the present format.
func recognise(tx *bbolt.Tx) error {
	for _, name := range allBuckets {
		if tx.Bucket(name) == nil {
			return errForeign
		}
	}
	return checkFormat(tx.Bucket(bucketMeta))
}

// skipIDs makes the ids above the mark ones that were never given away and never will be.
func skipIDs(tx *bbolt.Tx) error {
	mark, err := pidMark(tx)
	if err != nil {
		return err
	}
	end := min(mark+skippedIDs, sequence.Max+1)
	if end == mark {
		return nil
	}
	rows, err := tx.CreateBucketIfNotExists(bucketOwners)
	if err != nil {
		return err
	}
	if err := rows.Put(ownerKey(mark), encodeOwner(newBlock(nobody, mark, end), mark)); err != nil {
		return err
	}
	return putPIDMark(tx, end)
}
