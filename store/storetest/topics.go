package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/oncelog/oncelog/store"
)

func testTopics(t *testing.T, f Factory) {
	t.Run("create", func(t *testing.T) { topicsCreate(newEnv(t, f)) })
	t.Run("refused", func(t *testing.T) { topicsRefused(newEnv(t, f)) })
	t.Run("update", func(t *testing.T) { topicsUpdate(newEnv(t, f)) })
	t.Run("update-refused", func(t *testing.T) { topicsUpdateRefused(newEnv(t, f)) })
	t.Run("grow", func(t *testing.T) { topicsGrow(newEnv(t, f)) })
	t.Run("delete", func(t *testing.T) { topicsDelete(newEnv(t, f)) })
	t.Run("list", func(t *testing.T) { topicsList(newEnv(t, f)) })
}

func sameTopic(a, b store.Topic) bool {
	equal := sameTime(a.CreatedAt, b.CreatedAt)
	a.CreatedAt = b.CreatedAt
	return equal && a == b
}

func topicsCreate(e *env) {
	c := store.DefaultConfig()
	c.RetentionMs, c.RetentionBytes, c.SegmentBytes, c.SegmentMs = 1000, 2000, 4000, 5000
	c.MaxBatchBytes, c.ProducerExpiryMs, c.MaxProducers, c.RequireIdempotence = 6000, 7000, 8000, true
	made, err := e.CreateTopic(e.ctx, "a.B_c-1", 3, c)
	if err != nil {
		e.t.Fatal(err)
	}
	if made.Name != "a.B_c-1" || made.Partitions != 3 || made.Config != c || made.Version != 1 || made.ID == "" {
		e.t.Errorf("created %+v", made)
	}
	if !e.f.Traits.RealTime && !sameTime(made.CreatedAt, e.clock.Now()) {
		e.t.Errorf("created at %v, want %v", made.CreatedAt, e.clock.Now())
	}
	if got, err := e.Topic(e.ctx, "a.B_c-1"); err != nil || !sameTopic(got, made) {
		e.t.Errorf("topic: %+v, %v; want %+v", got, err, made)
	}
	for i := range 3 {
		b := e.bounds(store.Partition{Topic: "a.B_c-1", Number: i}, 0, 0)
		if b.TopicID != made.ID {
			e.t.Errorf("bounds name topic %q, want %q", b.TopicID, made.ID)
		}
	}
}

func topicsRefused(e *env) {
	p := e.named("taken", 1)
	c := store.DefaultConfig()
	_, err := e.CreateTopic(e.ctx, "taken", 2, c)
	e.coded("create a topic that exists", err, store.CodeTopicExists)
	for _, name := range []string{"", ".", "..", "a/b", "ü", "a b"} {
		_, err := e.CreateTopic(e.ctx, name, 1, c)
		e.coded("create "+name, err, store.CodeInvalidArgument)
	}
	for _, n := range []int{0, store.MaxPartitions + 1} {
		_, err := e.CreateTopic(e.ctx, "n", n, c)
		e.coded("create with a wrong number of partitions", err, store.CodeInvalidArgument)
	}
	bad := c
	bad.SegmentBytes = store.MinSegmentBytes - 1
	_, err = e.CreateTopic(e.ctx, "small", 1, bad)
	e.coded("create with too small segments", err, store.CodeInvalidArgument)
	_, err = e.Topic(e.ctx, "n")
	e.coded("a topic that was refused", err, store.CodeUnknownTopic)

	for _, q := range []store.Partition{{Topic: "n"}, {Topic: "taken", Number: 1}} {
		code := store.CodeUnknownTopic
		if q.Topic == p.Topic {
			code = store.CodeUnknownPartition
		}
		e.nowhere(q, code)
	}
}

