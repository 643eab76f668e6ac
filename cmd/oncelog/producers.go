package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// producersCmd shows what is known of producers.
type producersCmd struct {
	List   producersListCmd   `cmd:"" default:"withargs" help:"List producers with live state: all of them, or those of a topic or partition. The default."`
	Show   producersShowCmd   `cmd:"" help:"Show the state of a producer in each partition."`
	Expire producersExpireCmd `cmd:"" help:"Make a partition forget a producer now; only a higher epoch may go on."`
}

// producersListCmd lists producers.
type producersListCmd struct {
	remote
	output
	Topic     string `placeholder:"T" help:"Only those of this topic, with their state in each partition."`
	Partition *int   `placeholder:"P" help:"Only those of this partition of the topic."`
}

// Validate wants a topic with a partition.
func (c *producersListCmd) Validate() error {
	if c.Partition != nil && c.Topic == "" {
		return errors.New("--partition needs --topic")
	}
	return nil
}

// Run lists them.
func (c *producersListCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if c.Topic != "" {
		return c.listPartitions(ctx, std, client)
	}
	items, err := allPages(func(p producer.Page) ([]openapi.ProducerSummary, *string, error) {
		list, err := client.Producers(ctx, p)
		return list.Items, list.NextPageToken, err
	})
	if err != nil {
		return err
	}
	return writeItems(std, c.output, []column[openapi.ProducerSummary]{
		{"PID", func(p openapi.ProducerSummary) any { return p.PID }},
		{"EPOCH", func(p openapi.ProducerSummary) any { return p.Epoch }},
		{"PARTITIONS", func(p openapi.ProducerSummary) any { return p.Partitions }},
		{"LAST ACTIVE", func(p openapi.ProducerSummary) any { return p.LastTimestamp }},
		{"EXPIRES", func(p openapi.ProducerSummary) any { return p.ExpiresAt }},
		{"ACCEPTED", func(p openapi.ProducerSummary) any { return p.Counters.Accepted }},
		{"DUPLICATE", func(p openapi.ProducerSummary) any { return p.Counters.Duplicate }},
		{"OUT OF ORDER", func(p openapi.ProducerSummary) any { return p.Counters.OutOfOrder }},
		{"FENCED", func(p openapi.ProducerSummary) any { return p.Counters.Fenced }},
		{"REUSED", func(p openapi.ProducerSummary) any { return p.Counters.Reused }},
	}, items)
}

func (c *producersListCmd) listPartitions(ctx context.Context, std *stdio, client *producer.Client) error {
	partitions, err := pickPartitions(ctx, client, c.Topic, c.Partition)
	if err != nil {
		return err
	}
	var all []openapi.PartitionProducer
	for _, n := range partitions {
		items, err := allPages(func(p producer.Page) ([]openapi.PartitionProducer, *string, error) {
			list, err := client.PartitionProducers(ctx, c.Topic, n, p)
			return list.Items, list.NextPageToken, err
		})
		if err != nil {
			return err
		}
		all = append(all, items...)
	}
	return writeItems(std, c.output, partitionProducerColumns(), all)
}

// pickPartitions gives the partition that was asked for, or all of the topic.
func pickPartitions(ctx context.Context, client *producer.Client, topic string, partition *int) ([]int, error) {
	if partition != nil {
		return []int{*partition}, nil
	}
	t, err := client.Topic(ctx, topic)
	if err != nil {
		return nil, explain(err)
	}
	all := make([]int, t.Partitions)
	for i := range all {
		all[i] = i
	}
	return all, nil
}

func partitionProducerColumns() []column[openapi.PartitionProducer] {
	return []column[openapi.PartitionProducer]{
		{"TOPIC", func(p openapi.PartitionProducer) any { return p.Topic }},
		{"PARTITION", func(p openapi.PartitionProducer) any { return p.Partition }},
		{"PID", func(p openapi.PartitionProducer) any { return p.PID }},
		{"EPOCH", func(p openapi.PartitionProducer) any { return p.Epoch }},
		{"FIRST SEQ", func(p openapi.PartitionProducer) any { return p.FirstSeq }},
		{"LAST SEQ", func(p openapi.PartitionProducer) any { return p.LastSeq }},
		{"LAST OFFSET", func(p openapi.PartitionProducer) any { return p.LastOffset }},
		{"LAST ACTIVE", func(p openapi.PartitionProducer) any { return p.LastTimestamp }},
		{"EXPIRES", func(p openapi.PartitionProducer) any { return p.ExpiresAt }},
	}
}

// producersShowCmd shows one producer.
type producersShowCmd struct {
	remote
	output
	PID int64 `arg:"" name:"pid" help:"Producer id."`
}

// Run shows it.
func (c *producersShowCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	p, err := client.Producer(ctx, c.PID)
	if err != nil {
		return explain(err)
	}
	if len(p.Partitions) == 0 && c.Output != outputJSON {
		fmt.Fprintf(std.err, "producer %d has no live state in any partition\n", c.PID)
		return nil
	}
	return writeItems(std, c.output, partitionProducerColumns(), p.Partitions)
}

// producersExpireCmd expires one producer.
type producersExpireCmd struct {
	remote
	PID       int64  `arg:"" name:"pid" help:"Producer id."`
	Topic     string `required:"" placeholder:"T" help:"The topic."`
	Partition int    `default:"0" placeholder:"P" help:"The partition. Default ${default}."`
}

// Run expires it.
func (c *producersExpireCmd) Run(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := client.ExpireProducer(ctx, c.Topic, c.Partition, c.PID); err != nil {
		return explain(err)
	}
	return nil
}
