package bolt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

var _ store.Backups = (*Store)(nil)

// A backup is what one read transaction sees. While that is open, no page that appends
// give up can be used again, and the file grows by what is written. So it is not open
// while a client on a slow line takes the copy: the file is copied to one beside it, which
// takes as long as the disk does, and often next to nothing (Linux shares the blocks on
// file systems that can), and the client gets that. The price is the space of a second
// store for as long; where there is none, a backup is refused and appends go on.

// spoolPattern names the copies. They are unlinked as soon as they are open where that is
// possible, so that none stays behind.
const spoolPattern = "backup-*.tmp"

// Backup copies the store; see [store.Backups].
func (s *Store) Backup(ctx context.Context) (*store.Backup, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if !s.backup.TryLock() {
		return nil, store.Errorf(store.CodeOverloaded, "another backup is being taken")
	}
	b, err := s.spool(ctx)
	if err != nil {
		s.backup.Unlock()
		return nil, err
	}
	done := b.Close
	b.Close = func() error {
		defer s.backup.Unlock()
		return done()
	}
	return b, nil
}

// spool makes the copy.
func (s *Store) spool(ctx context.Context) (b *store.Backup, err error) {
	f, err := os.CreateTemp(s.path, spoolPattern)
	if err != nil {
		return nil, backupError(err)
	}
	unlinked := os.Remove(f.Name()) == nil // not on Windows while it is open
	done := func() error {
		err := f.Close()
		if !unlinked {
			err = errors.Join(err, os.Remove(f.Name()))
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, done())
		}
	}()
	start := time.Now()
	var size int64
	err = s.view(func(tx *bbolt.Tx) error {
		if err := s.roomForBackup(tx.Size()); err != nil {
			return err
		}
		size, err = tx.WriteTo(f)
		return err
	})
	if err != nil {
		return nil, backupError(err)
	}
	took := time.Since(start)
	sum, err := digest(ctx, f)
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "the store has been copied for a backup", slog.Int64("bytes", size), slog.Duration("copy", took), slog.Duration("digest", time.Since(start)-took))
	return &store.Backup{Content: f, Size: size, SHA256: sum, Close: done}, nil
}

// roomForBackup fails when a copy would leave less than the reserve on the disk.
func (s *Store) roomForBackup(size int64) error {
	free := diskFree(s.path)
	if need := size + max(s.opts.DiskReserve, 0); free >= 0 && free < need {
		return store.Errorf(store.CodeStorageFull,
			"a backup needs the space of a copy beside the store: %d bytes with the reserve, %d are free", need, free)
	}
	return nil
}

// backupError gives a failure to copy its code. It does not touch the store itself.
func backupError(err error) error {
	if _, ok := errors.AsType[*store.Error](err); ok {
		return err
	}
	if noSpace(err) {
		return &store.Error{Code: store.CodeStorageFull, Detail: "there is no space for a copy of the store beside it", Err: err}
	}
	return fmt.Errorf("copy the store: %w", err)
}

// digest hashes a file from its beginning and goes back there.
func digest(ctx context.Context, f *os.File) (sum [sha256.Size]byte, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return sum, err
	}
	h := sha256.New()
	const step = 16 << 20
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		_, err := io.CopyN(h, f, step)
		if more = err == nil; !more && !errors.Is(err, io.EOF) {
			return sum, err
		}
	}
	h.Sum(sum[:0])
	_, err = f.Seek(0, io.SeekStart)
	return sum, err
}

// dropSpools removes copies that a crash has left. The directory must be locked.
func dropSpools(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, spoolPattern))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
