package bolt

import (
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

// Close ends the engine; see [store.Engine].
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.shutdown() })
	return s.closeErr
}

func (s *Store) shutdown() error {
	s.gate.Lock()
	s.closed = true
	s.gate.Unlock()
	close(s.closing)
	s.committer.Wait()
	s.upkeep.Wait()
	var errs []error
	if f := s.failure.Load(); f != nil {
		errs = append(errs, f)
	} else {
		errs = append(errs, s.lastWrites())
	}
	errs = append(errs, s.db.Close())
	return errors.Join(errs...)
}

// lastWrites leaves a store that starts without any replay.
func (s *Store) lastWrites() error {
	for _, p := range s.serving() {
		if p.snapAt == p.next.Load() && p.snapMarks == p.marks {
			continue
		}
		if p.next.Load() == 0 && p.marks == 0 {
			continue // never used
		}
		if _, err := s.takeSnapshot(p, store.SnapshotShutdown); err != nil {
			return fmt.Errorf("snapshot of topic %q partition %d: %w", p.name.Topic, p.name.Number, err)
		}
	}
	if s.tail.rows > 0 {
		if err := s.update(nothing); err != nil {
			return err
		}
	}
	left, mark := s.pids.leave()
	if len(left) > 0 || mark != s.pids.mark.Load() {
		if err := s.update(func(tx *bbolt.Tx) error { return putLeft(tx, left, mark) }); err != nil {
			return err
		}
	}
	if s.freelist.missing {
		return s.writeFreelist()
	}
	return nil
}
