package bolt

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

// pick gives the partitions that a filter means, by topic and number.
func (s *Store) pick(f store.SnapshotFilter) ([]*partition, error) {
	if f.Topic == "" {
		if f.Partition != nil {
			return nil, &store.Error{Code: store.CodeInvalidArgument, Pointer: "/partition", Detail: "a partition needs a topic"}
		}
		return s.allPartitions(), s.usable()
	}
	if f.Partition != nil {
		p, err := s.partition(store.Partition{Topic: f.Topic, Number: *f.Partition})
		return []*partition{p}, err
	}
	t, err := s.topic(f.Topic)
	if err != nil {
		return nil, err
	}
	return t.info.Load().partitions, nil
}

// allPartitions gives every partition, by topic and number.
func (s *Store) allPartitions() []*partition {
	var out []*partition
	for _, t := range s.sortedTopics() {
		if !t.deleting.Load() {
			out = append(out, t.info.Load().partitions...)
		}
	}
	return out
}

// TakeSnapshots takes snapshots now; see [store.Snapshots].
func (s *Store) TakeSnapshots(ctx context.Context, f store.SnapshotFilter) ([]store.Snapshot, error) {
	parts, err := s.pick(f)
	if err != nil {
		return nil, err
	}
	var out []store.Snapshot
	for _, p := range parts {
		if p.outage != nil {
			if f.Partition != nil {
				return nil, p.outage.err
			}
			continue
		}
		snap, err := s.snapshotNow(ctx, p, store.SnapshotRequest)
		if f.Topic == "" && store.CodeOf(err) == store.CodeUnknownTopic {
			continue // nobody asked for this topic, and it has just been deleted
		}
		if err != nil {
			return nil, err
		}
		out = append(out, snap)
	}
	return out, nil
}

// snapshotNow takes a snapshot of a partition and waits for it.
func (s *Store) snapshotNow(ctx context.Context, p *partition, reason store.SnapshotReason) (store.Snapshot, error) {
	type begun struct {
		snap  store.Snapshot
		c     *capture // if it is taken in steps
		other bool     // c was in progress before, so it may be of an earlier state
	}
	for {
		b, err := ask(ctx, s, func() (b begun, err error) {
			switch {
			case p.dead.Load():
				err = unknownTopic(p.name.Topic)
			case p.dedup.capture != nil:
				b.c, b.other = p.dedup.capture, true
			case p.large():
				b.c, err = s.capture(p, reason)
			default:
				b.snap, err = s.takeSnapshot(p, reason)
			}
			return b, err
		})
		if err != nil || b.c == nil {
			return b.snap, err
		}
		if snap, err := b.c.wait(ctx); !b.other || ctx.Err() != nil {
			return snap, err
		}
	}
}

// Snapshots lists snapshots; see [store.Snapshots].
func (s *Store) Snapshots(_ context.Context, f store.SnapshotFilter) ([]store.Snapshot, error) {
	parts, err := s.pick(f)
	if err != nil {
		return nil, err
	}
	var out []store.Snapshot
	err = s.view(func(tx *bbolt.Tx) error {
		for _, p := range parts {
			for _, l := range listSnapshots(tx, p.uid, kindListed) {
				if l.err == nil {
					out = append(out, l.public(p.name, l.offset))
				}
			}
		}
		return nil
	})
	return out, err
}

func unknownSnapshot(p store.Partition, offset int64) error {
	return store.Errorf(store.CodeUnknownSnapshot, "topic %q partition %d has no snapshot at offset %d", p.Topic, p.Number, offset)
}

// findSnapshot reads a listed snapshot. A damaged one is as good as none.
func findSnapshot(tx *bbolt.Tx, p *partition, offset int64) (snapshotRow, known, error) {
	for _, l := range listSnapshots(tx, p.uid, kindListed) {
		if l.offset != offset {
			continue
		}
		if l.err != nil {
			return snapshotRow{}, known{}, l.err
		}
		found, err := readSnapshot(tx, p.uid, kindListed, offset, l.snapshotRow)
		return l.snapshotRow, found, err
	}
	return snapshotRow{}, known{}, unknownSnapshot(p.name, offset)
}

// Snapshot shows one snapshot; see [store.Snapshots].
func (s *Store) Snapshot(_ context.Context, p store.Partition, offset int64) (store.Snapshot, []store.ProducerState, error) {
	pt, err := s.partition(p)
	if err != nil {
		return store.Snapshot{}, nil, err
	}
	var row snapshotRow
	var found known
	err = s.view(func(tx *bbolt.Tx) error {
		row, found, err = findSnapshot(tx, pt, offset)
		return err
	})
	if err != nil {
		return store.Snapshot{}, nil, snapshotError(p, offset, err)
	}
	var out []store.ProducerState
	for _, pid := range slices.Sorted(maps.Keys(found.states)) {
		if st := &found.states[pid].state; st.Live() {
			out = append(out, pt.producerState(pid, st, store.Counters{}))
		}
	}
	return row.public(p, offset), out, nil
}