// nowhere expects that every operation on a partition fails with a code.
func (e *env) nowhere(p store.Partition, code store.Code) {
	e.t.Helper()
	pid := e.pid()
	e.refused(plain(p, "x"), code)
	e.refused(seq(p, pid, 0, 0, 1), code)
	for what, call := range partitionCalls(e, p, pid) {
		e.coded(what+" "+p.Topic, call(), code)
	}
}

// partitionCalls is every call that names a partition, except for Append.
func partitionCalls(e *env, p store.Partition, pid int64) map[string]func() error {
	return map[string]func() error{
		"read": func() error {
			_, err := e.Read(e.ctx, store.Read{Partition: p, MaxRecords: 1, MaxBytes: 1})
			return err
		},
		"bounds":  func() error { _, err := e.Bounds(e.ctx, p); return err },
		"wait":    func() error { return e.Wait(e.ctx, p, 0) },
		"info":    func() error { _, err := e.Partition(e.ctx, p); return err },
		"headers": func() error { _, err := e.Headers(e.ctx, p, 0, 1); return err },
		"trim":    func() error { _, err := e.Trim(e.ctx, p, 0); return err },
		"roll":    func() error { _, err := e.Roll(e.ctx, p); return err },
		"list":    func() error { _, err := e.PartitionProducers(e.ctx, p, -1, 10); return err },
		"state":   func() error { _, err := e.PartitionProducer(e.ctx, p, pid); return err },
		"expire":  func() error { return e.ExpireProducer(e.ctx, p, pid) },
		"snapshots": func() error {
			_, err := e.Snapshots(e.ctx, store.SnapshotFilter{Topic: p.Topic, Partition: &p.Number})
			return err
		},
		"take": func() error {
			_, err := e.TakeSnapshots(e.ctx, store.SnapshotFilter{Topic: p.Topic, Partition: &p.Number})
			return err
		},
		"snapshot": func() error { _, _, err := e.Snapshot(e.ctx, p, 0); return err },
		"remove":   func() error { return e.DeleteSnapshot(e.ctx, p, 0) },
		"verify":   func() error { _, err := e.VerifySnapshot(e.ctx, p, 0); return err },
	}
}

func topicsUpdate(e *env) {
	p := e.topic()
	before, err := e.Topic(e.ctx, p.Topic)
	if err != nil {
		e.t.Fatal(err)
	}
	got, err := e.UpdateTopic(e.ctx, p.Topic, func(was store.Topic) (store.Topic, error) {
		if !sameTopic(was, before) {
			e.t.Errorf("update sees %+v, want %+v", was, before)
		}
		was.Config.RetentionMs = 77
		return was, nil
	})
	want := before
	want.Config.RetentionMs, want.Version = 77, 2
	if err != nil || !sameTopic(got, want) {
		e.t.Fatalf("update: %+v, %v; want %+v", got, err, want)
	}
	got, err = e.UpdateTopic(e.ctx, p.Topic, func(was store.Topic) (store.Topic, error) { return was, nil })
	if err != nil || !sameTopic(got, want) {
		e.t.Errorf("an update that changes nothing: %+v, %v; want %+v", got, err, want)
	}
	if got, err := e.Topic(e.ctx, p.Topic); err != nil || !sameTopic(got, want) {
		e.t.Errorf("topic: %+v, %v; want %+v", got, err, want)
	}
}

func topicsUpdateRefused(e *env) {
	p := e.named("t", 2)
	before, err := e.Topic(e.ctx, "t")
	if err != nil {
		e.t.Fatal(err)
	}
	_, err = e.UpdateTopic(e.ctx, "t", func(was store.Topic) (store.Topic, error) { was.Partitions = 1; return was, nil })
	e.coded("fewer partitions", err, store.CodeInvalidArgument)
	_, err = e.UpdateTopic(e.ctx, "t", func(was store.Topic) (store.Topic, error) {
		was.Config.MaxBatchBytes = store.MaxBatchBytes + 1
		return was, nil
	})
	e.coded("too large batches", err, store.CodeInvalidArgument)
	mine := errors.New("mine")
	if _, err = e.UpdateTopic(e.ctx, "t", func(was store.Topic) (store.Topic, error) { return was, mine }); !errors.Is(err, mine) {
		e.t.Errorf("update gives %v, want the callback's error", err)
	}
	_, err = e.UpdateTopic(e.ctx, "none", func(was store.Topic) (store.Topic, error) { return was, nil })
	e.coded("update of no topic", err, store.CodeUnknownTopic)
	if got, err := e.Topic(e.ctx, "t"); err != nil || !sameTopic(got, before) {
		e.t.Errorf("after refusals: %+v, %v; want %+v", got, err, before)
	}
	e.bounds(p, 0, 0)
}

