package verify

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

const (
	headerPage  = 1000     // headers asked for at a time
	readRecords = 10_000   // records, the most that the server gives
	readBytes   = 16 << 20 // and bytes
)

// log reads on from where it has come to, up to an offset at least. Headers and batches are
// kept apart by the server, so both are read and held against each other.
func (v *verifier) log(ctx context.Context, upto int64) error {
	for v.NextOffset < upto {
		headers, err := v.client.Batches(ctx, v.Topic, v.Partition, v.NextOffset, headerPage)
		if err != nil {
			return err
		}
		if len(headers.Items) == 0 {
			v.bad("there is no batch at offset %d, below the high watermark %d", v.NextOffset, upto)
			v.NextOffset, v.damaged = upto, true
			return nil
		}
		if err := v.bodies(ctx, headers.Items); err != nil {
			return err
		}
	}
	return nil
}

// bodies reads the batches that headers describe.
func (v *verifier) bodies(ctx context.Context, headers []openapi.BatchHeader) error {
	for len(headers) > 0 {
		batches, err := v.read(ctx, headers[0].BaseOffset)
		if errors.Is(err, producer.CodeRecordsDamaged) {
			v.bad("%s", detail(err))
			v.damaged = true
			v.NextOffset = headers[0].LastOffset + 1
			headers = headers[1:]
			continue
		}
		if err != nil {
			return err
		}
		if len(batches) == 0 {
			v.bad("the batch at offset %d cannot be read", headers[0].BaseOffset)
			v.damaged = true
			v.NextOffset = headers[0].LastOffset + 1
			headers = headers[1:]
		}
		for i := range batches {
			if len(headers) == 0 {
				break // they go further than this page of headers
			}
			v.batch(&headers[0], &batches[i])
			headers = headers[1:]
		}
		if v.progress != nil {
			v.progress(v.Records, max(v.segments[len(v.segments)-1].NextOffset-v.EarliestOffset, v.Records))
		}
	}
	return nil
}

// read reads batches from the one that begins at an offset, or, if it begins below the
// first record that is kept, from there.
func (v *verifier) read(ctx context.Context, base int64) ([]producer.StoredBatch, error) {
	from := strconv.FormatInt(max(base, v.EarliestOffset), 10)
	batches, _, err := v.client.StoredBatches(ctx, v.Topic, v.Partition,
		producer.Read{Offset: from, Limit: readRecords, MaxBytes: readBytes})
	return batches, err
}

// batch verifies one batch and what its header says of it.
func (v *verifier) batch(h *openapi.BatchHeader, b *producer.StoredBatch) {
	first := v.Batches == 0 && v.NextOffset == v.EarliestOffset && h.BaseOffset <= v.NextOffset && h.LastOffset >= v.NextOffset
	if h.BaseOffset != v.NextOffset && !first {
		v.bad("a batch begins at offset %d, the one before ends below %d", h.BaseOffset, v.NextOffset)
	}
	parsed, err := batch.Parse(b.Bytes)
	switch {
	case err != nil:
		v.bad("the batch at offset %d: %v", b.BaseOffset, err)
		v.damaged = true
	case b.BaseOffset != h.BaseOffset || int64(parsed.Count) != h.LastOffset-h.BaseOffset+1 || parsed.Count != h.Count ||
		int64(len(b.Bytes)) != h.Bytes || fmt.Sprintf("%08x", batch.CRC(b.Bytes)) != h.CRC:
		v.bad("the batch at offset %d is not the one that its header describes", h.BaseOffset)
		v.damaged = true
	default:
		v.producer(h, &parsed, b.AppendedAt.UnixMilli())
	}
	v.add(h)
	v.Batches++
	v.Records += h.LastOffset - max(h.BaseOffset, v.EarliestOffset) + 1
	v.Bytes += h.Bytes
	v.NextOffset = h.LastOffset + 1
}

// producer applies the append rule to a batch.
func (v *verifier) producer(h *openapi.BatchHeader, b *batch.Batch, at int64) {
	if h.PID == nil || h.Epoch == nil || h.BaseSeq == nil {
		return
	}
	a := sequence.Attempt{Epoch: *h.Epoch, BaseSeq: *h.BaseSeq, Count: b.Count, Digest: b.Digest}
	state := v.states[*h.PID]
	if state == nil {
		state = &sequence.State{}
		v.states[*h.PID] = state
	}
	// Of a producer whose earlier batches have been trimmed nothing is known yet.
	known := state.Exists() || v.EarliestOffset == 0
	if verdict := sequence.Check(state, a); known && verdict.Kind != sequence.Append {
		v.bad("the batch at offset %d, producer %d epoch %d sequence %d, does not follow what that producer sent before (%v)",
			h.BaseOffset, *h.PID, a.Epoch, a.BaseSeq, verdict.Kind)
	}
	*state = state.Apply(a, h.BaseOffset, at)
	if p := v.waiting[*h.PID]; p != nil && p.LastOffset == h.LastOffset {
		v.compare(p, state)
		delete(v.waiting, *h.PID)
	}
}

// add counts a batch for its segment.
func (v *verifier) add(h *openapi.BatchHeader) {
	base := int64(-1)
	for i := range v.segments {
		if v.segments[i].BaseOffset <= h.BaseOffset {
			base = v.segments[i].BaseOffset
		}
	}
	if v.sums[base] == nil {
		v.sums[base] = &sum{}
	}
	v.sums[base].bytes += h.Bytes
	v.sums[base].batches++
}
