package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

// Read returns batches from an offset on; see [store.Engine]. Bytes are copied within
// a short transaction and verified after it.
func (s *Store) Read(_ context.Context, r store.Read) (store.Records, error) {
	p, err := s.partition(r.Partition)
	if err != nil {
		return store.Records{}, err
	}
	if err := p.unreadableAt(r.Offset); err != nil {
		return store.Records{}, err
	}
	b, tail := p.ends()
	if err := inBounds(b, r.Offset); err != nil {
		return store.Records{}, err
	}
	out := store.Records{Earliest: b.Earliest, HighWatermark: b.HighWatermark, TopicID: b.TopicID}
	if r.Offset == b.HighWatermark {
		return out, nil
	}
	err = s.view(func(tx *bbolt.Tx) error {
		out.Batches, out.Buffer, err = copyBatches(newLogCursor(tx, p.uid, tail), r, b.HighWatermark)
		return err
	})
	// What was within bounds above may have been trimmed, or the topic deleted,
	// before the transaction began: then what it found is no proof of damage.
	if p.dead.Load() {
		return store.Records{}, unknownTopic(p.name.Topic)
	}
	if now := p.bounds(); r.Offset < now.Earliest {
		return store.Records{}, trimmed(now, r.Offset)
	}
	if err != nil {
		return store.Records{}, damaged(p, err)
	}
	return verified(p, out)
}

// verified checks the checksums of what was copied.
func verified(p *partition, out store.Records) (store.Records, error) {
	for i := range out.Batches {
		sb := &out.Batches[i]
		if err := batch.Verify(sb.Bytes, sb.Count()); err != nil {
			if i == 0 {
				return store.Records{}, damaged(p, fmt.Errorf("batch at offset %d: %w", sb.BaseOffset, err))
			}
			out.Batches = out.Batches[:i] // the next read will begin with it and say so
			break
		}
	}
	return out, nil
}

// damaged is the error for a batch that is not what was written. An error that has a
// code is another matter.
func damaged(p *partition, err error) error {
	if store.CodeOf(err) != store.CodeInternal {
		return err
	}
	return &store.Error{
		Code:   store.CodeRecordsDamaged,
		Detail: fmt.Sprintf("topic %q partition %d: %v", p.name.Topic, p.name.Number, err),
	}
}

// view runs a read transaction. A panic in it means a page that cannot be read.
func (s *Store) view(fn func(tx *bbolt.Tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped
	defer func() {
		if v := recover(); v != nil {
			err = s.unreadable(v)
		}
	}()
	err = s.db.View(fn)
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return errDraining()
	}
	return err
}

// copyBatches copies the batches that r asks for, below the high watermark, and gives the
// memory that they lie in.
func copyBatches(c *logCursor, r store.Read, high int64) ([]store.StoredBatch, []byte, error) {
	hk, hv := c.seek(r.Offset)
	if hk == nil {
		return nil, nil, fmt.Errorf("no batch header for offset %d", r.Offset)
	}
	// One piece of memory for all: there may be thousands of them.
	copied := r.Buffer[:0]
	var out []store.StoredBatch
	next, records := offsetOf(hk), 0
	for ; hk != nil && offsetOf(hk) < high; hk, hv = c.next() {
		base := offsetOf(hk)
		h, err := decodeHeader(hk, hv)
		if err == nil && (base != next || len(out) == 0 && h.lastOffset(base) < r.Offset) {
			err = errGap
		}
		if err == nil && len(out) > 0 && (records >= r.MaxRecords || int64(len(copied))+h.bytes > int64(r.MaxBytes)) {
			break
		}
		at := len(copied)
		if err == nil {
			copied, err = c.body(copied, hk, &h)
		}
		if err != nil && len(out) == 0 {
			return nil, nil, fmt.Errorf("batch at offset %d: %w", base, err)
		}
		if err != nil {
			copied = copied[:at]
			break // the next read will begin with it and say so
		}
		out = append(out, store.StoredBatch{BatchHeader: h.public(base)})
		next = h.lastOffset(base) + 1
		records += int(next - max(base, r.Offset))
	}
	at := 0
	for i := range out {
		end := at + int(out[i].BatchHeader.Bytes)
		out[i].Bytes = copied[at:end:end]
		at = end
	}
	return out, copied, nil
}

