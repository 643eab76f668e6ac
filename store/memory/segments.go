package memory

import (
	"context"

	"github.com/oncelog/oncelog/store"
)

// Partition describes a partition and its segments.
func (s *Store) Partition(ctx context.Context, name store.Partition) (store.PartitionInfo, error) {
	if err := s.enter(ctx); err != nil {
		return store.PartitionInfo{}, err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return store.PartitionInfo{}, err
	}
	return s.info(t, p), nil
}

func (s *Store) info(t *topic, p *partition) store.PartitionInfo {
	s.expireIdle(p, t.Config)
	info := store.PartitionInfo{Partition: p.name, Bounds: p.bounds(t), Producers: p.live()}
	for i, seg := range p.segments {
		info.Bytes += seg.bytes
		info.Segments = append(info.Segments, store.Segment{
			BaseOffset: seg.base,
			NextOffset: p.end(i),
			Bytes:      seg.bytes,
			Batches:    int64(len(seg.entries)),
			CreatedAt:  fromMillis(seg.createdAt),
		})
	}
	return info
}

// Trim moves the earliest offset up and drops the segments that are wholly below it.
func (s *Store) Trim(ctx context.Context, name store.Partition, before int64) (int64, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return 0, err
	}
	if before > p.next {
		return 0, p.within(t, before)
	}
	if before == p.next && len(p.active().entries) > 0 {
		s.roll(t, p) // everything goes, the active segment too
	}
	p.earliest = max(p.earliest, before)
	p.cut(func(i int) bool { return p.end(i) <= p.earliest })
	return p.earliest, nil
}

// Roll closes the active segment, unless it is empty.
func (s *Store) Roll(ctx context.Context, name store.Partition) (store.PartitionInfo, error) {
	if err := s.enter(ctx); err != nil {
		return store.PartitionInfo{}, err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return store.PartitionInfo{}, err
	}
	if len(p.active().entries) > 0 {
		s.roll(t, p)
	}
	return s.info(t, p), nil
}

// roll opens a new segment, with a snapshot between it and the one before.
func (s *Store) roll(t *topic, p *partition) {
	s.snapshot(t, p, store.SnapshotRoll)
	p.segments = append(p.segments, &segment{base: p.next, createdAt: s.clock})
}

// rollDue reports whether the active segment must be closed before a batch of so
// many bytes.
func (p *partition) rollDue(bytes, at int64, c store.Config) bool {
	seg := p.active()
	if len(seg.entries) == 0 {
		return false
	}
	return seg.bytes+bytes > c.SegmentBytes || at-seg.createdAt >= c.SegmentMs
}

// retain drops segments from the front while their newest batch is older than the
// retention time, or while what is left is not below the retention size.
func (p *partition) retain(at int64, c store.Config) {
	total := int64(0)
	for _, seg := range p.segments {
		total += seg.bytes
	}
	p.cut(func(i int) bool {
		seg := p.segments[i]
		surplus := c.RetentionBytes != store.Keep && total-seg.bytes >= c.RetentionBytes
		if !surplus && !tooOld(seg, at, c) {
			return false
		}
		total -= seg.bytes
		p.earliest = max(p.earliest, p.end(i))
		return true
	})
}

func tooOld(seg *segment, at int64, c store.Config) bool {
	return c.RetentionMs != store.Keep && at-seg.newest() > c.RetentionMs
}

// Sweep does what a real engine does in the background: it closes the segments that
// have been open for too long or hold nothing that is young enough to be kept, and
// applies retention, everywhere.
func (s *Store) Sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = max(s.clock, s.options.Now().UnixMilli())
	for _, t := range s.topics {
		for _, p := range t.partitions {
			seg := p.active()
			if len(seg.entries) > 0 && (s.clock-seg.createdAt >= t.Config.SegmentMs || tooOld(seg, s.clock, t.Config)) {
				s.roll(t, p)
			}
			p.retain(s.clock, t.Config)
		}
	}
}
