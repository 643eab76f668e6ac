package bolt

import (
	"errors"
	"fmt"
	"log/slog"
	"math"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

// recovery tells what a start had to read.
type recovery struct {
	partitions int
	headers    int64 // batch headers replayed
	bytes      int64 // their bytes
	damaged    int   // snapshots that had to be passed over
	replays    []*partition
}

// recover loads topics and ids, and each partition's state. What is damaged of one
// partition takes that one out of service and not the store.
func (s *Store) recover() (*recovery, error) {
	rec := &recovery{}
	if err := errors.Join(s.view(s.recoverTopics), s.view(s.recoverTrash)); err != nil {
		return nil, err
	}
	if err := s.view(s.recoverTail); err != nil {
		s.loseTail(err)
	}
	for _, p := range s.allPartitions() {
		err := s.tail.damage
		if err == nil {
			err = s.view(func(tx *bbolt.Tx) error { return s.recoverPartition(tx, p, rec) })
		}
		if err != nil {
			s.takeOutOfService(p, err)
		}
	}
	s.measure()
	s.requeue(s.serving(), false)
	s.watchCrowds(s.serving())
	for _, p := range rec.replays {
		// A start that had to replay saves the next one from it.
		if err := s.snapshotAtStart(p); err != nil {
			s.log.Warn("no snapshot could be taken at start", p.logTopic(), p.logNumber(), slog.Any("error", err))
		}
	}
	return rec, nil
}

// recoverTopics loads ids and topics.
func (s *Store) recoverTopics(tx *bbolt.Tx) error {
	s.stats.storeBytes.Store(tx.Size())
	s.recoverPIDs(tx)
	uids := map[uint64]bool{}
	err := tx.Bucket(bucketTopics).ForEach(func(name, v []byte) error {
		var row topicRow
		if err := readRow(name, v, &row); err != nil {
			s.loseTopic(string(name), err)
			return nil
		}
		for _, uid := range row.UIDs {
			uids[uid] = true
		}
		s.addTopic(string(name), row)
		return nil
	})
	if err != nil || len(s.damaged) > 0 {
		return err
	}
	return tx.Bucket(bucketParts).ForEach(func(k, _ []byte) error {
		if len(k) != 8 || !uids[uidOf(k)] {
			s.loseTopic("", errors.New("a partition is there whose topic is not"))
		}
		return nil
	})
}

func (s *Store) snapshotAtStart(p *partition) error {
	if p.large() {
		_, err := s.capture(p, store.SnapshotStartup)
		return err
	}
	_, err := s.takeSnapshot(p, store.SnapshotStartup)
	return err
}

// measure notes how large the store is and how much of it is free.
func (s *Store) measure() {
	st := s.db.Stats()
	s.stats.freeBytes.Store(int64(st.FreePageN+st.PendingPageN) * int64(s.db.Info().PageSize))
}

// addTopic puts a topic that is on disk into memory.
func (s *Store) addTopic(name string, row topicRow) *topic {
	t := &topic{name: name, id: row.ID}
	s.setTopic(t, row, row.CreatedAt)
	s.topics[name] = t
	return t
}

// setTopic gives t the row and makes the partitions that are new in it, as of now (ms).
func (s *Store) setTopic(t *topic, row topicRow, now int64) {
	info := &topicInfo{row: row, config: store.Config(row.Config)}
	if old := t.info.Load(); old != nil {
		info.partitions = append(info.partitions, old.partitions...)
	}
	for n := len(info.partitions); n < len(row.UIDs); n++ {
		p := newPartition(t, n, row.UIDs[n], &s.stats.producers)
		p.segments = []segment{{segmentRow: segmentRow{CreatedAt: now}}}
		info.partitions = append(info.partitions, p)
	}
	t.info.Store(info)
}

// recoverPartition rebuilds a partition: bounds and segments from their rows, producer
// state from the newest intact snapshot and the headers after it.
func (s *Store) recoverPartition(tx *bbolt.Tx, p *partition, rec *recovery) error {
	rec.partitions++
	var row partitionRow
	v := tx.Bucket(bucketParts).Get(uidKey(p.uid))
	if v == nil {
		return errors.New("its row is missing")
	}
	if err := readRow(uidKey(p.uid), v, &row); err != nil {
		return err
	}
	segments, err := readSegments(tx, p.uid)
	if err == nil {
		err = checkSegments(segments, row.Earliest)
	}
	if err == nil {
		err = checkEnd(tx, p.uid, segments[0].base)
	}
	if err != nil {
		return err
	}
	p.earliest.Store(row.Earliest)
	p.segments = segments
	if k, _ := tx.Bucket(bucketBatches).Cursor().Seek(uidKey(p.uid)); hasUID(k, p.uid) && offsetOf(k) < segments[0].base {
		s.garbage.add(p.uid, row.Garbage)
	}
	from, damaged := s.loadNewest(tx, p, logEnd(tx, p))
	rec.damaged += damaged
	p.snapAt, p.snapMarks = from.listedAt, from.marks
	active := p.active()
	active.Next = active.base
	rp := replayer{st: from, strict: true, tail: p.tail}
	err = rp.run(tx, p.uid, min(from.offset, active.base), math.MaxInt64, math.MaxUint64, func(base int64, h *header) {
		if base < active.base {
			return
		}
		active.Bytes += h.bytes
		active.Batches++
		active.Next = h.lastOffset(base) + 1
		active.LastAt = h.appendedAt
	})
	if err == nil {
		err = checkReplay(tx, p, &rp)
	}
	if err != nil {
		return err
	}
	rec.headers += rp.headers
	rec.bytes += rp.bytes
	if rp.headers > 0 && (from.offset < active.Next || from.marks < rp.st.marks) {
		rec.replays = append(rec.replays, p)
	}
	p.marks, p.lastAt = rp.st.marks, max(rp.st.lastAt, p.lastSegmentAt())
	s.clock.floor(rp.st.cutoff.at)
	for _, pr := range rp.st.states {
		// Of a trimmed log the states may know the latest time.
		at, _ := pr.state.Expired()
		s.clock.floor(max(at, pr.state.LastTimestamp()))
	}
	p.dedup.fill(rp.st.known)
	p.orphans.Store(true) // a crash may have left some
	p.next.Store(active.Next)
	s.clock.floor(p.lastAt)
	return nil
}

// checkSegments checks that segments follow each other and only the last one is open.
func checkSegments(segments []segment, earliest int64) error {
	for i := range segments {
		seg, last := &segments[i], i == len(segments)-1
		switch {
		case seg.Closed == last:
			return fmt.Errorf("segment %d is marked closed: %v", seg.base, seg.Closed)
		case !last && seg.Next != segments[i+1].base:
			return fmt.Errorf("segment %d ends at %d, the next one begins at %d", seg.base, seg.Next, segments[i+1].base)
		}
	}
	if earliest < segments[0].base {
		return fmt.Errorf("the earliest offset %d is below the first segment %d", earliest, segments[0].base)
	}
	return nil
}

// checkEnd checks that headers and batches end alike. Should one of the trees have lost
// its end, the log would otherwise go on where records lie already.
func checkEnd(tx *bbolt.Tx, uid uint64, first int64) error {
	header, _ := seekBatch(tx.Bucket(bucketHeaders).Cursor(), uid, math.MaxInt64)
	body, _ := seekBatch(tx.Bucket(bucketBatches).Cursor(), uid, math.MaxInt64)
	end := func(k []byte) int64 {
		if k == nil {
			return -1
		}
		return offsetOf(k)
	}
	// Of what has been trimmed, the batches go first.
	if h, b := end(header), end(body); h != b && (h >= first || b >= first) {
		return fmt.Errorf("the last batch header is at offset %d, the last batch at %d", h, b)
	}
	return nil
}

// checkReplay checks that a replay came to the end. It goes from key to key, and would end
// at one that is damaged; the last one is found from above.
func checkReplay(tx *bbolt.Tx, p *partition, r *replayer) error {
	if end := logEnd(tx, p); p.active().Next != end {
		return fmt.Errorf("the batches end below offset %d, the last one below %d", p.active().Next, end)
	}
	c := tx.Bucket(bucketMarks).Cursor()
	k, _ := c.Seek(markKey(p.uid, math.MaxInt64, math.MaxUint64))
	if k == nil {
		k, _ = c.Last()
	} else {
		k, _ = c.Prev()
	}
	if hasUID(k, p.uid) && markNumber(k) >= r.st.marks {
		return fmt.Errorf("mark %d is missing", r.st.marks)
	}
	return nil
}

// logEnd is the offset after the last batch.
func logEnd(tx *bbolt.Tx, p *partition) int64 {
	if k, v := newLogCursor(tx, p.uid, p.tail).seek(math.MaxInt64); k != nil {
		if h, err := decodeHeader(k, v); err == nil {
			base := offsetOf(k)
			return h.lastOffset(base) + 1
		}
	}
	return p.active().base
}

func readSegments(tx *bbolt.Tx, uid uint64) ([]segment, error) {
	var out []segment
	c := tx.Bucket(bucketSegments).Cursor()
	for k, v := c.Seek(uidKey(uid)); hasUID(k, uid); k, v = c.Next() {
		base := offsetOf(k)
		seg := segment{base: base}
		if err := readRow(k, v, &seg.segmentRow); err != nil {
			return nil, fmt.Errorf("segment %d: %w", base, err)
		}
		out = append(out, seg)
	}
	if len(out) == 0 {
		return nil, errors.New("it has no segment")
	}
	return out, nil
}

// lastSegmentAt is the arrival of the newest batch as the segments know it.
func (p *partition) lastSegmentAt() int64 {
	var at int64
	for i := range p.segments {
		at = max(at, p.segments[i].LastAt)
	}
	return at
}