func topicsGrow(e *env) {
	p := e.topic()
	pid := e.pid()
	e.stored(seq(p, pid, 0, 0, 2), 0)
	second := store.Partition{Topic: p.Topic, Number: 1}
	e.nowhere(second, store.CodeUnknownPartition)
	got, err := e.UpdateTopic(e.ctx, p.Topic, func(was store.Topic) (store.Topic, error) { was.Partitions = 2; return was, nil })
	if err != nil || got.Partitions != 2 || got.Version != 2 {
		e.t.Fatalf("grow: %+v, %v", got, err)
	}
	e.bounds(second, 0, 0)
	e.stored(seq(second, pid, 0, 0, 1), 0)
	e.stored(seq(p, pid, 0, 2, 1), 2)
	e.holds(p, 0, "0.0-0", "0.0-1", "0.2-0")
}

func topicsDelete(e *env) {
	p := e.topic()
	pid := e.pid()
	e.stored(seq(p, pid, 4, 0, 3), 0)
	if _, err := e.TakeSnapshots(e.ctx, store.SnapshotFilter{}); err != nil {
		e.t.Fatal(err)
	}
	first := e.bounds(p, 0, 3)
	if err := e.DeleteTopic(e.ctx, p.Topic); err != nil {
		e.t.Fatal(err)
	}
	e.nowhere(p, store.CodeUnknownTopic)
	e.coded("delete again", e.DeleteTopic(e.ctx, p.Topic), store.CodeUnknownTopic)
	if all, err := e.Snapshots(e.ctx, store.SnapshotFilter{}); err != nil || len(all) != 0 {
		e.t.Errorf("snapshots of a deleted topic: %+v, %v", all, err)
	}

	e.named(p.Topic, 1)
	second := e.bounds(p, 0, 0)
	if second.TopicID == first.TopicID {
		e.t.Error("the new topic has the id of the old one")
	}
	e.holds(p, 0)
	_, err := e.PartitionProducer(e.ctx, p, pid)
	e.coded("producer of the old topic", err, store.CodeUnknownProducerID)
	e.out(seq(p, pid, 4, 3, 1), 0, nil, nil)
	e.stored(seq(p, pid, 0, 0, 1), 0)
	e.holds(p, 0, "0.0-0")
}

func topicsList(e *env) {
	names := []string{"B", "a", "a-1", "b", "c"} // in the order of their bytes
	for _, i := range []int{3, 0, 4, 2, 1} {
		e.named(names[i], 1)
	}
	for limit := 1; limit <= len(names)+1; limit++ {
		var got []string
		after := ""
		for {
			page, err := e.Topics(e.ctx, after, limit)
			if err != nil || len(page) > limit {
				e.t.Fatalf("page of %d after %q: %+v, %v", limit, after, page, err)
			}
			if len(page) == 0 {
				break
			}
			for _, topic := range page {
				got = append(got, topic.Name)
			}
			after = page[len(page)-1].Name
		}
		if !slices.Equal(got, names) {
			e.t.Errorf("by pages of %d: %v, want %v", limit, got, names)
		}
	}
	if page, err := e.Topics(e.ctx, "a", 2); err != nil || len(page) != 2 || page[0].Name != "a-1" || page[1].Name != "b" {
		e.t.Errorf("two after a: %+v, %v", page, err)
	}
}
