package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// topicCmd manages topics.
type topicCmd struct {
	Create   topicCreateCmd   `cmd:"" help:"Create a topic."`
	List     topicListCmd     `cmd:"" help:"List topics."`
	Describe topicDescribeCmd `cmd:"" help:"Show a topic and its partitions."`
	Delete   topicDeleteCmd   `cmd:"" help:"Delete a topic with all its records and producer state."`
}

// topicCreateCmd creates a topic.
type topicCreateCmd struct {
	remote
	output
	Name        string `arg:"" help:"Name: 1 to 249 of A-Z a-z 0-9 . _ -"`
	IfNotExists bool   `help:"Be content with a topic that is there with the same settings."`

	Partitions         *int      `placeholder:"N" help:"Number of partitions. Default 1."`
	RetentionMs        *int64    `placeholder:"MS" help:"Delete segments older than this; -1 keeps them, the default."`
	RetentionBytes     *int64    `placeholder:"BYTES" help:"Delete the oldest segments above this size of a partition; -1 keeps them, the default."`
	SegmentBytes       *byteSize `placeholder:"BYTES" help:"Close a segment at this size. Default 64MiB."`
	SegmentMs          *int64    `placeholder:"MS" help:"Close a segment at this age. Default 7 days."`
	MaxBatchBytes      *byteSize `placeholder:"BYTES" help:"Largest batch. Default 1MiB."`
	ProducerExpiryMs   *int64    `placeholder:"MS" help:"Forget a producer so long after its last batch. Default 7 days."`
	MaxProducers       *int64    `placeholder:"N" help:"Most producers remembered in a partition. Default 1000000."`
	RequireIdempotence bool      `help:"Refuse appends without a producer id."`
}

func (c *topicCreateCmd) request() openapi.PutTopicRequest {
	r := openapi.PutTopicRequest{Partitions: c.Partitions, TopicConfig: openapi.TopicConfig{
		RetentionMs: c.RetentionMs, RetentionBytes: c.RetentionBytes, SegmentBytes: (*int64)(c.SegmentBytes),
		SegmentMs: c.SegmentMs, MaxBatchBytes: (*int64)(c.MaxBatchBytes),
		ProducerExpiryMs: c.ProducerExpiryMs, MaxProducers: c.MaxProducers,
	}}
	if c.RequireIdempotence {
		r.RequireIdempotence = &c.RequireIdempotence
	}
	return r
}

// Run creates it.
func (c *topicCreateCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	var topic openapi.Topic
	if r := c.request(); c.IfNotExists {
		topic, _, err = client.PutTopic(ctx, c.Name, r)
	} else {
		topic, err = client.CreateTopic(ctx, openapi.CreateTopicRequest{
			Name: c.Name, Partitions: r.Partitions, TopicConfig: r.TopicConfig,
		})
	}
	if err != nil {
		return explain(err)
	}
	return writeItems(std, c.output, topicColumns(), []openapi.Topic{topic})
}

// topicListCmd lists topics.
type topicListCmd struct {
	remote
	output
}

// Run lists them.
func (c *topicListCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	topics, err := allPages(func(p producer.Page) ([]openapi.Topic, *string, error) {
		list, err := client.Topics(ctx, p)
		return list.Items, list.NextPageToken, err
	})
	if err != nil {
		return err
	}
	return writeItems(std, c.output, topicColumns(), topics)
}

func topicColumns() []column[openapi.Topic] {
	return []column[openapi.Topic]{
		{"NAME", func(t openapi.Topic) any { return t.Name }},
		{"PARTITIONS", func(t openapi.Topic) any { return t.Partitions }},
		{"CREATED", func(t openapi.Topic) any { return t.CreatedAt }},
		{"SETTINGS", func(t openapi.Topic) any { return settings(t) }},
	}
}

