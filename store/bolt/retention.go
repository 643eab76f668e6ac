package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

// Trimming and retention only move the start of a partition and drop the rows of whole
// segments: a small transaction. What lies below the first segment is then deleted by
// the reaper, slice by slice, so that appends never wait for long. Each step can be
// repeated, so a crash between two of them does no harm.

// roll closes the active segment: a new one begins at the high watermark, and a snapshot
// lies between them, unless that is large and has to be taken in steps. It must run on the
// committer with nothing staged for p.
func (s *Store) roll(p *partition) error {
	a := *p.active()
	if a.Batches == 0 {
		return nil
	}
	a.Closed = true
	now := s.clock.millis()
	fresh := segment{base: a.Next, segmentRow: segmentRow{CreatedAt: now}}
	fresh.Next = a.Next
	var row snapshotRow
	var b []byte
	large := p.large()
	if !large {
		var err error
		if row, b, err = s.newSnapshot(p.dedup.contents(), p.marks, store.SnapshotRoll); err != nil {
			return err
		}
	}
	err := s.update(func(tx *bbolt.Tx) error {
		segments := tx.Bucket(bucketSegments)
		if err := putRow(segments, offsetKey(p.uid, a.base), a.segmentRow); err != nil {
			return err
		}
		if err := putRow(segments, offsetKey(p.uid, fresh.base), segmentRow{CreatedAt: now}); err != nil {
			return err
		}
		if large {
			return nil
		}
		return putListed(tx, p.uid, fresh.base, row, b)
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	*p.active() = a
	p.segments = append(p.segments, fresh)
	p.mu.Unlock()
	if !large {
		p.sinceSnap = 0
		p.hasSnapshot(fresh.base, &row)
	}
	return nil
}

// rollInPassing is roll where nobody has asked for it: then a large snapshot is taken only
// now and then.
func (s *Store) rollInPassing(p *partition) error {
	if err := s.roll(p); err != nil {
		return err
	}
	if p.large() && p.dedup.capture == nil && p.sinceSnap >= captureShare*p.snapBytes {
		_, err := s.capture(p, store.SnapshotRoll)
		return err
	}
	return nil
}

// Roll closes the active segment; see [store.Partitions].
func (s *Store) Roll(ctx context.Context, p store.Partition) (store.PartitionInfo, error) {
	pt, err := s.inService(p)
	if err != nil {
		return store.PartitionInfo{}, err
	}
	type rolled struct {
		info  store.PartitionInfo
		large bool // a snapshot is still to be taken
	}
	r, err := ask(ctx, s, func() (rolled, error) {
		if pt.dead.Load() {
			return rolled{}, unknownTopic(p.Topic)
		}
		before := len(pt.segments)
		err := s.roll(pt)
		return rolled{pt.describe(), len(pt.segments) > before && pt.large()}, err
	})
	if err == nil && r.large {
		_, err = s.snapshotNow(ctx, pt, store.SnapshotRoll)
	}
	if err != nil {
		return store.PartitionInfo{}, err
	}
	return r.info, nil
}

// Trim removes the records below an offset; see [store.Partitions].
func (s *Store) Trim(ctx context.Context, p store.Partition, before int64) (int64, error) {
	pt, err := s.inService(p)
	if err != nil {
		return 0, err
	}
	return ask(ctx, s, func() (int64, error) {
		if pt.dead.Load() {
			return 0, unknownTopic(p.Topic)
		}
		if b := pt.bounds(); before > b.HighWatermark {
			return 0, outOfRange(b, before)
		}
		if before > pt.active().base && before == pt.next.Load() {
			// Everything goes: close the segment, so that it can be deleted.
			if err := s.roll(pt); err != nil {
				return 0, err
			}
		}
		err := s.trim(pt, before)
		return pt.earliest.Load(), err
	})
}

// trim moves the start of a partition up to an offset and drops the segments that lie
// wholly below it. It must run on the committer.
func (s *Store) trim(p *partition, before int64) error {
	if before <= p.earliest.Load() {
		return nil
	}
	drop, dropped := 0, int64(0)
	for drop < len(p.segments)-1 && p.segments[drop].Next <= before {
		dropped += p.segments[drop].Bytes
		drop++
	}
	err := s.updateBeside(func(tx *bbolt.Tx) error {
		for i := range drop {
			if err := tx.Bucket(bucketSegments).Delete(offsetKey(p.uid, p.segments[i].base)); err != nil {
				return err
			}
		}
		row := partitionRow{Earliest: before, Garbage: s.garbage.bytes[p.uid] + dropped}
		return putRow(tx.Bucket(bucketParts), uidKey(p.uid), row)
	})
	if err != nil {
		return err
	}
	s.garbage.add(p.uid, dropped)
	p.mu.Lock()
	p.segments = append([]segment(nil), p.segments[drop:]...)
	p.earliest.Store(before)
	p.mu.Unlock()
	return nil
}

// retain applies the topic's retention to a partition, on the committer.
func (s *Store) retain(p *partition) error {
	if p.dead.Load() {
		return nil
	}
	now := s.clock.millis()
	before, roll := p.retention(now)
	// First what makes room, for a roll writes a snapshot.
	if err := s.trim(p, before); err != nil || !roll {
		return err
	}
	if err := s.rollInPassing(p); err != nil {
		return err
	}
	before, _ = p.retention(now)
	return s.trim(p, before)
}

// retention says what the topic's limits ask for: below which offset whole segments go,
// and whether the active one is to be closed, because of its age or because it could
// then go as well.
func (p *partition) retention(now int64) (before int64, roll bool) {
	c := p.topic.config()
	total := p.bytes()
	before = p.earliest.Load()
	for i := range len(p.segments) - 1 {
		seg := &p.segments[i]
		tooMuch := c.RetentionBytes != store.Keep && total-seg.Bytes >= c.RetentionBytes
		if !tooMuch && !tooOld(seg, c, now) {
			break
		}
		total -= seg.Bytes
		before = max(before, seg.Next)
	}
	a := p.active()
	return before, a.Batches > 0 && (now-a.CreatedAt >= c.SegmentMs || tooOld(a, c, now))
}

func tooOld(seg *segment, c *store.Config, now int64) bool {
	return c.RetentionMs != store.Keep && now-seg.LastAt > c.RetentionMs
}

// retentionDue looks, without the committer, whether retain would do anything.
func (p *partition) retentionDue(now int64) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	before, roll := p.retention(now)
	return roll || before > p.earliest.Load()
}

// maintain looks after retention, expiry, deleted data and free space until the engine
// closes.
func (s *Store) maintain() {
	defer s.upkeep.Done()
	ctx, cancel := contextUntil(s.closing)
	defer cancel()
	tick := time.NewTicker(s.opts.RetentionInterval)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-tick.C:
			s.lookAtDisk()
			err = errors.Join(s.sweep(ctx), s.saveFreelist(ctx))
		case <-s.garbage.due:
			err = s.reapAll(ctx)
		case <-s.closing:
			return
		}
		if err != nil && ctx.Err() == nil && store.CodeOf(err) != store.CodeDraining && !s.failed() {
			s.log.Warn("retention could not be applied, it will be tried again", slog.Any("error", err))
		}
	}
}

// contextUntil is a context that ends when ch is closed.
func contextUntil(ch <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-ch:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// sweep does one round of upkeep.
func (s *Store) sweep(ctx context.Context) error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return errors.Join(s.eachServing(func(p *partition) error { return s.sweepPartition(ctx, p) }), s.reap(ctx))
}

// eachServing does something for each partition that is in service. One partition's trouble,
// such as no room for its snapshot, must not keep another from giving room back.
func (s *Store) eachServing(do func(p *partition) error) error {
	var errs []error
	for _, p := range s.serving() {
		if err := do(p); err != nil && !p.dead.Load() {
			errs = append(errs, fmt.Errorf("topic %q partition %d: %w", p.name.Topic, p.name.Number, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) sweepPartition(ctx context.Context, p *partition) error {
	if err := s.settleAll(ctx, p); err != nil {
		return fmt.Errorf("expire producers: %w", err)
	}
	if p.retentionDue(s.clock.millis()) {
		if err := s.control(ctx, func() error { return s.retain(p) }); err != nil {
			return fmt.Errorf("delete segments: %w", err)
		}
	}
	return nil
}