func snapshotError(p store.Partition, offset int64, err error) error {
	if store.CodeOf(err) != store.CodeInternal {
		return err
	}
	return &store.Error{
		Code:   store.CodeRecordsDamaged,
		Detail: fmt.Sprintf("topic %q partition %d: snapshot at offset %d: %v", p.Topic, p.Number, offset, err),
	}
}

// DeleteSnapshot removes a snapshot; see [store.Snapshots].
func (s *Store) DeleteSnapshot(ctx context.Context, p store.Partition, offset int64) error {
	pt, err := s.inService(p)
	if err != nil {
		return err
	}
	return s.control(ctx, func() error {
		err := s.view(func(tx *bbolt.Tx) error {
			if tx.Bucket(bucketSnapshots).Get(snapshotKey(pt.uid, kindListed, offset)) == nil {
				return unknownSnapshot(p, offset)
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = s.update(func(tx *bbolt.Tx) error { return deleteSnapshot(tx, pt.uid, kindListed, offset) })
		pt.orphans.Store(true)
		if err == nil && pt.snapAt == offset {
			pt.snapAt, pt.snapMarks = -1, 0 // so that a clean shutdown takes another
		}
		return err
	})
}

// VerifySnapshot compares a snapshot with the log; see [store.Snapshots].
func (s *Store) VerifySnapshot(_ context.Context, p store.Partition, offset int64) (store.SnapshotDiff, error) {
	pt, err := s.partition(p)
	if err != nil {
		return store.SnapshotDiff{}, err
	}
	diff := store.SnapshotDiff{Differences: []string{}}
	err = s.view(func(tx *bbolt.Tx) error {
		row, found, err := findSnapshot(tx, pt, offset)
		if err != nil {
			return err
		}
		rebuilt, err := rebuild(tx, pt.uid, offset, row.Marks)
		if err != nil {
			return err
		}
		diff.Differences = compareStates(&found, &rebuilt.known)
		return nil
	})
	if err != nil {
		return store.SnapshotDiff{}, snapshotError(p, offset, err)
	}
	return diff, nil
}

// rebuild computes the state below an offset from the log alone: from the base, which
// is what the log began with when it was last cut, or from nothing.
func rebuild(tx *bbolt.Tx, uid uint64, offset int64, marks uint64) (loaded, error) {
	r := replayer{st: loaded{known: known{states: states{}}}, strict: true}
	for _, l := range listSnapshots(tx, uid, kindBase) {
		if l.err != nil || l.offset > offset {
			continue
		}
		found, err := readSnapshot(tx, uid, kindBase, l.offset, l.snapshotRow)
		if err != nil {
			return loaded{}, fmt.Errorf("state at the start of the log: %w", err)
		}
		r.st.offset, r.st.marks, r.st.known = l.offset, l.Marks, found
	}
	err := r.run(tx, uid, r.st.offset, offset, marks, nil)
	if err == nil && r.st.offset != offset {
		err = fmt.Errorf("the batches end below offset %d, not below %d", r.st.offset, offset)
	}
	return r.st, err
}

// compareStates says how a snapshot differs from the state that the log gives.
func compareStates(inSnapshot, inLog *known) []string {
	diffs := []string{}
	if a, b := inSnapshot.cutoff, inLog.cutoff; a != b {
		diffs = append(diffs, fmt.Sprintf("producers below %d are cut off up to epoch %d in the snapshot, below %d up to epoch %d in the log",
			a.below, a.epoch, b.below, b.epoch))
	}
	snapshot, log := inSnapshot.states, inLog.states
	for _, pid := range slices.Sorted(maps.Keys(snapshot)) {
		switch was, ok := log[pid]; {
		case !ok:
			diffs = append(diffs, fmt.Sprintf("producer %d is in the snapshot and not in the log", pid))
		case was.state != snapshot[pid].state:
			a, b := &snapshot[pid].state, &was.state
			diffs = append(diffs, fmt.Sprintf("producer %d has epoch %d and next sequence %d in the snapshot, epoch %d and next sequence %d in the log, or its remembered batches differ",
				pid, a.Epoch(), a.NextSeq(), b.Epoch(), b.NextSeq()))
		}
	}
	for _, pid := range slices.SortedFunc(maps.Keys(log), cmp.Compare[int64]) {
		if _, ok := snapshot[pid]; !ok {
			diffs = append(diffs, fmt.Sprintf("producer %d is in the log and not in the snapshot", pid))
		}
	}
	return diffs
}
