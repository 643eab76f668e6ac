// Command script is what every generated client does, here with the types and the client
// that oapi-codegen writes into package oncelog.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"time"

	"example.com/script/oncelog"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: script URL TOPIC TOKEN")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "go:", err)
		os.Exit(1)
	}
	fmt.Println("go: all steps done")
}

func run(ctx context.Context, url, topic, token string) error {
	stranger, err := oncelog.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	refused, err := stranger.CreateTopicWithResponse(ctx, oncelog.CreateTopicRequest{Name: topic})
	if err != nil {
		return err
	}
	if p := refused.ApplicationproblemJSON401; p == nil || p.Code != oncelog.ProblemCodeUnauthenticated {
		return fmt.Errorf("a stranger creates a topic: %s", refused.Body)
	}
	client, err := oncelog.NewClientWithResponses(url, oncelog.WithRequestEditorFn(
		func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}))
	if err != nil {
		return err
	}
	return (&script{client: client, topic: topic}).run(ctx)
}

type script struct {
	client *oncelog.ClientWithResponses
	topic  string
	pid    int64
	failed error // the first step that failed
}

func (s *script) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.create, s.append, s.read, s.listProducers, s.snapshot, s.remove,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if s.failed != nil {
			return s.failed
		}
	}
	return nil
}

// equal keeps the first difference.
func (s *script) equal(what string, got, want any) {
	if s.failed == nil && !reflect.DeepEqual(got, want) {
		s.failed = fmt.Errorf("%s is %v, not %v", what, got, want)
	}
}

func (s *script) create(ctx context.Context) error {
	topic, err := s.client.CreateTopicWithResponse(ctx, oncelog.CreateTopicRequest{Name: s.topic, Partitions: new(int32(1))})
	if err != nil {
		return err
	}
	if topic.JSON201 == nil {
		return fmt.Errorf("create a topic: %s", topic.Body)
	}
	s.equal("name", topic.JSON201.Name, s.topic)
	producer, err := s.client.AllocateProducerWithResponse(ctx)
	if err != nil {
		return err
	}
	if producer.JSON201 == nil {
		return fmt.Errorf("take a producer id: %s", producer.Body)
	}
	s.pid = producer.JSON201.Pid
	return nil
}

func (s *script) append(ctx context.Context) error {
	batch := oncelog.AppendRequest{
		Pid: &s.pid, Epoch: new(int64(0)), BaseSeq: new(int64(0)),
		Records: []oncelog.AppendRecord{
			{Key: new("a"), Value: map[string]any{"n": 1}, Headers: &[]oncelog.Header{{Name: "trace", Value: "1"}}},
			{ValueText: new("two"), Timestamp: new(time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC))},
		},
	}
	params := &oncelog.AppendBatchParams{Prefer: new("wait=0")}
	first, err := s.client.AppendBatchWithResponse(ctx, s.topic, 0, params, batch)
	if err != nil {
		return err
	}
	if first.JSON200 == nil {
		return fmt.Errorf("append: %s", first.Body)
	}
	s.equal("duplicate", first.JSON200.Duplicate, false)
	s.equal("baseOffset", first.JSON200.BaseOffset, new(int64(0)))
	s.equal("lastOffset", first.JSON200.LastOffset, new(int64(1)))
	s.equal("nextSeq", first.JSON200.NextSeq, new(int64(2)))

	again, err := s.client.AppendBatchWithResponse(ctx, s.topic, 0, params, batch)
	if err != nil {
		return err
	}
	if again.JSON200 == nil {
		return fmt.Errorf("append again: %s", again.Body)
	}
	want := *first.JSON200
	want.Duplicate = true
	s.equal("the answer to the duplicate", *again.JSON200, want)

	batch.BaseSeq = new(int64(5))
	gap, err := s.client.AppendBatchWithResponse(ctx, s.topic, 0, params, batch)
	if err != nil {
		return err
	}
	if gap.ApplicationproblemJSON409 == nil {
		return fmt.Errorf("append after a gap: %s", gap.Body)
	}
	s.equal("code", gap.ApplicationproblemJSON409.Code, oncelog.ProblemCodeOutOfOrderSequence)
	s.equal("retryable", gap.ApplicationproblemJSON409.Retryable, true)
	s.equal("outcome", gap.ApplicationproblemJSON409.Outcome, oncelog.NotApplied)
	s.equal("expectedSeq", gap.ApplicationproblemJSON409.ExpectedSeq, new(int64(2)))
	return nil
}

