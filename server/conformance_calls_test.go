package server_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

var _ store.Store = (*remote)(nil)

// all gives the items of a list that are wanted, by pages of the size of limit.
func all[T any](limit int, wanted func(T) bool, page func(producer.Page) ([]T, *string, error)) ([]T, error) {
	var out []T
	p := producer.Page{Limit: min(limit, 1000)}
	for {
		items, next, err := page(p)
		if err != nil {
			return nil, wire(err)
		}
		for _, i := range items {
			if wanted(i) && len(out) < limit {
				out = append(out, i)
			}
		}
		if next == nil {
			return out, nil
		}
		p.Token = *next
	}
}

// convert translates each item.
func convert[A, B any](items []A, f func(A) B) []B {
	var out []B
	for _, i := range items {
		out = append(out, f(i))
	}
	return out
}

func (r *remote) Append(ctx context.Context, a store.Append) (store.Ack, error) {
	var s *producer.Sequence
	if a.Producer != nil {
		s = &producer.Sequence{PID: a.Producer.ID, Epoch: a.Producer.Epoch, BaseSeq: a.Producer.BaseSeq}
	}
	out, err := r.client.AppendBatch(ctx, a.Partition.Topic, a.Partition.Number, s, a.Batch.Bytes, producer.Identity)
	if err != nil {
		return store.Ack{}, wire(err)
	}
	if out.Topic != a.Partition.Topic || out.Partition != a.Partition.Number {
		return store.Ack{}, fmt.Errorf("the answer is about %s/%d", out.Topic, out.Partition)
	}
	ack := store.Ack{BaseOffset: -1, LastOffset: -1, NextSeq: -1, Duplicate: out.Duplicate}
	if out.BaseOffset != nil {
		ack.BaseOffset, ack.LastOffset, ack.AppendedAt = *out.BaseOffset, *out.LastOffset, instant(*out.AppendedAt)
	}
	if out.NextSeq != nil {
		ack.NextSeq = *out.NextSeq
	}
	return ack, nil
}

// Read gives each record as a batch of its own.
func (r *remote) Read(ctx context.Context, q store.Read) (store.Records, error) {
	t, err := r.client.Topic(ctx, q.Partition.Topic)
	if err != nil {
		return store.Records{}, wire(err)
	}
	list, err := r.client.Records(ctx, q.Partition.Topic, q.Partition.Number, producer.Read{
		Offset: strconv.FormatInt(q.Offset, 10), Limit: q.MaxRecords, MaxBytes: q.MaxBytes,
	})
	if err != nil {
		return store.Records{}, wire(err)
	}
	out := store.Records{Earliest: list.EarliestOffset, HighWatermark: list.HighWatermark, TopicID: t.ID}
	next := q.Offset
	for _, rec := range list.Records {
		b := recordBatch(rec)
		out.Batches = append(out.Batches, store.StoredBatch{
			BatchHeader: store.BatchHeader{
				BaseOffset: rec.Offset, LastOffset: rec.Offset, Bytes: int64(len(b.Bytes)), CRC: batch.CRC(b.Bytes),
				AppendedAt: instant(rec.Timestamp),
			},
			Bytes: b.Bytes,
		})
		next = rec.Offset + 1
	}
	if list.NextOffset != next {
		return store.Records{}, fmt.Errorf("nextOffset is %d, want %d", list.NextOffset, next)
	}
	return out, nil
}

// recordBatch encodes the value of a record.
func recordBatch(rec openapi.Record) batch.Batch {
	value := []byte(rec.Value)
	if rec.ValueText != nil {
		value = []byte(*rec.ValueText)
	}
	var b batch.Builder
	b.Add(&batch.Record{Value: value, Timestamp: batch.NoTimestamp})
	return b.Build()
}

func (r *remote) Bounds(ctx context.Context, p store.Partition) (store.Bounds, error) {
	i, err := r.Partition(ctx, p)
	return i.Bounds, err
}

// Wait polls for a record at the offset.
func (r *remote) Wait(ctx context.Context, p store.Partition, offset int64) error {
	for {
		list, err := r.client.Records(ctx, p.Topic, p.Number, producer.Read{
			Offset: strconv.FormatInt(offset, 10), Limit: 1, Wait: 10 * time.Second,
		})
		switch {
		case errors.Is(err, producer.CodeRecordsTrimmed), err == nil && list.HighWatermark > offset:
			return nil
		case err != nil:
			return wire(err)
		}
	}
}

// ProducerOwner asks the engine: the interface does not tell.
func (r *remote) ProducerOwner(ctx context.Context, id int64) (string, error) {
	return r.behind.ProducerOwner(ctx, id)
}

func (r *remote) AllocateProducer(ctx context.Context, _ string) (store.ProducerID, error) {
	p, err := r.client.AllocateProducer(ctx)
	return store.ProducerID{ID: p.PID, Epoch: p.Epoch}, wire(err)
}

