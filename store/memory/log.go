package memory

import (
	"bytes"
	"context"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

// partition is one log: segments of batches, without a gap between them, and the
// producers' states after the last of them.
type partition struct {
	name      store.Partition
	number    int64 // of the partition among all that were ever made
	earliest  int64 // the first record that is kept; it may lie within a batch
	next      int64 // the high watermark
	segments  []*segment
	producers map[int64]sequence.State // tombstones included
	dropped   dropped                  // of which there were too many
	counters  map[int64]*store.Counters
	snapshots []*snapshot // by offset
	expiries  int64       // producers that expired since the newest snapshot
	// base is the states before the first batch that is kept, by the log alone.
	base map[int64]sequence.State
}

type segment struct {
	base      int64
	createdAt int64
	bytes     int64
	entries   []entry
}

// newest is when the last batch of the segment arrived.
func (seg *segment) newest() int64 {
	if len(seg.entries) == 0 {
		return seg.createdAt
	}
	return seg.entries[len(seg.entries)-1].AppendedAt.UnixMilli()
}

// entry is a batch in the log.
type entry struct {
	store.BatchHeader
	batch batch.Batch
}

func newPartition(name store.Partition, number, at int64) *partition {
	return &partition{
		name:      name,
		number:    number,
		segments:  []*segment{{createdAt: at}},
		producers: map[int64]sequence.State{},
		counters:  map[int64]*store.Counters{},
		base:      map[int64]sequence.State{},
	}
}

func (p *partition) active() *segment { return p.segments[len(p.segments)-1] }

// end is the offset after the i-th segment.
func (p *partition) end(i int) int64 {
	if i+1 < len(p.segments) {
		return p.segments[i+1].base
	}
	return p.next
}

// add appends a batch to the active segment.
func (p *partition) add(e entry) {
	seg := p.active()
	seg.entries = append(seg.entries, e)
	seg.bytes += e.Bytes
	p.next = e.LastOffset + 1
}

// cut drops segments from the front, the active one never, while drop says so, and the
// snapshots below them, which nothing could be replayed onto any more.
func (p *partition) cut(drop func(i int) bool) {
	for len(p.segments) > 1 && drop(0) {
		replay(p.base, p.segments[0].entries)
		p.segments = p.segments[1:]
		for len(p.snapshots) > 0 && p.snapshots[0].Offset < p.segments[0].base {
			p.snapshots = p.snapshots[1:]
		}
	}
}

// replay applies batches to states, judging nothing: what is in the log has happened.
func replay(states map[int64]sequence.State, entries []entry) {
	for _, e := range entries {
		if e.Producer != nil {
			a := store.Append{Producer: e.Producer, Batch: e.batch}
			state := states[e.Producer.ID]
			states[e.Producer.ID] = state.Apply(a.Attempt(), e.BaseOffset, e.AppendedAt.UnixMilli())
		}
	}
}

// entries lists the batches that hold records from offset on.
func (p *partition) entries(offset int64) []entry {
	var out []entry
	for _, seg := range p.segments {
		for _, e := range seg.entries {
			if e.LastOffset >= offset {
				out = append(out, e)
			}
		}
	}
	return out
}

func (p *partition) bounds(t *topic) store.Bounds {
	return store.Bounds{Earliest: p.earliest, HighWatermark: p.next, TopicID: t.ID}
}

// within fails unless offset is between the ends of the partition, both included.
func (p *partition) within(t *topic, offset int64) error {
	b := p.bounds(t)
	switch {
	case offset < p.earliest:
		return &store.Error{Code: store.CodeRecordsTrimmed, Detail: "the records below the earliest offset are gone", Bounds: &b}
	case offset > p.next:
		return &store.Error{Code: store.CodeOffsetOutOfRange, Detail: "the offset is above the high watermark", Bounds: &b}
	}
	return nil
}

// Read copies batches out, from the one that holds the offset until the bounds of r
// are reached.
func (s *Store) Read(ctx context.Context, r store.Read) (store.Records, error) {
	if err := s.enter(ctx); err != nil {
		return store.Records{}, err
	}
	defer s.leave()
	t, p, err := s.find(r.Partition)
	if err != nil {
		return store.Records{}, err
	}
	if err := p.within(t, r.Offset); err != nil {
		return store.Records{}, err
	}
	out := store.Records{Earliest: p.earliest, HighWatermark: p.next, TopicID: t.ID}
	size := 0
	for _, e := range p.entries(r.Offset) {
		if n := len(out.Batches); n > 0 {
			records := out.Batches[n-1].LastOffset + 1 - r.Offset
			if records >= int64(r.MaxRecords) || size >= r.MaxBytes {
				break
			}
		}
		out.Batches = append(out.Batches, store.StoredBatch{BatchHeader: e.copyHeader(), Bytes: bytes.Clone(e.batch.Bytes)})
		size += len(e.batch.Bytes)
	}
	return out, nil
}

// copyHeader shares nothing with the log.
func (e *entry) copyHeader() store.BatchHeader {
	h := e.BatchHeader
	if h.Producer != nil {
		producer := *h.Producer
		h.Producer = &producer
	}
	return h
}

// Bounds gives the ends of a partition.
func (s *Store) Bounds(ctx context.Context, name store.Partition) (store.Bounds, error) {
	if err := s.enter(ctx); err != nil {
		return store.Bounds{}, err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return store.Bounds{}, err
	}
	return p.bounds(t), nil
}

// Headers describes batches, from the one that holds offset on.
func (s *Store) Headers(ctx context.Context, name store.Partition, offset int64, limit int) ([]store.BatchHeader, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if err := p.within(t, offset); err != nil {
		return nil, err
	}
	var out []store.BatchHeader
	for _, e := range p.entries(offset) {
		if len(out) < limit {
			out = append(out, e.copyHeader())
		}
	}
	return out, nil
}
