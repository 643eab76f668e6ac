package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"log/slog"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// The first byte of a snapshot is a version. After it come the number of producers as a
// varint and for each, in the order of their ids, the id as a varint and the encoded
// state; in one of snapshotCutoff a cutoff comes before them.
const (
	snapshotVersion = 1
	snapshotCutoff  = 2
)

var errSnapshot = errors.New("damaged snapshot")

// contents is what a snapshot of some producer states holds.
type contents struct {
	count, live int
	cutoff      cutoff
	all         iter.Seq2[int64, *sequence.State] // in the order of ids
}

// appendSnapshotHead appends what comes before the producers of a snapshot.
func appendSnapshotHead(b []byte, count int, c cutoff) []byte {
	if c.below > 0 {
		b = c.append(append(b, snapshotCutoff))
	} else {
		b = append(b, snapshotVersion)
	}
	return binary.AppendUvarint(b, uint64(count))
}

func encodeSnapshot(c contents) ([]byte, error) {
	b := appendSnapshotHead(make([]byte, 0, 48+64*c.count), c.count, c.cutoff)
	for pid, st := range c.all {
		b = binary.AppendUvarint(b, uint64(pid))
		var err error
		if b, err = st.AppendBinary(b); err != nil {
			return nil, fmt.Errorf("producer %d: %w", pid, err)
		}
	}
	return b, nil
}

func decodeSnapshot(b []byte) (known, error) {
	cut, b, ok := decodeSnapshotHead(b)
	if !ok {
		return known{}, errSnapshot
	}
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return known{}, errSnapshot
	}
	b = b[n:]
	out := make(states, count)
	for range count {
		pid, n := binary.Uvarint(b)
		if n <= 0 || pid > sequence.Max {
			return known{}, errSnapshot
		}
		pr := &producer{id: int64(pid)}
		var err error
		if pr.state, b, err = sequence.DecodeState(b[n:]); err != nil {
			return known{}, fmt.Errorf("%w: producer %d: %w", errSnapshot, pid, err)
		}
		out[pr.id] = pr
	}
	if len(b) != 0 || uint64(len(out)) != count {
		return known{}, errSnapshot
	}
	return known{states: out, cutoff: cut}, nil
}

// decodeSnapshotHead reads version and cutoff and returns the rest.
func decodeSnapshotHead(b []byte) (c cutoff, rest []byte, ok bool) {
	switch {
	case len(b) == 0:
		return c, nil, false
	case b[0] == snapshotVersion:
		return c, b[1:], true
	case b[0] == snapshotCutoff:
		return decodeCutoff(b[1:])
	}
	return c, nil, false
}

// states are producer states by id, tombstones among them, as they are read and replayed.
type states map[int64]*producer

// of gives the state of a producer, to be changed.
func (m states) of(pid int64) *sequence.State {
	pr := m[pid]
	if pr == nil {
		pr = &producer{id: pid}
		m[pid] = pr
	}
	return &pr.state
}

func (k *known) contents() contents {
	m := k.states
	c := contents{count: len(m), cutoff: k.cutoff}
	for _, pr := range m {
		if pr.state.Live() {
			c.live++
		}
	}
	c.all = func(yield func(int64, *sequence.State) bool) {
		for _, pid := range slices.Sorted(maps.Keys(m)) {
			if !yield(pid, &m[pid].state) {
				return
			}
		}
	}
	return c
}

// newSnapshot encodes states into a row and its bytes.
func (s *Store) newSnapshot(c contents, marks uint64, reason store.SnapshotReason) (snapshotRow, []byte, error) {
	b, err := encodeSnapshot(c)
	if err != nil {
		return snapshotRow{}, nil, err
	}
	return snapshotRow{
		CreatedAt: s.clock.millis(), Reason: reason, Producers: c.live,
		Bytes: int64(len(b)), CRC: crc32.Checksum(b, castagnoli),
		Chunks: uint32((len(b) + snapshotChunk - 1) / snapshotChunk), Marks: marks,
	}, b, nil
}

