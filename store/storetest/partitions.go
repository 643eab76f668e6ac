package storetest

import (
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
)

func testHeaders(t *testing.T, f Factory) {
	t.Run("all", func(t *testing.T) { headersAll(newEnv(t, f)) })
	t.Run("paging", func(t *testing.T) { headersPaging(newEnv(t, f)) })
	t.Run("bounds", func(t *testing.T) { headersBounds(newEnv(t, f)) })
}

// headers gives headers from an offset on.
func (e *env) headers(p store.Partition, offset int64, limit int) []store.BatchHeader {
	e.t.Helper()
	h, err := e.Headers(e.ctx, p, offset, limit)
	if err != nil || len(h) > limit {
		e.t.Fatalf("headers from %d, %d at most: %+v, %v", offset, limit, h, err)
	}
	return h
}

func headersAll(e *env) {
	p := e.topic()
	pid := e.pid()
	if h := e.headers(p, 0, 10); len(h) != 0 {
		e.t.Errorf("headers of nothing: %+v", h)
	}
	first := seq(p, pid, 3, 0, 4)
	ack := e.stored(first, 0)
	e.clock.Add(time.Second)
	second := plain(p, "x")
	e.stored(second, 4)
	h := e.headers(p, 0, 10)
	if len(h) != 2 {
		e.t.Fatalf("headers %+v", h)
	}
	if h[0].BaseOffset != 0 || h[0].LastOffset != 3 || h[0].Count() != 4 || h[0].Producer == nil || *h[0].Producer != *first.Producer {
		e.t.Errorf("first header %+v", h[0])
	}
	if !sameTime(h[0].AppendedAt, ack.AppendedAt) {
		e.t.Errorf("appended at %v, want %v", h[0].AppendedAt, ack.AppendedAt)
	}
	if h[1].BaseOffset != 4 || h[1].LastOffset != 4 || h[1].Producer != nil {
		e.t.Errorf("second header %+v", h[1])
	}
	for i, a := range []store.Append{first, second} {
		if h[i].Bytes != int64(len(a.Batch.Bytes)) || h[i].CRC == 0 {
			e.t.Errorf("header %+v for %d bytes", h[i], len(a.Batch.Bytes))
		}
	}
	if i := e.partition(p); i.Bytes != h[0].Bytes+h[1].Bytes {
		e.t.Errorf("the partition has %d bytes, its batches %d and %d", i.Bytes, h[0].Bytes, h[1].Bytes)
	}
}

func headersPaging(e *env) {
	p := e.topic()
	e.sizes(p) // 1, 3, 1, 5, 2
	want := []int64{0, 1, 4, 5, 10}
	for limit := 1; limit <= 6; limit++ {
		var got []int64
		for offset := int64(0); ; {
			page := e.headers(p, offset, limit)
			if len(page) == 0 {
				break
			}
			for _, h := range page {
				got = append(got, h.BaseOffset)
			}
			offset = page[len(page)-1].LastOffset + 1
		}
		if !sameIDs(got, want) {
			e.t.Errorf("by pages of %d: %v, want %v", limit, got, want)
		}
	}
	for offset, base := range []int64{0, 1, 1, 1, 4, 5, 5, 5, 5, 5, 10, 10} {
		if h := e.headers(p, int64(offset), 1); len(h) != 1 || h[0].BaseOffset != base {
			e.t.Errorf("at %d: %+v, want the batch at %d", offset, h, base)
		}
	}
}

func headersBounds(e *env) {
	p := e.topic()
	e.sizes(p)
	e.trim(p, 6, 6)
	_, err := e.Headers(e.ctx, p, 5, 1)
	e.coded("headers below the earliest offset", err, store.CodeRecordsTrimmed)
	_, err = e.Headers(e.ctx, p, 13, 1)
	e.coded("headers above the end", err, store.CodeOffsetOutOfRange)
	if h := e.headers(p, 12, 10); len(h) != 0 {
		e.t.Errorf("headers at the end: %+v", h)
	}
	if h := e.headers(p, 6, 10); len(h) != 2 || h[0].BaseOffset != 5 {
		e.t.Errorf("headers from the middle of a batch: %+v", h)
	}
}