func (s *script) read(ctx context.Context) error {
	read, err := s.client.ReadRecordsWithResponse(ctx, s.topic, 0, &oncelog.ReadRecordsParams{Offset: new("earliest"), Limit: new(int32(10))})
	if err != nil {
		return err
	}
	if read.JSON200 == nil || len(read.JSON200.Records) != 2 {
		return fmt.Errorf("read: %s", read.Body)
	}
	s.equal("highWatermark", read.JSON200.HighWatermark, int64(2))
	s.equal("value", read.JSON200.Records[0].Value, map[string]any{"n": 1.0})
	s.equal("headers", read.JSON200.Records[0].Headers, []oncelog.Header{{Name: "trace", Value: "1"}})
	s.equal("valueText", read.JSON200.Records[1].ValueText, new("two"))
	return nil
}

func (s *script) listProducers(ctx context.Context) error {
	list, err := s.client.ListPartitionProducersWithResponse(ctx, s.topic, 0, nil)
	if err != nil {
		return err
	}
	if list.JSON200 == nil || len(list.JSON200.Items) != 1 {
		return fmt.Errorf("list producers: %s", list.Body)
	}
	p := list.JSON200.Items[0]
	s.equal("pid", p.Pid, s.pid)
	s.equal("lastSeq", p.LastSeq, int64(1))
	s.equal("counters", []int64{p.Counters.Accepted, p.Counters.Duplicate, p.Counters.OutOfOrder}, []int64{1, 1, 1})
	all, err := s.client.ListProducersWithResponse(ctx, nil)
	if err != nil {
		return err
	}
	if all.JSON200 == nil || len(all.JSON200.Items) == 0 {
		return fmt.Errorf("list all producers: %s", all.Body)
	}
	return nil
}

func (s *script) snapshot(ctx context.Context) error {
	taken, err := s.client.TakeSnapshotsWithResponse(ctx, oncelog.SnapshotRequest{Topic: &s.topic, Partition: new(int32(0))})
	if err != nil {
		return err
	}
	if taken.JSON201 == nil || len(taken.JSON201.Items) != 1 {
		return fmt.Errorf("take a snapshot: %s", taken.Body)
	}
	s.equal("reason", taken.JSON201.Items[0].Reason, oncelog.Request)
	verified, err := s.client.VerifySnapshotWithResponse(ctx, s.topic, 0, taken.JSON201.Items[0].Offset)
	if err != nil {
		return err
	}
	if verified.JSON200 == nil {
		return fmt.Errorf("verify a snapshot: %s", verified.Body)
	}
	s.equal("match", verified.JSON200.Match, true)
	s.equal("differences", len(verified.JSON200.Differences), 0)
	return nil
}

func (s *script) remove(ctx context.Context) error {
	deleted, err := s.client.DeleteTopicWithResponse(ctx, s.topic, nil)
	if err != nil {
		return err
	}
	s.equal("status", deleted.StatusCode(), http.StatusNoContent)
	gone, err := s.client.DescribeTopicWithResponse(ctx, s.topic, nil)
	if err != nil {
		return err
	}
	if gone.ApplicationproblemJSON404 == nil {
		return fmt.Errorf("describe a deleted topic: %s", gone.Body)
	}
	s.equal("code", gone.ApplicationproblemJSON404.Code, oncelog.ProblemCodeUnknownTopic)
	return nil
}
