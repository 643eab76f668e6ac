package bolt

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"slices"
	"time"

	"github.com/tidwall/btree"
	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// capture is a snapshot of many producers, taken in steps while appends go on: to encode
// and write a million at once would hold them up for a second. Whatever changes a
// producer that has not been encoded yet saves its state as it was first. The chunks lie
// in the store without a row, and so count for nothing, until the last step.
type capture struct {
	p           *partition
	offset      int64 // the high watermark when it began
	marks       uint64
	reason      store.SnapshotReason
	count, live int

	cursor int64 // all producers up to this id have been encoded
	saved  btree.Map[int64, sequence.State]
	buf    []byte // encoded, not yet written
	row    snapshotRow

	done     chan struct{} // closed at the end; then snapshot and err hold
	snapshot store.Snapshot
	err      error
}

const (
	// captureFrom is from how many producers on a snapshot is taken in steps.
	captureFrom = 2048
	// captureStep is how many of them one step takes: less than 1 ms and 150 KiB.
	captureStep = 1024
	// captureShare is how many times the size of the newest snapshot the log must have
	// grown before a roll takes another, so that large snapshots don't fill the disk.
	captureShare = 4
)

// large reports whether a snapshot of the partition has to be taken in steps.
func (p *partition) large() bool { return p.dedup.size() >= captureFrom }

// captures are those in progress. They belong to the committer.
type captures struct {
	list  []*capture
	timer *time.Timer
}

// due fires when the next step is to be taken; nil, and so never, if there is none.
func (c *captures) due() <-chan time.Time {
	if c.timer == nil {
		return nil
	}
	return c.timer.C
}

// pace plans the next step. Between two of them appends have the store to themselves for
// as long as a step takes.
func (c *captures) pace(took time.Duration) {
	switch {
	case len(c.list) == 0:
		c.timer = nil
	case c.timer == nil:
		c.timer = time.NewTimer(took)
	default:
		c.timer.Reset(took)
	}
}

// save keeps the state that a producer had when the capture began.
func (c *capture) save(pid int64, was sequence.State) {
	if pid <= c.cursor {
		return
	}
	if _, ok := c.saved.Get(pid); !ok {
		c.saved.Set(pid, was)
	}
}

// capture begins a snapshot of a partition as it is now. It must run on the committer,
// or before there is one, and not while another of the partition is in progress.
func (s *Store) capture(p *partition, reason store.SnapshotReason) (*capture, error) {
	offset := p.next.Load()
	err := s.update(func(tx *bbolt.Tx) error {
		// One at the same offset would have its chunks overwritten under it.
		return deleteSnapshot(tx, p.uid, kindListed, offset)
	})
	if err != nil {
		return nil, err
	}
	d := &p.dedup
	c := &capture{
		p: p, offset: offset, marks: p.marks, reason: reason, count: d.size(), live: d.live,
		cursor: -1, done: make(chan struct{}),
	}
	c.buf = appendSnapshotHead(c.buf, c.count, d.cutoff)
	c.row = snapshotRow{CreatedAt: s.clock.millis(), Reason: reason, Producers: c.live, Marks: c.marks}
	d.capture = c
	p.sinceSnap = 0
	s.captures.list = append(s.captures.list, c)
	s.captures.pace(0)
	return c, nil
}

// stepCapture takes the oldest capture one step further.
func (s *Store) stepCapture() {
	c, start := s.captures.list[0], time.Now()
	defer func() { s.captures.pace(time.Since(start)) }()
	if c.p.dead.Load() {
		s.endCapture(c, unknownTopic(c.p.name.Topic))
		return
	}
	more, err := c.encode()
	if err == nil {
		err = s.update(func(tx *bbolt.Tx) error { return c.write(tx, !more) })
	}
	if err != nil || !more {
		s.endCapture(c, err)
	}
}

// encode appends the next producers to buf and reports whether there are more.
func (c *capture) encode() (more bool, err error) {
	ids := c.p.dedup.above(c.cursor, captureStep)
	n := len(ids)
	c.saved.Ascend(c.cursor+1, func(pid int64, _ sequence.State) bool {
		ids = append(ids, pid)
		return len(ids)-n < captureStep
	})
	more = n == captureStep || len(ids)-n == captureStep
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > captureStep {
		more, ids = true, ids[:captureStep]
	}
	for _, pid := range ids {
		c.cursor = pid
		st, changed := c.saved.Delete(pid)
		if !changed {
			st = c.p.dedup.stored(pid)
		}
		if !st.Exists() {
			continue // it came later
		}
		c.buf = binary.AppendUvarint(c.buf, uint64(pid))
		if c.buf, err = st.AppendBinary(c.buf); err != nil {
			return false, err
		}
	}
	return more, nil
}

// write writes what is encoded in whole chunks, and at the end the rest and the row that
// makes a snapshot of them.
func (c *capture) write(tx *bbolt.Tx, last bool) error {
	chunks := tx.Bucket(bucketChunks)
	chunks.FillPercent = fillPercent
	for len(c.buf) >= snapshotChunk || last && len(c.buf) > 0 {
		piece := slices.Clone(c.buf[:min(snapshotChunk, len(c.buf))]) // bbolt keeps it until the commit
		c.buf = append(c.buf[:0], c.buf[len(piece):]...)
		if err := chunks.Put(chunkKey(c.p.uid, kindListed, c.offset, c.row.Chunks), piece); err != nil {
			return err
		}
		c.row.Chunks++
		c.row.Bytes += int64(len(piece))
		c.row.CRC = crc32.Update(c.row.CRC, castagnoli, piece)
	}
	if !last {
		return nil
	}
	return listSnapshot(tx, c.p.uid, c.offset, c.row)
}

// endCapture takes a capture out of the books.
func (s *Store) endCapture(c *capture, err error) {
	c.p.dedup.capture = nil
	s.captures.list = slices.DeleteFunc(s.captures.list, func(o *capture) bool { return o == c })
	if err == nil {
		c.p.hasSnapshot(c.offset, &c.row)
		c.snapshot = c.row.public(c.p.name, c.offset)
	} else {
		c.p.orphans.Store(true)
		s.log.Warn("a snapshot could not be finished", c.p.logTopic(), c.p.logNumber(), slog.Any("error", err))
	}
	c.err = err
	close(c.done)
}

// endCaptures gives up what is in progress, for the engine is closing.
func (s *Store) endCaptures() {
	for len(s.captures.list) > 0 {
		s.endCapture(s.captures.list[0], errDraining())
	}
}

// wait waits for the end of a capture.
func (c *capture) wait(ctx context.Context) (store.Snapshot, error) {
	select {
	case <-c.done:
		return c.snapshot, c.err
	case <-ctx.Done():
		return store.Snapshot{}, ctx.Err()
	}
}