func (r *remote) Ready() error {
	return wire(r.client.Ready(context.Background()))
}

// Incidents asks the engine: the interface tells them to the status page only.
func (r *remote) Incidents(after int64, limit int) []store.Incident {
	return r.behind.Incidents(after, limit)
}

func (r *remote) Rejections(id int64) []store.Incident {
	p, err := r.client.Producer(context.Background(), id)
	if err != nil {
		r.t.Error(err)
	}
	return convert(p.Rejected, incidentOf)
}

func (r *remote) Held(p store.Partition, id int64) []store.HeldBatch {
	s, err := r.client.PartitionProducer(context.Background(), p.Topic, p.Number, id)
	if err != nil {
		r.t.Error(err)
	}
	return convert(s.Held, func(h openapi.HeldBatch) store.HeldBatch {
		return store.HeldBatch{Epoch: h.Epoch, BaseSeq: h.BaseSeq, LastSeq: h.LastSeq, Since: instant(h.Since)}
	})
}

func (r *remote) Stats() store.Stats { return store.Stats{} }

func (r *remote) Close() error {
	r.disconnect()
	return nil
}

func (r *remote) CreateTopic(ctx context.Context, name string, partitions int, c store.Config) (store.Topic, error) {
	t, err := r.client.CreateTopic(ctx, openapi.CreateTopicRequest{Name: name, Partitions: &partitions, TopicConfig: wireConfig(c)})
	return topicOf(t), wire(err)
}

func (r *remote) Topic(ctx context.Context, name string) (store.Topic, error) {
	t, err := r.client.Topic(ctx, name)
	return topicOf(t), wire(err)
}

func (r *remote) Topics(ctx context.Context, after string, limit int) ([]store.Topic, error) {
	topics, err := all(limit, func(t openapi.Topic) bool { return t.Name > after },
		func(p producer.Page) ([]openapi.Topic, *string, error) {
			list, err := r.client.Topics(ctx, p)
			return list.Items, list.NextPageToken, err
		})
	return convert(topics, topicOf), err
}

// UpdateTopic changes the topic on condition that it is still the one that change saw.
func (r *remote) UpdateTopic(ctx context.Context, name string, change func(store.Topic) (store.Topic, error)) (store.Topic, error) {
	was, err := r.client.Topic(ctx, name)
	if err != nil {
		return store.Topic{}, wire(err)
	}
	want, err := change(topicOf(was))
	if err != nil {
		return store.Topic{}, err
	}
	t, err := r.client.UpdateTopic(ctx, name, openapi.PutTopicRequest{Partitions: &want.Partitions, TopicConfig: wireConfig(want.Config)}, &was)
	return topicOf(t), wire(err)
}

func (r *remote) DeleteTopic(ctx context.Context, name string) error {
	return wire(r.client.DeleteTopic(ctx, name))
}

func (r *remote) Partition(ctx context.Context, p store.Partition) (store.PartitionInfo, error) {
	return r.describe(ctx, p, func() (openapi.Partition, error) { return r.client.Partition(ctx, p.Topic, p.Number) })
}

func (r *remote) Roll(ctx context.Context, p store.Partition) (store.PartitionInfo, error) {
	return r.describe(ctx, p, func() (openapi.Partition, error) { return r.client.Roll(ctx, p.Topic, p.Number) })
}

// describe adds the topic's id, which a partition does not tell.
func (r *remote) describe(ctx context.Context, p store.Partition, call func() (openapi.Partition, error)) (store.PartitionInfo, error) {
	i, err := call()
	if err != nil {
		return store.PartitionInfo{}, wire(err)
	}
	t, err := r.client.Topic(ctx, p.Topic)
	if err != nil {
		return store.PartitionInfo{}, wire(err)
	}
	return partitionOf(i, t.ID), nil
}

func (r *remote) Headers(ctx context.Context, p store.Partition, offset int64, limit int) ([]store.BatchHeader, error) {
	var out []store.BatchHeader
	for len(out) < limit {
		list, err := r.client.Batches(ctx, p.Topic, p.Number, offset, min(limit-len(out), 1000))
		if err != nil {
			return nil, wire(err)
		}
		out = append(out, convert(list.Items, headerOf)...)
		if offset = list.NextOffset; len(list.Items) == 0 || offset == list.HighWatermark {
			break
		}
	}
	return out, nil
}

func (r *remote) Trim(ctx context.Context, p store.Partition, before int64) (int64, error) {
	out, err := r.client.Trim(ctx, p.Topic, p.Number, before)
	return out.EarliestOffset, wire(err)
}

