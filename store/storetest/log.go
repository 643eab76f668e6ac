package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

// readAll reads values from an offset up to the high watermark, several records at a
// time. It fails when there is a gap, or when a batch is not what its header says.
func readAll(ctx context.Context, s store.Engine, p store.Partition, offset int64, traits Traits) ([]string, error) {
	var out []string
	var buffer []byte
	for {
		r, err := s.Read(ctx, store.Read{Partition: p, Offset: offset, MaxRecords: 7, MaxBytes: 1 << 16, Buffer: buffer})
		if err != nil {
			return nil, err
		}
		if len(r.Batches) == 0 {
			if offset < r.HighWatermark {
				return nil, fmt.Errorf("nothing at %d, below the high watermark %d", offset, r.HighWatermark)
			}
			return out, nil
		}
		values, next, err := valuesFrom(r, offset, traits)
		if err != nil {
			return nil, err
		}
		out = append(out, values...)
		offset, buffer = next, r.Buffer
	}
}

// valuesFrom gives the values of what was read from an offset on, and where to go on.
func valuesFrom(r store.Records, offset int64, traits Traits) ([]string, int64, error) {
	var out []string
	for i, b := range r.Batches {
		if err := checkBatch(b, traits); err != nil {
			return nil, 0, err
		}
		if b.BaseOffset > offset || (i > 0 && b.BaseOffset != offset) || b.LastOffset < offset {
			return nil, 0, fmt.Errorf("batch %d to %d where %d was to be", b.BaseOffset, b.LastOffset, offset)
		}
		if b.LastOffset >= r.HighWatermark {
			return nil, 0, fmt.Errorf("batch %d to %d is above the high watermark %d", b.BaseOffset, b.LastOffset, r.HighWatermark)
		}
		values, err := Values(b.Bytes)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, values[offset-b.BaseOffset:]...)
		offset = b.LastOffset + 1
	}
	return out, offset, nil
}

// checkBatch holds a batch against its header.
func checkBatch(b store.StoredBatch, traits Traits) error {
	if err := batch.Verify(b.Bytes, b.Count()); err != nil {
		return fmt.Errorf("batch at %d: %w", b.BaseOffset, err)
	}
	if traits.Records {
		return nil
	}
	if b.CRC != batch.CRC(b.Bytes) || b.BatchHeader.Bytes != int64(len(b.Bytes)) {
		return fmt.Errorf("batch at %d: header %+v for %d bytes of checksum %x", b.BaseOffset, b.BatchHeader, len(b.Bytes), batch.CRC(b.Bytes))
	}
	return nil
}

// holds expects the values from an offset on.
func (e *env) holds(p store.Partition, offset int64, want ...string) {
	e.t.Helper()
	got, err := readAll(e.ctx, e, p, offset, e.f.Traits)
	if err != nil || !slices.Equal(got, want) {
		e.t.Fatalf("%v holds from %d: %s, %v; want %s", p, offset, strings.Join(got, " "), err, strings.Join(want, " "))
	}
}

// read reads, and gives the values from the offset on.
func (e *env) read(r store.Read) ([]string, store.Records) {
	e.t.Helper()
	out, err := e.Read(e.ctx, r)
	if err != nil {
		e.t.Fatalf("read %+v: %v", r, err)
	}
	values, _, err := valuesFrom(out, r.Offset, e.f.Traits)
	if err != nil {
		e.t.Fatalf("read %+v: %v", r, err)
	}
	return values, out
}
