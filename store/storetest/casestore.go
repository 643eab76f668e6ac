package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/oncelog/oncelog/store"
)

// StoreTarget plays cases against an engine directly, answering as the HTTP contract
// has it. reopen restarts the engine.
func StoreTarget(tb testing.TB, s store.Store, topic string, reopen func(s store.Store, kill bool) store.Store) CaseTarget {
	tb.Helper()
	if _, err := s.CreateTopic(tb.Context(), topic, 1, store.DefaultConfig()); err != nil {
		tb.Fatal(err)
	}
	return &storeTarget{ctx: tb.Context(), s: s, partition: store.Partition{Topic: topic}, reopen: reopen}
}

type storeTarget struct {
	ctx       context.Context //nolint:containedctx // that of the test, which outlives the target
	s         store.Store
	partition store.Partition
	reopen    func(s store.Store, kill bool) store.Store
}

func (c *storeTarget) Producer() CaseResult {
	id, err := c.s.AllocateProducer(c.ctx, "")
	return answer(201, err, map[string]any{"pid": id.ID, "epoch": id.Epoch})
}

func (c *storeTarget) Append(a CaseAppend) CaseResult {
	ack, err := c.s.Append(c.ctx, store.Append{
		Partition: c.partition,
		Producer:  &store.ProducerSeq{ID: a.PID, Epoch: a.Epoch, BaseSeq: a.BaseSeq},
		Batch:     Texts(a.Values()...),
		NoHold:    true,
	})
	body := map[string]any{
		"topic": c.partition.Topic, "partition": 0, "nextSeq": ack.NextSeq, "duplicate": ack.Duplicate,
		"baseOffset": any(nil), "lastOffset": any(nil),
	}
	if ack.BaseOffset >= 0 {
		body["baseOffset"], body["lastOffset"] = ack.BaseOffset, ack.LastOffset
	}
	return answer(200, err, body)
}

func (c *storeTarget) Restart(kill bool) { c.s = c.reopen(c.s, kill) }

func (c *storeTarget) Roll() CaseResult {
	info, err := c.s.Roll(c.ctx, c.partition)
	return answer(200, err, partitionBody(info))
}

func (c *storeTarget) Snapshot() CaseResult {
	_, err := c.s.TakeSnapshots(c.ctx, store.SnapshotFilter{Topic: c.partition.Topic, Partition: &c.partition.Number})
	return answer(201, err, nil)
}

func (c *storeTarget) Trim(before int64) CaseResult {
	earliest, err := c.s.Trim(c.ctx, c.partition, before)
	return answer(200, err, map[string]any{"earliestOffset": earliest})
}

func (c *storeTarget) Expire(pid int64) CaseResult {
	return answer(204, c.s.ExpireProducer(c.ctx, c.partition, pid), nil)
}

func (c *storeTarget) State(pid int64) CaseResult {
	p, err := c.s.PartitionProducer(c.ctx, c.partition, pid)
	recent := []any{}
	for _, r := range p.State.Recent() {
		recent = append(recent, map[string]any{"baseSeq": r.BaseSeq, "lastSeq": r.LastSeq, "baseOffset": r.BaseOffset})
	}
	return answer(200, err, map[string]any{
		"pid": p.ID, "epoch": p.State.Epoch(), "firstSeq": p.State.FirstSeq(), "lastSeq": p.State.LastSeq(),
		"lastOffset": p.State.LastOffset(), "recent": recent,
	})
}

func (c *storeTarget) Partition() CaseResult {
	info, err := c.s.Partition(c.ctx, c.partition)
	return answer(200, err, partitionBody(info))
}

func partitionBody(i store.PartitionInfo) map[string]any {
	return map[string]any{"earliestOffset": i.Earliest, "nextOffset": i.HighWatermark, "producers": i.Producers}
}

// answer is what the contract makes of a result.
func answer(status int, err error, body map[string]any) CaseResult {
	if err == nil {
		return CaseResult{Status: status, Body: body}
	}
	code := store.CodeOf(err)
	body = map[string]any{"code": string(code), "error": err.Error(), "retryable": code == store.CodeOutOfOrderSequence}
	if e, ok := errors.AsType[*store.Error](err); ok {
		addDetails(body, e)
	}
	return CaseResult{Status: statusOf(code), Body: body}
}

// addDetails adds the members that the contract gives to the problem of a code.
func addDetails(body map[string]any, e *store.Error) {
	if b := e.Bounds; b != nil {
		body["earliestOffset"], body["nextOffset"] = b.Earliest, b.HighWatermark
	}
	s := e.Sequence
	if s == nil {
		return
	}
	switch e.Code { //nolint:exhaustive // the codes of the append rule
	case store.CodeOutOfOrderSequence:
		body["expectedSeq"], body["receivedSeq"] = s.ExpectedSeq, s.ReceivedSeq
		body["lastSeq"], body["currentEpoch"] = s.LastSeq, s.CurrentEpoch
		body["gap"] = s.ReceivedSeq - s.ExpectedSeq
	case store.CodeSequenceOverlap:
		body["expectedSeq"], body["receivedSeq"] = s.ExpectedSeq, s.ReceivedSeq
	case store.CodeSequenceReused:
		body["originalOffset"] = s.OriginalOffset
	case store.CodeProducerFenced:
		body["currentEpoch"] = s.CurrentEpoch
	case store.CodeProducerExpired:
		body["lastSeq"], body["lastEpoch"], body["action"] = s.LastSeq, s.LastEpoch, "bump-epoch"
	}
}

// statusOf gives the contract's status of the codes that cases meet.
func statusOf(c store.Code) int {
	switch c { //nolint:exhaustive // the others are a failure
	case store.CodeUnknownTopic, store.CodeUnknownPartition, store.CodeUnknownProducerID, store.CodeUnknownSnapshot:
		return 404
	case store.CodeOutOfOrderSequence, store.CodeSequenceOverlap, store.CodeProducerFenced, store.CodeProducerExpired:
		return 409
	case store.CodeSequenceReused, store.CodeInvalidArgument:
		return 422
	case store.CodeOffsetOutOfRange:
		return 416
	case store.CodeRecordsTrimmed:
		return 410
	}
	return 500
}