// putChunks writes bytes of a snapshot from chunk number first on.
func putChunks(tx *bbolt.Tx, uid uint64, kind byte, offset int64, first uint32, b []byte) error {
	chunks := tx.Bucket(bucketChunks)
	for i := first; len(b) > 0; i++ {
		n := min(snapshotChunk, len(b))
		if err := chunks.Put(chunkKey(uid, kind, offset, i), b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// deleteSnapshot deletes a snapshot, if there is one. Of a large one it leaves chunks,
// which without the row are nothing but bytes, for [Store.dropOrphans].
func deleteSnapshot(tx *bbolt.Tx, uid uint64, kind byte, offset int64) error {
	key := snapshotKey(uid, kind, offset)
	if err := tx.Bucket(bucketSnapshots).Delete(key); err != nil {
		return err
	}
	_, err := deleteChunks(tx, key)
	return err
}

// deleteChunks deletes some of the chunks of the snapshot with that key and reports
// whether there are more.
func deleteChunks(tx *bbolt.Tx, key []byte) (more bool, err error) {
	var doomed [][]byte
	c := tx.Bucket(bucketChunks).Cursor()
	for k, _ := c.Seek(key); len(k) == len(key)+4 && bytes.HasPrefix(k, key); k, _ = c.Next() {
		if more = len(doomed) == sliceChunks; more {
			break
		}
		doomed = append(doomed, slices.Clone(k))
	}
	for _, k := range doomed {
		if err := tx.Bucket(bucketChunks).Delete(k); err != nil {
			return false, err
		}
	}
	return more, nil
}

// readSnapshot reads a snapshot's states and checks it.
func readSnapshot(tx *bbolt.Tx, uid uint64, kind byte, offset int64, row snapshotRow) (known, error) {
	// The length is believed as far as there can be chunks for it.
	b := make([]byte, 0, max(0, min(row.Bytes, int64(row.Chunks)*snapshotChunk)))
	chunks := tx.Bucket(bucketChunks)
	for i := range row.Chunks {
		piece := chunks.Get(chunkKey(uid, kind, offset, i))
		if piece == nil {
			return known{}, errSnapshot
		}
		b = append(b, piece...)
	}
	if int64(len(b)) != row.Bytes || crc32.Checksum(b, castagnoli) != row.CRC {
		return known{}, errSnapshot
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
	for k, v := c.Seek(prefix); len(k) == snapshotKeyLen && string(k[:9]) == string(prefix); k, v = c.Next() {
		l := listedSnapshot{offset: int64(binary.BigEndian.Uint64(k[9:]))}
		l.err = readRow(k, v, &l.snapshotRow)
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
			found, err := known{}, l.err
			if err == nil {
				found, err = readSnapshot(tx, p.uid, kind, l.offset, l.snapshotRow)
			}
			if err == nil {
				out := loaded{offset: l.offset, marks: l.Marks, known: found, listedAt: -1}
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
	return loaded{offset: floor, known: known{states: states{}}, listedAt: -1}, damaged
}

// takeSnapshot writes a snapshot of a partition as it is, in one transaction. It must
// run on the committer, or where there is none.
func (s *Store) takeSnapshot(p *partition, reason store.SnapshotReason) (store.Snapshot, error) {
	row, b, err := s.newSnapshot(p.dedup.contents(), p.marks, reason)
	if err != nil {
		return store.Snapshot{}, err
	}
	offset := p.next.Load()
	err = s.update(func(tx *bbolt.Tx) error { return putListed(tx, p.uid, offset, row, b) })
	if err != nil {
		return store.Snapshot{}, err
	}
	p.sinceSnap = 0
	p.hasSnapshot(offset, &row)
	return row.public(p.name, offset), nil
}

// hasSnapshot notes the newest snapshot of a partition.
func (p *partition) hasSnapshot(offset int64, row *snapshotRow) {
	p.snapAt, p.snapMarks, p.snapBytes = offset, row.Marks, row.Bytes
	p.orphans.Store(true) // of those that it has pushed out
}

// putListed writes a listed snapshot.
func putListed(tx *bbolt.Tx, uid uint64, offset int64, row snapshotRow, b []byte) error {
	if err := deleteSnapshot(tx, uid, kindListed, offset); err != nil {
		return err
	}
	if err := putChunks(tx, uid, kindListed, offset, 0, b); err != nil {
		return err
	}
	return listSnapshot(tx, uid, offset, row)
}

// listSnapshot makes a listed snapshot of chunks that have been written, and drops the
// oldest beyond those that are kept.
func listSnapshot(tx *bbolt.Tx, uid uint64, offset int64, row snapshotRow) error {
	if err := putRow(tx.Bucket(bucketSnapshots), snapshotKey(uid, kindListed, offset), row); err != nil {
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