func testTrim(t *testing.T, f Factory) {
	e := newEnv(t, f)
	p := e.topic()
	values := e.sizes(p)
	e.trim(p, 0, 0)
	e.trim(p, 2, 2)
	e.bounds(p, 2, 12)
	e.trim(p, 1, 2)
	e.trim(p, 2, 2)
	_, err := e.Trim(e.ctx, p, 13)
	if se := e.coded("trim above the end", err, store.CodeOffsetOutOfRange); se.Bounds == nil || se.Bounds.HighWatermark != 12 {
		t.Errorf("bounds %+v", se.Bounds)
	}
	e.holds(p, 2, values[2:]...)
	e.roll(p)
	e.trim(p, 11, 11)
	e.holds(p, 11, values[11:]...)
	e.trim(p, 12, 12)
	e.bounds(p, 12, 12)
	e.stored(plain(p, "more"), 12)
	e.holds(p, 12, "more")
	e.trim(p, 13, 13)
	e.trim(p, 13, 13)
	e.holds(p, 13)
}

func testSegments(t *testing.T, f Factory) {
	t.Run("by-hand", func(t *testing.T) { segmentsByHand(newEnv(t, f)) })
	t.Run("by-size", func(t *testing.T) { segmentsBySize(newEnv(t, f)) })
	t.Run("trim", func(t *testing.T) { segmentsTrim(newEnv(t, f)) })
	if !f.Traits.RealTime {
		t.Run("by-age", func(t *testing.T) { segmentsByAge(newEnv(t, f)) })
	}
}

// segments expects segments that begin at the offsets, hang together and add up.
func (e *env) segments(p store.Partition, bases ...int64) store.PartitionInfo {
	e.t.Helper()
	i := e.partition(p)
	var got []int64
	var bytes int64
	next := bases[0]
	for _, s := range i.Segments {
		if s.BaseOffset != next || s.NextOffset < s.BaseOffset || (s.Batches == 0) != (s.Bytes == 0) {
			e.t.Fatalf("segments %+v", i.Segments)
		}
		next = s.NextOffset
		bytes += s.Bytes
		got = append(got, s.BaseOffset)
	}
	if !sameIDs(got, bases) || next != i.HighWatermark || bytes != i.Bytes {
		e.t.Fatalf("segments %+v of %d bytes up to %d; want them to begin at %v", i.Segments, i.Bytes, i.HighWatermark, bases)
	}
	return i
}

func segmentsByHand(e *env) {
	p := e.topic()
	if i := e.roll(p); len(i.Segments) != 1 {
		e.t.Errorf("an empty segment was closed: %+v", i.Segments)
	}
	values := e.sizes(p)
	i := e.segments(p, 0)
	if i.Segments[0].Batches != 5 || i.Producers != 1 || i.Partition != p {
		e.t.Errorf("partition %+v", i)
	}
	if i := e.roll(p); len(i.Segments) != 2 || i.Segments[1].Batches != 0 || i.Segments[1].BaseOffset != 12 {
		e.t.Errorf("after a roll: %+v", i.Segments)
	}
	e.roll(p)
	e.segments(p, 0, 12)
	e.stored(plain(p, "more"), 12)
	e.segments(p, 0, 12)
	e.roll(p)
	e.segments(p, 0, 12, 13)
	e.holds(p, 0, append(values, "more")...)
	all, err := e.Snapshots(e.ctx, store.SnapshotFilter{Topic: p.Topic})
	if err != nil || len(all) != 2 || all[0].Offset != 12 || all[1].Offset != 13 || all[0].Reason != store.SnapshotRoll {
		e.t.Errorf("snapshots of the rolls: %+v, %v", all, err)
	}
}

// segmentsBySize: the batch that would make a segment too large begins the next one.
func segmentsBySize(e *env) {
	p := e.topic(func(c *store.Config) { c.SegmentBytes = store.MinSegmentBytes })
	pid := e.pid()
	for i := range int64(40) {
		e.stored(seq(p, pid, 0, 2*i, 2), 2*i)
	}
	e.stored(plain(p, string(make([]byte, 3000))), 80) // larger than a segment
	e.stored(plain(p, "x"), 81)
	i := e.partition(p)
	if n := len(i.Segments); n < 4 || i.Segments[n-1].BaseOffset != 81 || i.Segments[n-2].BaseOffset != 80 {
		e.t.Errorf("segments %+v", i.Segments)
	}
	for _, s := range i.Segments {
		if s.Bytes > store.MinSegmentBytes && s.Batches > 1 {
			e.t.Errorf("segment %+v is too large", s)
		}
	}
	if got, err := readAll(e.ctx, e, p, 0, e.f.Traits); err != nil || len(got) != 82 {
		e.t.Errorf("%d records, %v", len(got), err)
	}
	e.verifyAll(p)
}

