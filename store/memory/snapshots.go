package memory

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// snapshot is a copy of all states of a partition at an offset.
type snapshot struct {
	store.Snapshot
	states  map[int64]sequence.State
	dropped dropped
}

// snapshot copies the states of p as they are now.
func (s *Store) snapshot(t *topic, p *partition, reason store.SnapshotReason) store.Snapshot {
	s.expireIdle(p, t.Config)
	bytes := encode(p.producers)
	taken := &snapshot{
		Snapshot: store.Snapshot{
			Partition: p.name,
			Offset:    p.next,
			CreatedAt: fromMillis(s.clock),
			Reason:    reason,
			Producers: p.live(),
			Bytes:     int64(len(bytes)),
			CRC:       crc32.Checksum(bytes, crc32.MakeTable(crc32.Castagnoli)),
		},
		states:  maps.Clone(p.producers),
		dropped: p.dropped,
	}
	if last := p.newestSnapshot(); last != nil && last.Offset == p.next {
		p.snapshots = p.snapshots[:len(p.snapshots)-1]
	}
	p.snapshots = append(p.snapshots, taken)
	p.expiries = 0
	return taken.Snapshot
}

// encode gives the bytes that a real engine would have written for the states.
func encode(states map[int64]sequence.State) []byte {
	var out []byte
	for _, id := range slices.Sorted(maps.Keys(states)) {
		out = binary.AppendUvarint(out, uint64(id))
		state := states[id]
		out, _ = state.AppendBinary(out) // fails only for a state of nothing, and none is kept
	}
	return out
}

func (p *partition) newestSnapshot() *snapshot {
	if len(p.snapshots) == 0 {
		return nil
	}
	return p.snapshots[len(p.snapshots)-1]
}

// changedSinceSnapshot reports whether the newest snapshot no longer says it all.
func (p *partition) changedSinceSnapshot() bool {
	last := p.newestSnapshot()
	if last == nil {
		return p.next > 0
	}
	return last.Offset != p.next || p.expiries > 0
}

// picked lists the partitions that f picks, by topic name and number, as pairs.
func (s *Store) picked(f store.SnapshotFilter) ([]*topic, []*partition, error) {
	if f.Topic == "" && f.Partition != nil {
		return nil, nil, &store.Error{Code: store.CodeInvalidArgument, Pointer: "/partition", Detail: "a partition needs a topic"}
	}
	if f.Partition != nil {
		t, p, err := s.find(store.Partition{Topic: f.Topic, Number: *f.Partition})
		return []*topic{t}, []*partition{p}, err
	}
	if f.Topic != "" && s.topics[f.Topic] == nil {
		return nil, nil, unknownTopic(f.Topic)
	}
	var topics []*topic
	var partitions []*partition
	for _, t := range s.byName() {
		for _, p := range t.partitions {
			if f.Topic == "" || f.Topic == t.Name {
				topics = append(topics, t)
				partitions = append(partitions, p)
			}
		}
	}
	return topics, partitions, nil
}

// TakeSnapshots takes one of each partition that f picks.
func (s *Store) TakeSnapshots(ctx context.Context, f store.SnapshotFilter) ([]store.Snapshot, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	topics, partitions, err := s.picked(f)
	if err != nil {
		return nil, err
	}
	var out []store.Snapshot
	for i, p := range partitions {
		out = append(out, s.snapshot(topics[i], p, store.SnapshotRequest))
	}
	return out, nil
}

// Snapshots lists those of the partitions that f picks.
func (s *Store) Snapshots(ctx context.Context, f store.SnapshotFilter) ([]store.Snapshot, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	_, partitions, err := s.picked(f)
	if err != nil {
		return nil, err
	}
	var out []store.Snapshot
	for _, p := range partitions {
		for _, sn := range p.snapshots {
			out = append(out, sn.Snapshot)
		}
	}
	return out, nil
}

// at finds the snapshot at an offset, and its index.
func (p *partition) at(offset int64) (*snapshot, int, error) {
	for i, sn := range p.snapshots {
		if sn.Offset == offset {
			return sn, i, nil
		}
	}
	return nil, 0, store.Errorf(store.CodeUnknownSnapshot, "there is no snapshot at offset %d", offset)
}

// Snapshot gives one with the live producers in it.
func (s *Store) Snapshot(ctx context.Context, name store.Partition, offset int64) (store.Snapshot, []store.ProducerState, error) {
	if err := s.enter(ctx); err != nil {
		return store.Snapshot{}, nil, err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return store.Snapshot{}, nil, err
	}
	sn, _, err := p.at(offset)
	if err != nil {
		return store.Snapshot{}, nil, err
	}
	return sn.Snapshot, p.states(sn.states, t.Config), nil
}

// DeleteSnapshot removes one.
func (s *Store) DeleteSnapshot(ctx context.Context, name store.Partition, offset int64) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	_, p, err := s.find(name)
	if err != nil {
		return err
	}
	_, i, err := p.at(offset)
	if err != nil {
		return err
	}
	p.snapshots = slices.Delete(p.snapshots, i, i+1)
	return nil
}

// VerifySnapshot compares a snapshot with what the log gives.
func (s *Store) VerifySnapshot(ctx context.Context, name store.Partition, offset int64) (store.SnapshotDiff, error) {
	if err := s.enter(ctx); err != nil {
		return store.SnapshotDiff{}, err
	}
	defer s.leave()
	_, p, err := s.find(name)
	if err != nil {
		return store.SnapshotDiff{}, err
	}
	sn, _, err := p.at(offset)
	if err != nil {
		return store.SnapshotDiff{}, err
	}
	return store.SnapshotDiff{Differences: differences(sn, p.rebuild(offset))}, nil
}

// rebuild computes the states at an offset from the batches below it.
func (p *partition) rebuild(offset int64) map[int64]sequence.State {
	states := maps.Clone(p.base)
	for _, seg := range p.segments {
		for _, e := range seg.entries {
			if e.BaseOffset < offset {
				replay(states, []entry{e})
			}
		}
	}
	return states
}

// differences compares a snapshot's states with rebuilt ones. An expiry leaves no
// batch behind: a tombstone matches the state that it was made of, and one that was
// dropped any state of an epoch that it stands for.
func differences(sn *snapshot, rebuilt map[int64]sequence.State) []string {
	taken := sn.states
	all := maps.Clone(taken)
	maps.Copy(all, rebuilt)
	var out []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		a, b := taken[id], rebuilt[id]
		if at, expired := a.Expired(); expired {
			b = b.Expire(at)
		}
		if !a.Exists() && id < sn.dropped.below && b.Epoch() <= sn.dropped.epoch {
			continue
		}
		if a != b {
			out = append(out, fmt.Sprintf("producer %d: epoch %d, next sequence %d in the snapshot, epoch %d, next sequence %d by the log",
				id, a.Epoch(), a.NextSeq(), b.Epoch(), b.NextSeq()))
		}
	}
	return out
}
