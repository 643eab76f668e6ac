package server_test

import (
	"errors"
	"strconv"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// wire translates a client's error into the engine's that caused it.
func wire(err error) error {
	e, ok := errors.AsType[*producer.Error](err)
	if !ok {
		return err
	}
	if e.Problem == nil {
		return err
	}
	p := e.Problem
	out := &store.Error{Code: store.Code(p.Code), Detail: p.Detail, Err: err, Limit: value(p.Limit), Actual: value(p.Actual)}
	if p.EarliestOffset != nil || p.NextOffset != nil {
		out.Bounds = &store.Bounds{Earliest: value(p.EarliestOffset), HighWatermark: value(p.NextOffset)}
	}
	if p.ExpectedSeq != nil || p.ReceivedSeq != nil || p.LastSeq.Present || p.CurrentEpoch.Present ||
		p.LastEpoch != nil || p.OriginalOffset != nil {
		out.Sequence = &store.SequenceError{
			ExpectedSeq: value(p.ExpectedSeq), ReceivedSeq: value(p.ReceivedSeq), LastSeq: p.LastSeq.Value,
			CurrentEpoch: p.CurrentEpoch.Value, LastEpoch: value(p.LastEpoch), OriginalOffset: value(p.OriginalOffset),
		}
	}
	if p.ExpiredAt != nil && out.Sequence != nil {
		out.Sequence.ExpiredAt = instant(*p.ExpiredAt)
	}
	return out
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// instant reads a time of the contract's one form.
func instant(s string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05.000Z", s)
	if err != nil {
		panic(err)
	}
	return t
}

func crcOf(s string) uint32 {
	n, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		panic(err)
	}
	return uint32(n)
}

func wireConfig(c store.Config) openapi.TopicConfig {
	return openapi.TopicConfig{
		RetentionMs: &c.RetentionMs, RetentionBytes: &c.RetentionBytes, SegmentBytes: &c.SegmentBytes, SegmentMs: &c.SegmentMs,
		MaxBatchBytes: &c.MaxBatchBytes, ProducerExpiryMs: &c.ProducerExpiryMs, MaxProducers: &c.MaxProducers,
		RequireIdempotence: &c.RequireIdempotence,
	}
}

func topicOf(t openapi.Topic) store.Topic {
	if t.Name == "" { // there was an error
		return store.Topic{}
	}
	return store.Topic{
		Name: t.Name, ID: t.ID, Partitions: t.Partitions, Version: t.Version, CreatedAt: instant(t.CreatedAt),
		Config: store.Config{
			RetentionMs: t.RetentionMs, RetentionBytes: t.RetentionBytes, SegmentBytes: t.SegmentBytes, SegmentMs: t.SegmentMs,
			MaxBatchBytes: t.MaxBatchBytes, ProducerExpiryMs: t.ProducerExpiryMs, MaxProducers: t.MaxProducers,
			RequireIdempotence: t.RequireIdempotence,
		},
	}
}

func partitionOf(i openapi.Partition, topicID string) store.PartitionInfo {
	return store.PartitionInfo{
		Partition: store.Partition{Topic: i.Topic, Number: i.Partition},
		Bounds:    store.Bounds{Earliest: i.EarliestOffset, HighWatermark: i.NextOffset, TopicID: topicID},
		Bytes:     i.Bytes, Producers: i.Producers, Parked: i.Parked,
		Segments: convert(i.Segments, func(s openapi.Segment) store.Segment {
			return store.Segment{
				BaseOffset: s.BaseOffset, NextOffset: s.NextOffset, Bytes: s.Bytes, Batches: s.Batches, CreatedAt: instant(s.CreatedAt),
			}
		}),
	}
}

func headerOf(h openapi.BatchHeader) store.BatchHeader {
	out := store.BatchHeader{
		BaseOffset: h.BaseOffset, LastOffset: h.LastOffset, Bytes: h.Bytes, AppendedAt: instant(h.AppendedAt), CRC: crcOf(h.CRC),
	}
	if h.PID != nil {
		out.Producer = &store.ProducerSeq{ID: *h.PID, Epoch: *h.Epoch, BaseSeq: *h.BaseSeq}
	}
	return out
}

func countersOf(c openapi.ProducerCounters) store.Counters {
	return store.Counters{
		Accepted: c.Accepted, Duplicate: c.Duplicate, OutOfOrder: c.OutOfOrder, Fenced: c.Fenced, Reused: c.Reused, Held: c.Held,
	}
}

// stateOf rebuilds a state from what is shown of it: digests are not, nor when the
// batches before the last one arrived.
func stateOf(p openapi.PartitionProducer) store.ProducerState {
	var state sequence.State
	for _, b := range p.Recent {
		state = state.Apply(sequence.Attempt{
			Epoch: p.Epoch, BaseSeq: b.BaseSeq, Count: int32(b.LastSeq - b.BaseSeq + 1),
		}, b.BaseOffset, instant(p.LastTimestamp).UnixMilli())
	}
	if state.FirstSeq() != p.FirstSeq || state.LastSeq() != p.LastSeq || state.LastOffset() != p.LastOffset {
		panic("firstSeq, lastSeq and lastOffset do not go with the recent batches")
	}
	return store.ProducerState{
		Partition: store.Partition{Topic: p.Topic, Number: p.Partition}, ID: p.PID, State: state,
		ExpiresAt: instant(p.ExpiresAt), Counters: countersOf(p.Counters),
	}
}

func summaryOf(p openapi.ProducerSummary) store.ProducerSummary {
	return store.ProducerSummary{
		ID: p.PID, Epoch: p.Epoch, Partitions: p.Partitions, LastTimestamp: instant(p.LastTimestamp),
		ExpiresAt: instant(p.ExpiresAt), Counters: countersOf(p.Counters),
	}
}

func snapshotOf(s openapi.Snapshot) store.Snapshot {
	return store.Snapshot{
		Partition: store.Partition{Topic: s.Topic, Number: s.Partition}, Offset: s.Offset, CreatedAt: instant(s.CreatedAt),
		Reason: store.SnapshotReason(s.Reason), Producers: s.Producers, Bytes: s.Bytes, CRC: crcOf(s.CRC),
	}
}

// incidentOf leaves the number out, which is not shown, and how long the batch waited.
func incidentOf(i openapi.Incident) store.Incident {
	optional := func(n *int64) int64 {
		if n == nil {
			return -1
		}
		return *n
	}
	return store.Incident{
		At: instant(i.At), Partition: store.Partition{Topic: i.Topic, Number: i.Partition},
		Producer: store.ProducerSeq{ID: i.PID, Epoch: i.Epoch, BaseSeq: i.BaseSeq}, Count: int32(i.LastSeq - i.BaseSeq + 1),
		Code: store.Code(i.Code), Lasting: i.Lasting,
		ExpectedSeq: optional(i.ExpectedSeq), CurrentEpoch: optional(i.CurrentEpoch), Offset: optional(i.Offset),
	}
}