// settings names what differs from the defaults.
func settings(t openapi.Topic) string {
	var s []string
	if t.RetentionMs >= 0 {
		s = append(s, fmt.Sprintf("retentionMs=%d", t.RetentionMs))
	}
	if t.RetentionBytes >= 0 {
		s = append(s, fmt.Sprintf("retentionBytes=%d", t.RetentionBytes))
	}
	if t.RequireIdempotence {
		s = append(s, "requireIdempotence")
	}
	if len(s) == 0 {
		return "-"
	}
	return strings.Join(s, ",")
}

// topicDescribeCmd shows one topic.
type topicDescribeCmd struct {
	remote
	output
	Name string `arg:"" help:"Name of the topic."`
}

// topicDescription is a topic and its partitions, as JSON output has them.
type topicDescription struct {
	openapi.Topic
	PartitionList []openapi.Partition `json:"partitionList"`
}

// Run shows it.
func (c *topicDescribeCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	topic, err := client.Topic(ctx, c.Name)
	if err != nil {
		return explain(err)
	}
	d := topicDescription{Topic: topic, PartitionList: make([]openapi.Partition, topic.Partitions)}
	for i := range d.PartitionList {
		if d.PartitionList[i], err = client.Partition(ctx, c.Name, i); err != nil {
			return explain(err)
		}
	}
	if c.Output == outputJSON {
		return writeJSON(std.out, d)
	}
	if isTerminal(std.out) {
		if err := writeTopic(std, topic); err != nil {
			return err
		}
	}
	return writeItems(std, c.output, partitionColumns(), d.PartitionList)
}

// writeTopic prints what a topic is set to, for people.
func writeTopic(std *stdio, t openapi.Topic) error {
	const kept = -1 // in place of a bound
	bound := func(n int64, text string) string {
		if n == kept {
			return "none"
		}
		return text
	}
	millis := func(n int64) string {
		if n > int64(math.MaxInt64/time.Millisecond) { // 292 years
			return strconv.FormatInt(n, 10) + "ms"
		}
		return (time.Duration(n) * time.Millisecond).String()
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{"topic", t.Name},
		{"id", t.ID},
		{"created", fmt.Sprint(t.CreatedAt)},
		{"version", strconv.FormatInt(t.Version, 10)},
		{"retentionMs", bound(t.RetentionMs, millis(t.RetentionMs))},
		{"retentionBytes", bound(t.RetentionBytes, byteSize(t.RetentionBytes).String())},
		{"segmentBytes", byteSize(t.SegmentBytes).String()},
		{"segmentMs", millis(t.SegmentMs)},
		{"maxBatchBytes", byteSize(t.MaxBatchBytes).String()},
		{"producerExpiryMs", millis(t.ProducerExpiryMs)},
		{"maxProducers", strconv.FormatInt(t.MaxProducers, 10)},
		{"requireIdempotence", strconv.FormatBool(t.RequireIdempotence)},
	} {
		if _, err := fmt.Fprintf(table, "%s\t%s\n", row[0], row[1]); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(std.out)
	return err
}

func partitionColumns() []column[openapi.Partition] {
	return []column[openapi.Partition]{
		{"PARTITION", func(p openapi.Partition) any { return p.Partition }},
		{"EARLIEST", func(p openapi.Partition) any { return p.EarliestOffset }},
		{"NEXT", func(p openapi.Partition) any { return p.NextOffset }},
		{"SIZE", func(p openapi.Partition) any { return byteSize(p.Bytes) }},
		{"SEGMENTS", func(p openapi.Partition) any { return len(p.Segments) }},
		{"PRODUCERS", func(p openapi.Partition) any { return p.Producers }},
		{"PARKED", func(p openapi.Partition) any { return p.Parked }},
	}
}

// topicDeleteCmd deletes a topic.
type topicDeleteCmd struct {
	remote
	Name string `arg:"" help:"Name of the topic."`
}

// Run deletes it.
func (c *topicDeleteCmd) Run(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := client.DeleteTopic(ctx, c.Name); err != nil {
		return explain(err)
	}
	return nil
}
