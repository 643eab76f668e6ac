package bolt

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// snapshotVersion is the first byte of a snapshot. After it come the number of
// producers as a varint and for each, in the order of their ids, the id as a varint and
// the encoded state.
const snapshotVersion = 1

var errSnapshot = errors.New("damaged snapshot")

func encodeSnapshot(states map[int64]sequence.State) ([]byte, error) {
	b := append(make([]byte, 0, 16+64*len(states)), snapshotVersion)
	b = binary.AppendUvarint(b, uint64(len(states)))
	for _, pid := range slices.Sorted(maps.Keys(states)) {
		st := states[pid]
		b = binary.AppendUvarint(b, uint64(pid))
		var err error
		if b, err = st.AppendBinary(b); err != nil {
			return nil, fmt.Errorf("producer %d: %w", pid, err)
		}
	}
	return b, nil
}

func decodeSnapshot(b []byte) (map[int64]sequence.State, error) {
	if len(b) == 0 || b[0] != snapshotVersion {
		return nil, errSnapshot
	}
	count, n := binary.Uvarint(b[1:])
	if n <= 0 || count > uint64(len(b)) {
		return nil, errSnapshot
	}
	b = b[1+n:]
	out := make(map[int64]sequence.State, count)
	for range count {
		pid, n := binary.Uvarint(b)
		if n <= 0 || pid > sequence.Max {
			return nil, errSnapshot
		}
		st, rest, err := sequence.DecodeState(b[n:])
		if err != nil {
			return nil, fmt.Errorf("%w: producer %d: %w", errSnapshot, pid, err)
		}
		out[int64(pid)] = st
		b = rest
	}
	if len(b) != 0 || uint64(len(out)) != count {
		return nil, errSnapshot
	}
	return out, nil
}

// states copies the producer states of a partition. Only the committer, or Open and
// Close, which run without it, may call it.
func (p *partition) states() map[int64]sequence.State {
	out := make(map[int64]sequence.State, len(p.producers))
	for pid, pr := range p.producers {
		out[pid] = pr.state
	}
	return out
}

func liveIn(states map[int64]sequence.State) int {
	n := 0
	for _, st := range states {
		if st.Live() {
			n++
		}
	}
	return n
}

// newSnapshot encodes states into a row and its bytes.
func (s *Store) newSnapshot(states map[int64]sequence.State, marks uint64, reason store.SnapshotReason) (snapshotRow, []byte, error) {
	b, err := encodeSnapshot(states)
	if err != nil {
		return snapshotRow{}, nil, err
	}
	return snapshotRow{
		CreatedAt: s.clock.millis(), Reason: reason, Producers: liveIn(states),
		Bytes: int64(len(b)), CRC: crc32.Checksum(b, castagnoli),
		Chunks: uint32((len(b) + snapshotChunk - 1) / snapshotChunk), Marks: marks,
	}, b, nil
}

// putSnapshot writes a snapshot, in place of one at the same offset.
func putSnapshot(tx *bbolt.Tx, uid uint64, kind byte, offset int64, row snapshotRow, b []byte) error {
	if err := deleteSnapshot(tx, uid, kind, offset); err != nil {
		return err
	}
	chunks := tx.Bucket(bucketChunks)
	for i := range row.Chunks {
		piece := b[i*snapshotChunk : min(int(i+1)*snapshotChunk, len(b))]
		if err := chunks.Put(chunkKey(uid, kind, offset, i), piece); err != nil {
			return err
		}
	}
	return putJSON(tx.Bucket(bucketSnapshots), snapshotKey(uid, kind, offset), row)
}

