package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/batch"
)

// delivery hands records to a producer and keeps count of what becomes of them. It
// fails with the first record that does, since lines after a hole are no copy of the
// input.
type delivery struct {
	producer  *producer.Producer
	topic     string
	partition *int
	counts    counts

	// ctx ends when a record could not be delivered, its cause says why.
	ctx  context.Context //nolint:containedctx // the delivery's own lifetime
	fail context.CancelCauseFunc
}

// counts say what became of records.
type counts struct {
	read    atomic.Int64
	stored  atomic.Int64
	again   atomic.Int64 // of stored: found to be stored already when they were sent again
	bytes   atomic.Int64 // of stored
	unknown atomic.Int64
	batches atomic.Int64
}

func (c *produceCmd) newDelivery() (*delivery, error) {
	const most = 30 * time.Second
	d := &delivery{topic: c.Topic, partition: c.Partition}
	d.ctx, d.fail = context.WithCancelCause(context.Background())
	request := min(most, c.DeliveryTimeout*3/4)
	credentials, err := c.options()
	if err != nil {
		return nil, err
	}
	options := []producer.Option{
		producer.WithBatchBytes(int(c.BatchBytes)),
		producer.WithLinger(min(20*time.Millisecond, c.DeliveryTimeout/4)),
		producer.WithRequestTimeout(request),
		producer.WithDeliveryTimeout(c.DeliveryTimeout),
		// What fills the buffer leaves it within the delivery timeout.
		producer.WithMaxBlock(c.DeliveryTimeout + most),
		producer.WithHook(deliveryHook{d: d}),
	}
	for _, o := range credentials {
		options = append(options, o)
	}
	d.producer, err = producer.New(c.URL, options...)
	return d, err
}

// put hands records over. It waits while the producer's buffer is full, and fails when
// the delivery has.
func (d *delivery) put(records []batch.Record) error {
	for i := range records {
		if d.ctx.Err() != nil {
			break
		}
		d.counts.read.Add(1)
		r := &records[i]
		size := int64(r.PayloadBytes())
		d.producer.SendFunc(d.ctx, producer.Record{
			Topic: d.topic, Partition: d.partition, Key: r.Key, Value: r.Value,
		}, func(ack producer.Ack, err error) { d.outcome(size, ack, err) })
	}
	return d.reason()
}

// reason is why the delivery has failed, nil when it has not.
func (d *delivery) reason() error { return context.Cause(d.ctx) }

// outcome counts what became of a record.
func (d *delivery) outcome(size int64, ack producer.Ack, err error) {
	switch {
	case err == nil:
		d.counts.stored.Add(1)
		d.counts.bytes.Add(size)
		if ack.Duplicate {
			d.counts.again.Add(1)
		}
		return
	case producer.OutcomeOf(err) != openapi.NotApplied:
		d.counts.unknown.Add(1)
	}
	d.fail(err)
}

// finish waits until everything is delivered. When something could not be, it does not
// begin to send what is left.
func (d *delivery) finish() error {
	defer d.fail(nil)
	err := d.producer.Close(d.ctx)
	if reason := d.reason(); reason != nil {
		return reason
	}
	return err
}

// summarize says what became of the lines.
func (c *counts) summarize(w io.Writer, took time.Duration) {
	stored, unknown := c.stored.Load(), c.unknown.Load()
	rate := byteSize(float64(c.bytes.Load()) / max(took.Seconds(), 0.001))
	fmt.Fprintf(w, "%s stored in %s, %d of them found stored when sent again; %s at %s/s\n",
		counted(stored, "record", "records"), counted(c.batches.Load(), "batch", "batches"), c.again.Load(),
		took.Round(time.Millisecond), rate)
	if unknown > 0 {
		fmt.Fprintf(w, "%s may be stored or not: the server has not said\n", counted(unknown, "record", "records"))
	}
	if rest := c.read.Load() - stored - unknown; rest > 0 {
		fmt.Fprintln(w, counted(rest, "record was read and is not stored", "records were read and are not stored"))
	}
}

// deliveryHook watches the producer.
type deliveryHook struct {
	producer.NoHook
	d *delivery
}

// OnBatch counts the batches that are stored.
func (h deliveryHook) OnBatch(b producer.BatchOutcome) {
	if b.Err == nil {
		h.d.counts.batches.Add(1)
	}
}

// OnReset fails when the server has forgotten what it had confirmed: the producer can
// go on in a new epoch, but the copy has a hole.
func (h deliveryHook) OnReset(r producer.Reset) {
	if r.Reason == producer.ResetGap {
		h.d.fail(fmt.Errorf("partition %d: %w", r.Partition, errLost))
	}
}

var errLost = errors.New("the server has lost records that it had confirmed, or the topic was created anew meanwhile")
