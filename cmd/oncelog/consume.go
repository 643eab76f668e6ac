package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// consumeCmd prints records.
type consumeCmd struct {
	remote
	Topic        string        `required:"" placeholder:"T" help:"The topic."`
	Partition    *int          `placeholder:"P" help:"The partition. Default: all that there are at the start."`
	From         string        `default:"earliest" placeholder:"OFFSET" help:"earliest, latest, an offset, or -N for the last N records. Default ${default}."`
	Exit         bool          `help:"Stop at the end as it is at the start. Default: wait for more, until interrupted."`
	Output       string        `default:"value" enum:"value,json" placeholder:"FORMAT" help:"value: each record's value, byte for byte, and a line feed. json: the whole record. Default ${default}."`
	RetryTimeout time.Duration `default:"1m" help:"How long to keep trying when the server does not answer."`

	outage *outage
}

// Validate refuses what is no offset.
func (c *consumeCmd) Validate() error {
	if c.From == producer.Earliest || c.From == producer.Latest {
		return nil
	}
	if _, err := strconv.ParseInt(c.From, 10, 64); err != nil {
		return fmt.Errorf("--from is %q; it must be earliest, latest or a number", c.From)
	}
	return nil
}

// Run prints records: with --exit one partition after the other, so that the same log
// gives the same output, else all at the same time.
func (c *consumeCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	c.outage = &outage{out: std.err}
	var partitions []int
	if err := c.retry(ctx, func() (err error) {
		partitions, err = pickPartitions(ctx, client, c.Topic, c.Partition)
		return err
	}); err != nil {
		return err
	}
	if offset, err := strconv.ParseInt(c.From, 10, 64); err == nil && offset >= 0 && len(partitions) > 1 {
		return &usageError{err: fmt.Errorf("topic %s has %d partitions, an offset means something in one of them: give --partition", c.Topic, len(partitions))}
	}
	p := &printer{out: bufio.NewWriterSize(std.out, 256<<10), json: c.Output == outputJSON}
	group, ctx := errgroup.WithContext(ctx)
	if c.Exit {
		group.SetLimit(1)
	}
	for _, n := range partitions {
		group.Go(func() error { return c.print(ctx, client, n, p) })
	}
	err = group.Wait()
	if !c.Exit && errors.Is(err, context.Canceled) {
		return nil // being interrupted is how following ends
	}
	return err
}

// print prints one partition.
func (c *consumeCmd) print(ctx context.Context, client *producer.Client, partition int, p *printer) error {
	const (
		pageRecords = 10_000
		pageBytes   = 4 << 20
		longPoll    = 25 * time.Second
	)
	offset, end, err := c.bounds(ctx, client, partition)
	if err != nil {
		return fmt.Errorf("partition %d: %w", partition, err)
	}
	read := producer.Read{Limit: pageRecords, MaxBytes: pageBytes, Base64: !p.json}
	if end == forever {
		read.Wait = longPoll
	}
	for offset < end {
		read.Offset = strconv.FormatInt(offset, 10)
		asked := time.Now()
		var list openapi.RecordList
		err := c.retry(ctx, func() (err error) {
			list, err = client.Records(ctx, c.Topic, partition, read)
			return err
		})
		if err == nil {
			err = p.print(partition, list.Records, end)
		}
		if err != nil {
			return fmt.Errorf("partition %d at offset %d: %w", partition, offset, err)
		}
		if list.NextOffset == offset && time.Since(asked) < read.Wait/2 {
			// A server that is stopping, or a proxy, does not let a poll wait.
			pause(ctx, emptyPause)
		}
		offset = list.NextOffset
	}
	return nil
}

// emptyPause is how long to wait before asking again when an answer without records
// came at once.
const emptyPause = 200 * time.Millisecond

// forever is the end of a partition that is followed.
const forever = math.MaxInt64

// bounds says where to begin and where to stop. It turns words into numbers once: were
// they sent with each attempt, a reconnect would find another "latest" and leave out
// what has come meanwhile.
func (c *consumeCmd) bounds(ctx context.Context, client *producer.Client, partition int) (offset, end int64, err error) {
	var at openapi.Partition
	if err := c.retry(ctx, func() (err error) {
		at, err = client.Partition(ctx, c.Topic, partition)
		return err
	}); err != nil {
		return 0, 0, err
	}
	end = forever
	if c.Exit {
		end = at.NextOffset
	}
	switch c.From {
	case producer.Earliest:
		return at.EarliestOffset, end, nil
	case producer.Latest:
		return at.NextOffset, end, nil
	}
	offset, err = strconv.ParseInt(c.From, 10, 64)
	switch {
	case err != nil:
		return 0, 0, err
	case offset < 0:
		return max(at.NextOffset+offset, at.EarliestOffset), end, nil
	case offset > at.NextOffset:
		return 0, 0, fmt.Errorf("offset %d is above the end, %d", offset, at.NextOffset)
	}
	return offset, end, nil
}

// retry calls try until it succeeds, fails for good, or has failed for --retry-timeout.
func (c *consumeCmd) retry(ctx context.Context, try func() error) error {
	limited, cancel := context.WithDeadline(context.WithoutCancel(ctx), time.Now().Add(c.RetryTimeout))
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	err := c.outage.retry(limited, c.RetryTimeout, try)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return explain(err)
	}
	return nil
}

// printer writes records, whole pages at a time.
type printer struct {
	mu   sync.Mutex // partitions share the output
	out  *bufio.Writer
	json bool
}

// print writes the records below end and flushes.
func (p *printer) print(partition int, records []openapi.Record, end int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range records {
		r := &records[i]
		if r.Offset >= end {
			break
		}
		var err error
		if p.json {
			err = writeJSON(p.out, partitionRecord{partition, *r})
		} else {
			err = writeValue(p.out, r)
		}
		if err != nil {
			return err
		}
	}
	return p.out.Flush()
}

// partitionRecord is a record and where it was read.
type partitionRecord struct {
	Partition int `json:"partition"`
	openapi.Record
}

// writeValue writes a record's value and a line feed; of a tombstone just that.
func writeValue(w io.Writer, r *openapi.Record) error {
	var value []byte
	switch {
	case r.ValueBase64 != nil:
		var err error
		if value, err = base64.StdEncoding.DecodeString(*r.ValueBase64); err != nil {
			return fmt.Errorf("record %d: %w", r.Offset, err)
		}
	case r.ValueText != nil:
		value = []byte(*r.ValueText)
	case string(r.Value) != "null":
		value = r.Value
	}
	_, err := w.Write(append(value, '\n'))
	return err
}
