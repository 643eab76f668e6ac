package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/oncelog/oncelog/store"
)

func unknownTopic(name string) error {
	return store.Errorf(store.CodeUnknownTopic, "there is no topic %q", name)
}

func errDraining() error {
	return store.Errorf(store.CodeDraining, "the server is shutting down")
}

func errDeleting(name string) error {
	return store.Errorf(store.CodeTopicDeleting, "topic %q is being deleted", name)
}

func outOfRange(b store.Bounds, offset int64) error {
	return &store.Error{
		Code:   store.CodeOffsetOutOfRange,
		Detail: fmt.Sprintf("offset %d is above the high watermark %d", offset, b.HighWatermark),
		Bounds: &b,
	}
}

func trimmed(b store.Bounds, offset int64) error {
	return &store.Error{
		Code:   store.CodeRecordsTrimmed,
		Detail: fmt.Sprintf("offset %d is below the first kept one, %d", offset, b.Earliest),
		Bounds: &b,
	}
}

// inBounds checks that an offset can be read from.
func inBounds(b store.Bounds, offset int64) error {
	switch {
	case offset < b.Earliest:
		return trimmed(b, offset)
	case offset > b.HighWatermark:
		return outOfRange(b, offset)
	}
	return nil
}

// noSpace reports that a transaction failed because there was no room, in a way that
// is known to have left the file as it was: growing the file or writing to a free page
// was refused. The same errno from an fsync comes bare, without the name of a system
// call on a file, and is no such proof.
func noSpace(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	if strings.HasPrefix(err.Error(), "file resize error") { // bbolt keeps the text only
		return true
	}
	pe, ok := errors.AsType[*fs.PathError](err)
	return ok && pe.Op != "sync" && (errors.Is(pe, syscall.ENOSPC) || errors.Is(pe, syscall.EDQUOT))
}

// txError turns the failure of a write transaction into the error that clients get,
// and stops the engine unless the file is known to be as before.
func (s *Store) txError(err error) error {
	if _, ok := errors.AsType[*store.Error](err); ok {
		return err
	}
	if noSpace(err) {
		now := time.Now()
		s.refused.Store(&now)
		s.wakeReaper()
		return &store.Error{Code: store.CodeStorageFull, Detail: "there is no space left for records", Err: err}
	}
	failure := &store.Error{
		Code:   store.CodeStorageFailed,
		Detail: "a write to disk failed; the server takes no writes until it has been restarted",
		Err:    err,
	}
	if s.failure.CompareAndSwap(nil, failure) {
		s.log.Error("a write to disk failed, no more writes are taken", slog.Any("error", err))
	}
	return failure
}