func deleteSnapshot(tx *bbolt.Tx, uid uint64, kind byte, offset int64) error {
	key := snapshotKey(uid, kind, offset)
	if err := tx.Bucket(bucketSnapshots).Delete(key); err != nil {
		return err
	}
	var doomed [][]byte
	c := tx.Bucket(bucketChunks).Cursor()
	for k, _ := c.Seek(key); len(k) == len(key)+4 && string(k[:len(key)]) == string(key); k, _ = c.Next() {
		doomed = append(doomed, slices.Clone(k))
	}
	for _, k := range doomed {
		if err := tx.Bucket(bucketChunks).Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// readSnapshot reads a snapshot's states and checks it.
func readSnapshot(tx *bbolt.Tx, uid uint64, kind byte, offset int64, row snapshotRow) (map[int64]sequence.State, error) {
	var b []byte
	chunks := tx.Bucket(bucketChunks)
	for i := range row.Chunks {
		piece := chunks.Get(chunkKey(uid, kind, offset, i))
		if piece == nil {
			return nil, errSnapshot
		}
		b = append(b, piece...)
	}
	if int64(len(b)) != row.Bytes || crc32.Checksum(b, castagnoli) != row.CRC {
		return nil, errSnapshot
	}
	return decodeSnapshot(b)
}

// listedSnapshot is the row of a snapshot with the offset of its key.
type listedSnapshot struct {
	offset int64
	snapshotRow
	err error // the row cannot be read
}

// listSnapshots gives the rows of one kind, by offset.
func listSnapshots(tx *bbolt.Tx, uid uint64, kind byte) []listedSnapshot {
	var out []listedSnapshot
	prefix := append(uidKey(uid), kind)
	c := tx.Bucket(bucketSnapshots).Cursor()
	for k, v := c.Seek(prefix); len(k) == 17 && string(k[:9]) == string(prefix); k, v = c.Next() {
		l := listedSnapshot{offset: int64(binary.BigEndian.Uint64(k[9:]))}
		l.err = json.Unmarshal(v, &l.snapshotRow)
		out = append(out, l)
	}
	return out
}

// loadNewest loads the newest intact snapshot at or below upto: a listed one, else the
// base, else nothing at all. It counts those that it had to pass over.
func (s *Store) loadNewest(tx *bbolt.Tx, p *partition, upto int64) (loaded, int) {
	damaged := 0
	floor := int64(0) // the headers below it are gone
	for _, l := range listSnapshots(tx, p.uid, kindBase) {
		floor = l.offset
	}
	for _, kind := range []byte{kindListed, kindBase} {
		list := listSnapshots(tx, p.uid, kind)
		for _, l := range slices.Backward(list) {
			if l.offset > upto || l.offset < floor {
				continue
			}
			states, err := map[int64]sequence.State(nil), l.err
			if err == nil {
				states, err = readSnapshot(tx, p.uid, kind, l.offset, l.snapshotRow)
			}
			if err == nil {
				out := loaded{offset: l.offset, marks: l.Marks, states: states, listedAt: -1}
				if kind == kindListed {
					out.listedAt = l.offset
				}
				return out, damaged
			}
			damaged++
			s.log.Warn("a snapshot is damaged, an older one or the log takes its place",
				p.logTopic(), p.logNumber(), slog.Int64("offset", l.offset), slog.Any("error", err))
		}
	}
	if floor > 0 {
		s.log.Error("no snapshot is intact and the log no longer begins at 0: producers that were quiet since are forgotten",
			p.logTopic(), p.logNumber(), slog.Int64("offset", floor))
	}
	return loaded{offset: floor, states: map[int64]sequence.State{}, listedAt: -1}, damaged
}

// takeSnapshot writes a snapshot of a partition as it is. It must run on the committer,
// or where there is none.
func (s *Store) takeSnapshot(p *partition, reason store.SnapshotReason) (store.Snapshot, error) {
	row, b, err := s.newSnapshot(p.states(), p.marks, reason)
	if err != nil {
		return store.Snapshot{}, err
	}
	offset := p.next.Load()
	err = s.update(func(tx *bbolt.Tx) error { return putListed(tx, p.uid, offset, row, b) })
	if err != nil {
		return store.Snapshot{}, err
	}
	p.snapAt, p.snapMarks = offset, row.Marks
	return row.public(p.name, offset), nil
}

// putListed writes a listed snapshot and drops the oldest beyond those that are kept.
func putListed(tx *bbolt.Tx, uid uint64, offset int64, row snapshotRow, b []byte) error {
	if err := putSnapshot(tx, uid, kindListed, offset, row, b); err != nil {
		return err
	}
	list := listSnapshots(tx, uid, kindListed)
	for _, l := range list[:max(0, len(list)-keptSnapshots)] {
		if err := deleteSnapshot(tx, uid, kindListed, l.offset); err != nil {
			return err
		}
	}
	return nil
}

func (r snapshotRow) public(p store.Partition, offset int64) store.Snapshot {
	return store.Snapshot{
		Partition: p, Offset: offset, CreatedAt: millis(r.CreatedAt), Reason: r.Reason,
		Producers: r.Producers, Bytes: r.Bytes, CRC: r.CRC,
	}
}
