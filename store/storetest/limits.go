package storetest

import (
	"strings"
	"testing"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

func testLimits(t *testing.T, f Factory) {
	t.Run("batch-bytes", func(t *testing.T) { limitBatch(newEnv(t, f)) })
	t.Run("record-bytes", func(t *testing.T) { limitRecord(newEnv(t, f)) })
	t.Run("records", func(t *testing.T) { limitRecords(newEnv(t, f)) })
	t.Run("idempotence-required", func(t *testing.T) { limitIdempotence(newEnv(t, f)) })
	t.Run("order-of-checks", func(t *testing.T) { limitOrder(newEnv(t, f)) })
}

// tooLarge appends and expects a refusal for size.
func (e *env) tooLarge(a store.Append, limit, actual int64) {
	e.t.Helper()
	if got := e.refused(a, store.CodeTooLarge); got.Limit != limit || got.Actual != actual {
		e.t.Errorf("limit %d, actual %d; want %d, %d", got.Limit, got.Actual, limit, actual)
	}
}

// limitBatch: keys, values and headers count, framing does not.
func limitBatch(e *env) {
	p := e.topic(func(c *store.Config) { c.MaxBatchBytes = 100 })
	pid := e.pid()
	record := batch.Record{
		Key: []byte("12345"), Value: []byte(strings.Repeat("x", 90)), ValueForm: batch.FormText,
		Headers: []batch.Header{{Name: "ab", Value: "cde"}}, Timestamp: batch.NoTimestamp,
	}
	e.stored(seqOf(p, pid, 0, 0, Records(record)), 0)
	record.Headers[0].Value = "cdef"
	e.tooLarge(seqOf(p, pid, 0, 1, Records(record)), 100, 101)
	e.tooLarge(plain(p, strings.Repeat("y", 60), strings.Repeat("z", 41)), 100, 101)
	e.stored(plain(p, strings.Repeat("y", 60), strings.Repeat("z", 40)), 1)
	e.stored(seq(p, pid, 0, 1, 1), 3) // a refusal took no sequence
	e.bounds(p, 0, 4)
}

func limitRecord(e *env) {
	p := e.topic(func(c *store.Config) { c.MaxBatchBytes = store.MaxBatchBytes })
	e.tooLarge(plain(p, strings.Repeat("x", store.MaxRecordBytes+1)), store.MaxRecordBytes, store.MaxRecordBytes+1)
	e.stored(plain(p, strings.Repeat("x", store.MaxRecordBytes)), 0)
}

func limitRecords(e *env) {
	p := e.topic()
	var b batch.Builder
	for range store.MaxBatchRecords {
		b.Add(&batch.Record{Timestamp: batch.NoTimestamp})
	}
	e.stored(store.Append{Partition: p, Batch: b.Build(), NoHold: true}, 0)
	b.Add(&batch.Record{Timestamp: batch.NoTimestamp})
	e.tooLarge(store.Append{Partition: p, Batch: b.Build(), NoHold: true}, store.MaxBatchRecords, store.MaxBatchRecords+1)
	e.bounds(p, 0, store.MaxBatchRecords)
}

func limitIdempotence(e *env) {
	p := e.topic(func(c *store.Config) { c.RequireIdempotence = true })
	e.refused(plain(p, "x"), store.CodeIdempotenceRequired)
	e.bounds(p, 0, 0)
	e.stored(seq(p, e.pid(), 0, 0, 1), 0)
	_, err := e.UpdateTopic(e.ctx, p.Topic, func(t store.Topic) (store.Topic, error) {
		t.Config.RequireIdempotence = false
		return t, nil
	})
	if err != nil {
		e.t.Fatal(err)
	}
	e.stored(plain(p, "x"), 1)
}

// limitOrder: topic and partition, idempotence, size, issued id, rule.
func limitOrder(e *env) {
	p := e.topic(func(c *store.Config) { c.MaxBatchBytes, c.RequireIdempotence = 10, true })
	large, unissued := Texts("more than ten bytes"), int64(sequence.Max)
	e.refused(seqOf(store.Partition{Topic: "none"}, unissued, 0, 1, large), store.CodeUnknownTopic)
	e.refused(seqOf(store.Partition{Topic: p.Topic, Number: 1}, unissued, 0, 1, large), store.CodeUnknownPartition)
	e.refused(store.Append{Partition: p, Batch: large}, store.CodeIdempotenceRequired)
	e.refused(seqOf(p, unissued, 0, 1, large), store.CodeTooLarge)
	e.refused(seqOf(p, unissued, 0, 1, Texts("small")), store.CodeUnknownProducerID)
	pid := e.pid()
	e.stored(seqOf(p, pid, 3, 0, Texts("small")), 0)
	e.refused(seqOf(p, pid, 0, 0, large), store.CodeTooLarge) // fenced as well
}