func (r *remote) Producers(ctx context.Context, after int64, limit int) ([]store.ProducerSummary, error) {
	list, err := all(limit, func(p openapi.ProducerSummary) bool { return p.PID > after },
		func(p producer.Page) ([]openapi.ProducerSummary, *string, error) {
			list, err := r.client.Producers(ctx, p)
			return list.Items, list.NextPageToken, err
		})
	return convert(list, summaryOf), err
}

// VisitProducers asks the engine.
func (r *remote) VisitProducers(ctx context.Context, topic string, visit func(*store.ProducerSummary) error) error {
	return r.behind.VisitProducers(ctx, topic, visit)
}

func (r *remote) Producer(ctx context.Context, id int64) ([]store.ProducerState, error) {
	p, err := r.client.Producer(ctx, id)
	return convert(p.Partitions, stateOf), wire(err)
}

func (r *remote) PartitionProducers(ctx context.Context, p store.Partition, after int64, limit int) ([]store.ProducerState, error) {
	list, err := all(limit, func(s openapi.PartitionProducer) bool { return s.PID > after },
		func(page producer.Page) ([]openapi.PartitionProducer, *string, error) {
			list, err := r.client.PartitionProducers(ctx, p.Topic, p.Number, page)
			return list.Items, list.NextPageToken, err
		})
	return convert(list, stateOf), err
}

// RecentProducers asks the engine: the interface tells them to the status page only.
func (r *remote) RecentProducers(ctx context.Context, p store.Partition, limit int) ([]store.ProducerState, error) {
	return r.behind.RecentProducers(ctx, p, limit)
}

func (r *remote) PartitionProducer(ctx context.Context, p store.Partition, id int64) (store.ProducerState, error) {
	s, err := r.client.PartitionProducer(ctx, p.Topic, p.Number, id)
	if err != nil {
		return store.ProducerState{}, wire(err)
	}
	return stateOf(s), nil
}

func (r *remote) ExpireProducer(ctx context.Context, p store.Partition, id int64) error {
	return wire(r.client.ExpireProducer(ctx, p.Topic, p.Number, id))
}

func (r *remote) TakeSnapshots(ctx context.Context, f store.SnapshotFilter) ([]store.Snapshot, error) {
	list, err := r.client.TakeSnapshots(ctx, producer.SnapshotFilter{Topic: f.Topic, Partition: f.Partition})
	return convert(list, snapshotOf), wire(err)
}

func (r *remote) Snapshots(ctx context.Context, f store.SnapshotFilter) ([]store.Snapshot, error) {
	list, err := all(1<<30, func(openapi.Snapshot) bool { return true },
		func(p producer.Page) ([]openapi.Snapshot, *string, error) {
			p.Limit = 2
			list, err := r.client.Snapshots(ctx, producer.SnapshotFilter{Topic: f.Topic, Partition: f.Partition}, p)
			return list.Items, list.NextPageToken, err
		})
	return convert(list, snapshotOf), err
}

func (r *remote) Snapshot(ctx context.Context, p store.Partition, offset int64) (store.Snapshot, []store.ProducerState, error) {
	var s store.Snapshot
	list, err := all(1<<30, func(openapi.SnapshotProducer) bool { return true },
		func(page producer.Page) ([]openapi.SnapshotProducer, *string, error) {
			page.Limit = 2
			d, err := r.client.Snapshot(ctx, p.Topic, p.Number, offset, page)
			if err != nil {
				return nil, nil, err
			}
			s = snapshotOf(openapi.Snapshot{
				Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, CreatedAt: d.CreatedAt, Reason: d.Reason,
				Producers: d.Producers, Bytes: d.Bytes, CRC: d.CRC,
			})
			return d.Items, d.NextPageToken, nil
		})
	return s, convert(list, func(sp openapi.SnapshotProducer) store.ProducerState {
		return stateOf(openapi.PartitionProducer{
			Topic: p.Topic, Partition: p.Number, PID: sp.PID, Epoch: sp.Epoch, FirstSeq: sp.FirstSeq, LastSeq: sp.LastSeq,
			LastOffset: sp.LastOffset, LastTimestamp: sp.LastTimestamp, ExpiresAt: sp.LastTimestamp, Recent: sp.Recent,
		})
	}), err
}

func (r *remote) DeleteSnapshot(ctx context.Context, p store.Partition, offset int64) error {
	return wire(r.client.DeleteSnapshot(ctx, p.Topic, p.Number, offset))
}

func (r *remote) VerifySnapshot(ctx context.Context, p store.Partition, offset int64) (store.SnapshotDiff, error) {
	v, err := r.client.VerifySnapshot(ctx, p.Topic, p.Number, offset)
	if err == nil && v.Match != (len(v.Differences) == 0) {
		return store.SnapshotDiff{}, fmt.Errorf("match is %v with %d differences", v.Match, len(v.Differences))
	}
	return store.SnapshotDiff{Differences: v.Differences}, wire(err)
}
