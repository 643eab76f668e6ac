package main

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/batch"
)

// TestRecoveryOfLargeLog kills a server with a log of a GiB and expects the next start
// to replay the headers of one segment at most.
func TestRecoveryOfLargeLog(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a GiB")
	}
	const (
		batches      = 1024
		batchBytes   = 1<<20 - 64
		segmentBytes = 64 << 20
		workers      = 4
	)
	g := newGateway(t)
	g.createTopic("large", 1, openapi.TopicConfig{})
	start := time.Now()
	fillLog(t, g, "large", workers, batches/workers, batchBytes)
	wrote := time.Since(start)
	before, err := g.client.Partition(t.Context(), "large", 0)
	if err != nil {
		t.Fatal(err)
	}
	g.kill()
	start = time.Now()
	g.start()
	ready := time.Since(start)

	after, err := g.client.Partition(t.Context(), "large", 0)
	if err != nil {
		t.Fatal(err)
	}
	if after.NextOffset != before.NextOffset || after.Producers != workers || len(after.Segments) != len(before.Segments) {
		t.Errorf("before the kill %+v, after it %+v", before, after)
	}
	if before.Bytes < batches*batchBytes {
		t.Errorf("the log has %d bytes", before.Bytes)
	}
	var recovered struct {
		Headers  int64  `json:"replayed.headers"`
		Bytes    int64  `json:"replayed.bytes"`
		Damaged  int64  `json:"snapshots.damaged"`
		Duration string `json:"duration"`
	}
	eventually(t, func() error { return g.logs.find("recovered", &recovered) }) // the line is on its way through a pipe
	if most := int64(segmentBytes / batchBytes); recovered.Headers > most || recovered.Damaged != 0 {
		t.Errorf("%d headers were replayed, a segment has %d; %d snapshots were damaged", recovered.Headers, most, recovered.Damaged)
	}
	t.Logf("a log of %d bytes in %d segments, written in %v; after the kill the start replayed %d headers (%d bytes) in %v and was ready after %v",
		before.Bytes, len(before.Segments), wrote.Round(time.Millisecond), recovered.Headers, recovered.Bytes,
		recovered.Duration, ready.Round(time.Millisecond))
}

// fillLog appends batches of one record from several producers.
func fillLog(t *testing.T, g *gateway, topic string, workers, batches, size int) {
	t.Helper()
	payload := make([]byte, size)
	_, _ = rand.Read(payload) // never fails
	var b batch.Builder
	b.Add(&batch.Record{Value: payload, ValueForm: batch.FormBytes, Timestamp: batch.NoTimestamp})
	body := b.Build().Bytes
	group, ctx := errgroup.WithContext(t.Context())
	for range workers {
		group.Go(func() error { return fillFrom(ctx, g.client, topic, batches, body) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func fillFrom(ctx context.Context, client *producer.Client, topic string, batches int, body []byte) error {
	id, err := client.AllocateProducer(ctx)
	if err != nil {
		return err
	}
	for n := range batches {
		s := &producer.Sequence{PID: id.PID, Epoch: id.Epoch, BaseSeq: int64(n)}
		if err := until(ctx, func() error {
			_, err := client.AppendBatch(ctx, topic, 0, s, body, producer.Identity)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
