package bolt

import (
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

// Restore makes a data directory of a copy that [Store.Backup] gave, or of a store file that
// no process had open. dir must be empty, or not there yet. The copy is examined as by
// [Check]; when a problem is found, or its checksum is another one, nothing is left in dir.
func Restore(dir string, from io.Reader, o RestoreOptions) (*Report, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := checkEmpty(dir); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(dir, "restore-*.tmp")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what is left says by its name what it is
	path := filepath.Join(work, fileName)
	if err := receive(path, from, o.SHA256); err != nil {
		return nil, err
	}
	if err := adopt(path, o.Logger); err != nil {
		return nil, fmt.Errorf("the copy cannot be used: %w", err)
	}
	report, err := Check(work, o.Progress)
	if err != nil {
		return nil, err
	}
	if len(report.Problems) > 0 {
		return report, nil
	}
	if err := os.Rename(path, filepath.Join(dir, fileName)); err != nil {
		return nil, err
	}
	return report, errors.Join(syncDir(dir), syncDir(filepath.Dir(filepath.Clean(dir))))
}

// checkEmpty fails when there is something in a directory.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty, %q is in it", dir, entries[0].Name())
	}
	return err
}

// receive writes a copy to a file, durably, and holds it to its checksum.
func receive(path string, from io.Reader, want *[sha256.Size]byte) (err error) {
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
	n, err := io.Copy(f, from)
	switch {
	case err != nil:
		return err
	case n == 0:
		return errors.New("the copy is empty")
	case h != nil && [sha256.Size]byte(h.Sum(nil)) != *want:
		return fmt.Errorf("the copy has %d bytes with the SHA-256 %x, not %x: it is damaged or incomplete", n, h.Sum(nil), *want)
	}
	return f.Sync()
}

// adopt makes the store in a file one that goes on from a copy.
func adopt(path string, log *slog.Logger) (err error) {
	if err := errors.Join(checkLength(path), checkTrees(path)); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped
	defer func() {                                           // bbolt panics on pages that make no sense
		if v := recover(); v != nil {
			err = fmt.Errorf("the file cannot be read: %v", v)
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