func segmentsTrim(e *env) {
	p := e.topic()
	for i := range int64(4) {
		e.stored(plain(p, "a", "b", "c"), 3*i)
		e.roll(p)
	}
	e.trim(p, 2, 2)
	e.segments(p, 0, 3, 6, 9, 12)
	e.trim(p, 3, 3)
	e.segments(p, 3, 6, 9, 12)
	e.trim(p, 10, 10)
	e.segments(p, 9, 12)
	e.trim(p, 12, 12)
	e.segments(p, 12)
	e.stored(plain(p, "d"), 12)
	e.trim(p, 13, 13)
	if i := e.partition(p); i.Bytes != 0 {
		e.t.Errorf("%d bytes are left of nothing", i.Bytes)
	}
}

func segmentsByAge(e *env) {
	p := e.topic(func(c *store.Config) { c.SegmentMs = 10 * second })
	e.stored(plain(p, "a"), 0)
	e.clock.Add(10*time.Second - time.Millisecond)
	e.stored(plain(p, "b"), 1)
	e.segments(p, 0)
	e.clock.Add(time.Millisecond)
	e.stored(plain(p, "c"), 2)
	e.segments(p, 0, 2)
	e.holds(p, 0, "a", "b", "c")
}

func testRetention(t *testing.T, f Factory) {
	if f.Sweep == nil {
		t.Skip("the engine cannot be made to apply retention")
	}
	t.Run("bytes", func(t *testing.T) { retentionBytes(newEnv(t, f)) })
	t.Run("keeps-state", func(t *testing.T) { retentionState(newEnv(t, f)) })
	if !f.Traits.RealTime {
		t.Run("age", func(t *testing.T) { retentionAge(newEnv(t, f)) })
	}
}

// retentionBytes: whole segments go while what is left is still enough.
func retentionBytes(e *env) {
	p := e.topic()
	for i := range int64(5) {
		e.stored(plain(p, "value"), i)
		e.roll(p)
	}
	size := e.partition(p).Segments[0].Bytes
	keep := func(bytes int64) {
		e.t.Helper()
		_, err := e.UpdateTopic(e.ctx, p.Topic, func(t store.Topic) (store.Topic, error) {
			t.Config.RetentionBytes = bytes
			return t, nil
		})
		if err != nil {
			e.t.Fatal(err)
		}
		e.sweep()
	}
	keep(store.Keep)
	e.bounds(p, 0, 5)
	keep(5 * size)
	e.bounds(p, 0, 5)
	keep(3*size - 1)
	e.bounds(p, 2, 5)
	e.holds(p, 2, "value", "value", "value")
	keep(3 * size)
	e.bounds(p, 2, 5)
	keep(2 * size)
	e.bounds(p, 3, 5)
	keep(1)
	e.bounds(p, 4, 5)
	e.stored(plain(p, "new"), 5)
	e.holds(p, 4, "value", "new")
}

func retentionAge(e *env) {
	p := e.topic(func(c *store.Config) { c.RetentionMs = 10 * second })
	for i := range int64(3) {
		e.stored(plain(p, "old"), i)
		e.roll(p)
		e.clock.Add(5 * time.Second)
	}
	e.stored(plain(p, "new"), 3) // ages: 15 s, 10 s, 5 s, 0
	e.sweep()
	e.bounds(p, 1, 4)
	e.clock.Add(time.Millisecond)
	e.sweep()
	e.bounds(p, 2, 4)
	e.clock.Add(time.Hour)
	e.sweep()
	e.bounds(p, 4, 4)
	e.stored(plain(p, "newer"), 4)
	e.sweep()
	e.holds(p, 4, "newer")
}

// retentionState: producers outlive their records (D5).
func retentionState(e *env) {
	p := e.topic(func(c *store.Config) { c.RetentionBytes = 0 })
	pid := e.pid()
	for i := range int64(6) {
		e.stored(seq(p, pid, 0, i, 1), i)
		e.roll(p)
	}
	e.sweep()
	e.bounds(p, 6, 6)
	e.forgotten(seq(p, pid, 0, 0, 1))
	e.duplicate(seq(p, pid, 0, 1, 1), 1)
	e.stored(seq(p, pid, 0, 6, 1), 6)
	e.verifyAll(p)
}
