package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

// produceCmd appends lines.
type produceCmd struct {
	remote
	Topic           string        `required:"" placeholder:"T" help:"The topic."`
	Partition       *int          `placeholder:"P" help:"The partition. Default: by key; lines without a key are spread, and only their order within a partition is kept."`
	KeySeparator    string        `placeholder:"S" help:"Each line is a key, S, and a value. Default: lines have no key."`
	BatchBytes      byteSize      `default:"256KiB" placeholder:"BYTES" help:"Close a batch at this size; it is sent earlier when no more lines wait. Default ${default}."`
	DeliveryTimeout time.Duration `default:"2m" help:"How long to keep trying to deliver a batch."`
}

// Validate refuses values that kong cannot know to be wrong.
func (c *produceCmd) Validate() error {
	switch {
	case c.BatchBytes < 1:
		return errors.New("--batch-bytes must be at least 1")
	case c.DeliveryTimeout <= 0:
		return errors.New("--delivery-timeout must be above 0s")
	case c.Partition != nil && *c.Partition < 0:
		return errors.New("--partition is negative")
	}
	return nil
}

// Run reads lines until the input ends, and returns when what became of each of them
// is known or no longer to be found out. When ctx ends, it stops reading and delivers
// what it has read.
func (c *produceCmd) Run(ctx context.Context, std *stdio) error {
	if _, err := c.client(); err != nil {
		return err
	}
	d, err := c.newDelivery()
	if err != nil {
		return &usageError{err: err}
	}
	topic, err := c.describe(ctx, std, d.producer.Client())
	if err != nil {
		return errors.Join(err, d.finish())
	}
	if topic.Partitions == 1 {
		d.partition = new(int) // saves the producer a look at the topic for each line
	}
	start := time.Now()
	lines := newLineReader(std.in, c.KeySeparator, min(store.MaxRecordBytes, int(topic.MaxBatchBytes)))
	err = c.feed(ctx, std, lines, d)
	if ended := d.finish(); ended != nil {
		err = explain(ended) // rather than that reading has ended early
	}
	d.counts.summarize(std.err, time.Since(start))
	if err != nil {
		return fmt.Errorf("not all lines are stored: %w", err)
	}
	return nil
}

// describe looks the topic up, patiently: a server that is just starting is no reason
// to give up.
func (c *produceCmd) describe(ctx context.Context, std *stdio, client *producer.Client) (openapi.Topic, error) {
	ctx, cancel := context.WithTimeout(ctx, c.DeliveryTimeout)
	defer cancel()
	var topic openapi.Topic
	silence := outage{out: std.err}
	err := silence.retry(ctx, c.DeliveryTimeout, func() (err error) {
		topic, err = client.Topic(ctx, c.Topic)
		return err
	})
	if err != nil {
		return topic, explain(err)
	}
	if c.Partition != nil && *c.Partition >= topic.Partitions {
		return topic, fmt.Errorf("topic %s has partitions 0 to %d, not %d", c.Topic, topic.Partitions-1, *c.Partition)
	}
	return topic, nil
}

// chunk is a stretch of the input.
type chunk struct {
	records []batch.Record
	size    int64
	err     error // what ended the input after the records
}

// feed hands the lines of the input over.
func (c *produceCmd) feed(ctx context.Context, std *stdio, lines *lineReader, d *delivery) error {
	chunks := make(chan chunk)
	done := make(chan struct{})
	defer close(done)
	go lines.pump(chunks, done)
	total := inputSize(std.in)
	bar := newProgress(std, "reading", total)
	defer bar.end()
	var read int64
	for {
		select {
		case k := <-chunks:
			if err := d.put(k.records); err != nil {
				return err
			}
			read += k.size
			bar.set(read, total)
			if errors.Is(k.err, io.EOF) {
				return nil
			}
			if k.err != nil {
				return k.err
			}
		case <-d.ctx.Done():
			return d.reason()
		case <-ctx.Done():
			return errors.New("interrupted; lines that were not read are not sent")
		}
	}
}

// inputSize is the size of the input if that is a file, else 0.
func inputSize(in io.Reader) int64 {
	f, ok := in.(*os.File)
	if !ok {
		return 0
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}