// seekBatch finds the batch that holds offset: the last one that begins at or below it.
// k is nil if there is none. At the end of the log it is the last batch.
func seekBatch(c *bbolt.Cursor, uid uint64, offset int64) (k, v []byte) {
	k, v = c.Seek(offsetKey(uid, offset))
	if hasUID(k, uid) {
		if base := offsetOf(k); base == offset {
			return k, v
		}
	}
	if k == nil {
		k, v = c.Last()
	} else {
		k, v = c.Prev()
	}
	if !hasUID(k, uid) || offsetOf(k) > offset { // above it: keys out of order on a damaged page
		return nil, nil
	}
	return k, v
}

// Headers returns batch headers; see [store.Partitions].
func (s *Store) Headers(_ context.Context, p store.Partition, offset int64, limit int) ([]store.BatchHeader, error) {
	pt, err := s.partition(p)
	if err != nil {
		return nil, err
	}
	if err := pt.unreadableAt(offset); err != nil {
		return nil, err
	}
	b, tail := pt.ends()
	if err := inBounds(b, offset); err != nil || offset == b.HighWatermark {
		return nil, err
	}
	var out []store.BatchHeader
	err = s.view(func(tx *bbolt.Tx) error {
		out, err = readHeaders(newLogCursor(tx, pt.uid, tail), offset, b.HighWatermark, limit)
		return err
	})
	if pt.dead.Load() {
		return nil, unknownTopic(p.Topic)
	}
	if now := pt.bounds(); offset < now.Earliest { // trimmed meanwhile, as in Read
		return nil, trimmed(now, offset)
	}
	if err != nil {
		return nil, damaged(pt, err)
	}
	return out, nil
}

// readHeaders gives the headers from the batch that holds offset on, below the high
// watermark.
func readHeaders(c *logCursor, offset, high int64, limit int) ([]store.BatchHeader, error) {
	var out []store.BatchHeader
	next := int64(-1)
	for k, v := c.seek(offset); k != nil && len(out) < limit; k, v = c.next() {
		base := offsetOf(k)
		if base >= high {
			break
		}
		h, err := decodeHeader(k, v)
		if err == nil && (len(out) > 0 && base != next || len(out) == 0 && h.lastOffset(base) < offset) {
			err = errGap
		}
		if err != nil {
			return nil, fmt.Errorf("batch at offset %d: %w", base, err)
		}
		out = append(out, h.public(base))
		next = h.lastOffset(base) + 1
	}
	return out, nil
}

// Partition describes a partition.
func (s *Store) Partition(ctx context.Context, p store.Partition) (store.PartitionInfo, error) {
	pt, err := s.partition(p)
	if err != nil {
		return store.PartitionInfo{}, err
	}
	if err := s.settle(ctx, pt); err != nil {
		return store.PartitionInfo{}, err
	}
	return pt.describe(), nil
}

func (p *partition) describe() store.PartitionInfo {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := store.PartitionInfo{Partition: p.name, Producers: p.dedup.live, Parked: int(p.parked.Load())}
	if p.outage != nil {
		out.Damage = p.outage.err.Detail
	}
	for i := range p.segments {
		seg := &p.segments[i]
		out.Bytes += seg.Bytes
		out.Segments = append(out.Segments, store.Segment{
			BaseOffset: seg.base, NextOffset: seg.Next, Bytes: seg.Bytes, Batches: seg.Batches,
			CreatedAt: millis(seg.CreatedAt),
		})
	}
	out.Bounds = store.Bounds{Earliest: p.earliest.Load(), HighWatermark: p.active().Next, TopicID: p.topic.id}
	return out
}
