package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

// reap deletes garbage until there is room enough or none is left.
func (s *Store) reap(ctx context.Context) error {
	s.garbage.left.Store(false)
	return errors.Join(s.emptyTrash(ctx), s.eachServing(func(p *partition) error {
		if err := s.reapPartition(ctx, p); err != nil {
			return fmt.Errorf("delete records: %w", err)
		}
		if err := s.dropOrphans(ctx, p); err != nil {
			return fmt.Errorf("delete old snapshots: %w", err)
		}
		return nil
	}))
}

// reapPartition deletes what lies below the first segment of a partition: batches, and when
// the producer state at that point is safe in the base snapshot, headers and marks.
func (s *Store) reapPartition(ctx context.Context, p *partition) error {
	for done := true; done; {
		p.mu.RLock()
		first := p.segments[0].base
		p.mu.RUnlock()
		// A floor is kept until all below it is gone: where appends and retention go on,
		// the batches below the newest one never come to an end, and headers would stay.
		if p.floor == p.reaped { // only one goroutine at a time uses them
			p.floor = first
		}
		if p.floor == p.reaped {
			return nil
		}
		var err error
		if done, err = s.reapBelow(ctx, p, p.floor); err != nil {
			return err
		}
	}
	return nil
}

// reapBelow deletes what lies below an offset, and reports whether nothing is left there.
func (s *Store) reapBelow(ctx context.Context, p *partition, floor int64) (done bool, err error) {
	if done, err := s.deleteBelow(ctx, bucketBatches, p.uid, floor); err != nil || !done {
		return false, err
	}
	if err := s.raiseBase(ctx, p, floor); err != nil {
		return false, err
	}
	for _, bucket := range [][]byte{bucketHeaders, bucketMarks} {
		if done, err := s.deleteBelow(ctx, bucket, p.uid, floor); err != nil || !done {
			return false, err
		}
	}
	p.reaped = floor
	return true, nil
}

// raiseBase saves the producer state at an offset as the base from which the log can
// be replayed when the headers below it are gone. It is computed from those headers,
// which nobody changes any more, while appends go on.
func (s *Store) raiseBase(ctx context.Context, p *partition, floor int64) error {
	var state loaded
	var old []listedSnapshot
	err := s.view(func(tx *bbolt.Tx) (err error) {
		old = listSnapshots(tx, p.uid, kindBase)
		state, err = rebuild(tx, p.uid, floor, firstMark(tx, p.uid, floor))
		return err
	})
	if err != nil {
		return err
	}
	if len(old) > 0 && old[len(old)-1].offset >= floor {
		return nil
	}
	row, b, err := s.newSnapshot(state.contents(), state.marks, store.SnapshotRoll)
	if err != nil {
		return err
	}
	return s.writeBase(ctx, p, floor, row, b)
}

// writeBase writes a base: its chunks in steps, then its row.
func (s *Store) writeBase(ctx context.Context, p *partition, floor int64, row snapshotRow, b []byte) error {
	const step = sliceChunks * snapshotChunk
	for at := 0; ; at += step {
		last := at+step >= len(b)
		err := s.control(ctx, func() error {
			if p.dead.Load() {
				return unknownTopic(p.name.Topic)
			}
			return s.update(func(tx *bbolt.Tx) error {
				piece := b[at:min(at+step, len(b))]
				if err := putChunks(tx, p.uid, kindBase, floor, uint32(at/snapshotChunk), piece); err != nil || !last {
					return err
				}
				return replaceBase(tx, p.uid, floor, row)
			})
		})
		if err != nil || last {
			p.orphans.Store(true) // what it replaces, or what it began
			return err
		}
	}
}

// firstMark is the number of the first mark at or above an offset. Those at the floor
// itself do not belong into the base: a snapshot at the floor may be older than they
// are, and they are not deleted.
func firstMark(tx *bbolt.Tx, uid uint64, offset int64) uint64 {
	k, _ := tx.Bucket(bucketMarks).Cursor().Seek(offsetKey(uid, offset))
	if !hasUID(k, uid) {
		return math.MaxUint64
	}
	return markNumber(k)
}

// replaceBase makes a new base of chunks that have been written, and drops all snapshots below it: what would have to be
// replayed onto them is about to go.
func replaceBase(tx *bbolt.Tx, uid uint64, floor int64, row snapshotRow) error {
	for _, kind := range []byte{kindBase, kindListed} {
		for _, l := range listSnapshots(tx, uid, kind) {
			if l.offset >= floor {
				continue
			}
			if err := deleteSnapshot(tx, uid, kind, l.offset); err != nil {
				return err
			}
		}
	}
	return putRow(tx.Bucket(bucketSnapshots), snapshotKey(uid, kindBase, floor), row)
}

