package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// snapshotsCmd manages snapshots of producer state.
type snapshotsCmd struct {
	List   snapshotsListCmd   `cmd:"" default:"withargs" help:"List snapshots. The default."`
	Take   snapshotsTakeCmd   `cmd:"" help:"Take snapshots now."`
	Show   snapshotsShowCmd   `cmd:"" help:"Show a snapshot's producers."`
	Verify snapshotsVerifyCmd `cmd:"" help:"Compare snapshots with the state rebuilt from the log; exit 1 when one differs."`
	Delete snapshotsDeleteCmd `cmd:"" help:"Delete a snapshot."`
}

// snapshotFilter picks partitions.
type snapshotFilter struct {
	Topic     string `placeholder:"T" help:"Only this topic."`
	Partition *int   `placeholder:"P" help:"Only this partition of the topic."`
}

// Validate wants a topic with a partition.
func (f *snapshotFilter) Validate() error {
	if f.Partition != nil && f.Topic == "" {
		return errors.New("--partition needs --topic")
	}
	return nil
}

func (f *snapshotFilter) filter() producer.SnapshotFilter {
	return producer.SnapshotFilter{Topic: f.Topic, Partition: f.Partition}
}

func (f *snapshotFilter) list(ctx context.Context, client *producer.Client) ([]openapi.Snapshot, error) {
	return allPages(func(p producer.Page) ([]openapi.Snapshot, *string, error) {
		list, err := client.Snapshots(ctx, f.filter(), p)
		return list.Items, list.NextPageToken, err
	})
}

// snapshotName names one snapshot.
type snapshotName struct {
	Topic     string `arg:"" help:"The topic."`
	Partition int    `arg:"" help:"The partition."`
	Offset    int64  `arg:"" help:"The snapshot's offset."`
}

func snapshotColumns() []column[openapi.Snapshot] {
	return []column[openapi.Snapshot]{
		{"TOPIC", func(s openapi.Snapshot) any { return s.Topic }},
		{"PARTITION", func(s openapi.Snapshot) any { return s.Partition }},
		{"OFFSET", func(s openapi.Snapshot) any { return s.Offset }},
		{"REASON", func(s openapi.Snapshot) any { return s.Reason }},
		{"PRODUCERS", func(s openapi.Snapshot) any { return s.Producers }},
		{"SIZE", func(s openapi.Snapshot) any { return byteSize(s.Bytes) }},
		{"CRC", func(s openapi.Snapshot) any { return s.CRC }},
		{"CREATED", func(s openapi.Snapshot) any { return s.CreatedAt }},
	}
}

// snapshotsListCmd lists snapshots.
type snapshotsListCmd struct {
	remote
	output
	snapshotFilter
}

// Run lists them.
func (c *snapshotsListCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	items, err := c.list(ctx, client)
	if err != nil {
		return err
	}
	return writeItems(std, c.output, snapshotColumns(), items)
}

// snapshotsTakeCmd takes snapshots.
type snapshotsTakeCmd struct {
	remote
	output
	snapshotFilter
}

// Run takes them.
func (c *snapshotsTakeCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	items, err := client.TakeSnapshots(ctx, c.filter())
	if err != nil {
		return explain(err)
	}
	return writeItems(std, c.output, snapshotColumns(), items)
}

// snapshotsShowCmd shows the producers in a snapshot.
type snapshotsShowCmd struct {
	remote
	output
	snapshotName
}

// Run shows them.
func (c *snapshotsShowCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	items, err := allPages(func(p producer.Page) ([]openapi.SnapshotProducer, *string, error) {
		d, err := client.Snapshot(ctx, c.Topic, c.Partition, c.Offset, p)
		return d.Items, d.NextPageToken, err
	})
	if err != nil {
		return err
	}
	return writeItems(std, c.output, []column[openapi.SnapshotProducer]{
		{"PID", func(p openapi.SnapshotProducer) any { return p.PID }},
		{"EPOCH", func(p openapi.SnapshotProducer) any { return p.Epoch }},
		{"FIRST SEQ", func(p openapi.SnapshotProducer) any { return p.FirstSeq }},
		{"LAST SEQ", func(p openapi.SnapshotProducer) any { return p.LastSeq }},
		{"LAST OFFSET", func(p openapi.SnapshotProducer) any { return p.LastOffset }},
		{"LAST ACTIVE", func(p openapi.SnapshotProducer) any { return p.LastTimestamp }},
		{"BATCHES", func(p openapi.SnapshotProducer) any { return len(p.Recent) }},
	}, items)
}

// snapshotsVerifyCmd compares snapshots with the log.
type snapshotsVerifyCmd struct {
	remote
	output
	snapshotFilter
	Offset *int64 `placeholder:"N" help:"Only the one at this offset."`
}

// verification is the outcome for one snapshot.
type verification struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
	openapi.SnapshotVerification
}

// Run compares them. A snapshot that recovery has replaced meanwhile is passed over.
func (c *snapshotsVerifyCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	snapshots, err := c.list(ctx, client)
	if err != nil {
		return err
	}
	var results []verification
	differ := 0
	for _, s := range snapshots {
		if c.Offset != nil && *c.Offset != s.Offset {
			continue
		}
		v, err := client.VerifySnapshot(ctx, s.Topic, s.Partition, s.Offset)
		if errors.Is(err, producer.CodeUnknownSnapshot) {
			continue
		}
		if err != nil {
			return explain(err)
		}
		if !v.Match {
			differ++
		}
		results = append(results, verification{s.Topic, s.Partition, s.Offset, v})
	}
	if len(results) == 0 {
		return errors.New("there is no such snapshot")
	}
	return errors.Join(writeItems(std, c.output, verificationColumns(), results), mismatch(differ, len(results)))
}

func mismatch(differ, of int) error {
	if differ == 0 {
		return nil
	}
	return fmt.Errorf("%d of %s differ from the log", differ, counted(of, "snapshot", "snapshots"))
}

func verificationColumns() []column[verification] {
	return []column[verification]{
		{"TOPIC", func(v verification) any { return v.Topic }},
		{"PARTITION", func(v verification) any { return v.Partition }},
		{"OFFSET", func(v verification) any { return v.Offset }},
		{"RESULT", func(v verification) any {
			if v.Match {
				return "match"
			}
			return fmt.Sprintf("%s: %q", counted(len(v.Differences), "difference", "differences"), v.Differences)
		}},
	}
}

// snapshotsDeleteCmd deletes a snapshot.
type snapshotsDeleteCmd struct {
	remote
	snapshotName
}

// Run deletes it.
func (c *snapshotsDeleteCmd) Run(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := client.DeleteSnapshot(ctx, c.Topic, c.Partition, c.Offset); err != nil {
		return explain(err)
	}
	return nil
}