// dropOrphans deletes chunks that belong to no snapshot: what is left of large ones that
// have been deleted, or were never finished.
func (s *Store) dropOrphans(ctx context.Context, p *partition) error {
	if !p.orphans.Swap(false) {
		return nil
	}
	var orphans [][]byte
	err := s.view(func(tx *bbolt.Tx) error {
		rows, c := tx.Bucket(bucketSnapshots), tx.Bucket(bucketChunks).Cursor()
		for k, _ := c.Seek(uidKey(p.uid)); hasUID(k, p.uid); {
			key := bytes.Clone(k[:len(k)-4])
			if rows.Get(key) == nil {
				orphans = append(orphans, key)
			}
			k, _ = c.Seek(append(bytes.Clone(key), 0xff, 0xff, 0xff, 0xff))
			if bytes.Compare(k, key) <= 0 {
				break // of a damaged page, whose keys are out of order
			}
		}
		return nil
	})
	more := false
	for i := 0; i < len(orphans) && err == nil; {
		if more = s.roomEnough(); more {
			s.garbage.left.Store(true)
			break
		}
		if more, err = ask(ctx, s, func() (bool, error) { return s.dropOrphan(p, orphans[i]) }); !more {
			i++
		}
	}
	if err != nil || more {
		p.orphans.Store(true)
	}
	return err
}

// dropOrphan deletes some of the chunks with a key, on the committer, and reports whether
// there are more.
func (s *Store) dropOrphan(p *partition, key []byte) (more bool, err error) {
	if c := p.dedup.capture; c != nil && bytes.Equal(key, snapshotKey(p.uid, kindListed, c.offset)) {
		return false, nil // it is being written
	}
	err = s.update(func(tx *bbolt.Tx) error {
		if tx.Bucket(bucketSnapshots).Get(key) == nil {
			more, err = deleteChunks(tx, key)
		}
		return err
	})
	return more, err
}

// deleteBelow deletes a partition's keys below an offset, a slice per transaction, and
// reports whether none is left.
func (s *Store) deleteBelow(ctx context.Context, bucket []byte, uid uint64, offset int64) (done bool, err error) {
	for keys := sliceKeys; !done && err == nil; {
		if s.roomEnough() {
			s.garbage.left.Store(true)
			return false, nil
		}
		done, err = ask(ctx, s, func() (bool, error) { return s.deleteSome(bucket, uid, offset, keys) })
		// On a full disk a copy-on-write tree has only the pages of the last commit to
		// delete with. Few keys do with few, and give back more.
		if store.CodeOf(err) == store.CodeStorageFull && keys > 1 {
			keys, err = max(1, keys/8), nil
		}
	}
	return done, err
}

// deleteSome is one transaction of deleteBelow, on the committer.
func (s *Store) deleteSome(bucket []byte, uid uint64, offset int64, keys int) (done bool, err error) {
	more, size := false, int64(0)
	err = s.updateBeside(func(tx *bbolt.Tx) (err error) {
		more, size, err = deleteSlice(tx.Bucket(bucket), uid, offset, keys)
		return err
	})
	if err == nil && bytes.Equal(bucket, bucketBatches) {
		s.garbage.deleted(uid, size, !more)
	}
	return err == nil && !more, err
}

// deleteSlice deletes some of a partition's keys below an offset, at most so many, and
// reports whether there are more, and the bytes that went. Keys of snapshots, which have a
// kind before their offset, are only ever deleted all together, with an offset above them
// all.
func deleteSlice(b *bbolt.Bucket, uid uint64, offset int64, keys int) (more bool, size int64, err error) {
	var doomed [][]byte
	c := b.Cursor()
	for k, v := c.Seek(uidKey(uid)); hasUID(k, uid); k, v = c.Next() {
		if at := offsetOf(k); at >= offset {
			break
		}
		if len(doomed) == keys || size >= sliceBytes {
			more = true
			break
		}
		doomed = append(doomed, append([]byte(nil), k...))
		size += int64(len(v))
	}
	for _, k := range doomed {
		if err := b.Delete(k); err != nil {
			return false, 0, err
		}
	}
	return more, size, nil
}

// emptyTrash deletes everything that belonged to deleted topics.
func (s *Store) emptyTrash(ctx context.Context) error {
	var uids []uint64
	err := s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketTrash).ForEach(func(k, _ []byte) error {
			uids = append(uids, uidOf(k))
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, uid := range uids {
		for _, bucket := range [][]byte{bucketBatches, bucketHeaders, bucketMarks, bucketSegments, bucketSnapshots, bucketChunks} {
			if done, err := s.deleteBelow(ctx, bucket, uid, math.MaxInt64); err != nil || !done {
				return err
			}
		}
		err := s.control(ctx, func() error {
			return s.update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketTrash).Delete(uidKey(uid)) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}
