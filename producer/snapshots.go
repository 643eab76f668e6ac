package producer

import (
	"context"
	"net/http"
	"strconv"

	"github.com/oncelog/oncelog/openapi"
)

// SnapshotFilter picks partitions. The zero value picks all of them.
type SnapshotFilter struct {
	Topic     string // "": every topic
	Partition *int   // nil: every partition of Topic
}

func snapshotPath(topic string, partition int, offset int64) string {
	return path("snapshots", topic, strconv.Itoa(partition), strconv.FormatInt(offset, 10))
}

// TakeSnapshots snapshots the producer state of the partitions that f picks, now.
func (c *Client) TakeSnapshots(ctx context.Context, f SnapshotFilter) ([]openapi.Snapshot, error) {
	r := openapi.SnapshotRequest{Partition: f.Partition}
	if f.Topic != "" {
		r.Topic = &f.Topic
	}
	out, _, err := send[openapi.SnapshotsTaken](ctx, c, http.MethodPost, path("snapshots"), r)
	return out.Items, err
}

// Snapshots lists snapshots by topic, partition and offset.
func (c *Client) Snapshots(ctx context.Context, f SnapshotFilter, p Page) (openapi.SnapshotList, error) {
	q := p.query()
	if f.Topic != "" {
		q.Set("topic", f.Topic)
	}
	if f.Partition != nil {
		q.Set("partition", strconv.Itoa(*f.Partition))
	}
	return get[openapi.SnapshotList](ctx, c, path("snapshots"), q)
}

// Snapshot describes the snapshot at an offset and lists a page of the producers in it.
func (c *Client) Snapshot(ctx context.Context, topic string, partition int, offset int64, p Page) (openapi.SnapshotDetail, error) {
	return get[openapi.SnapshotDetail](ctx, c, snapshotPath(topic, partition, offset), p.query())
}

// DeleteSnapshot removes a snapshot. Recovery then begins at an older one.
func (c *Client) DeleteSnapshot(ctx context.Context, topic string, partition int, offset int64) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: snapshotPath(topic, partition, offset)}, nil)
	return err
}

// VerifySnapshot rebuilds the state from the log and compares.
func (c *Client) VerifySnapshot(ctx context.Context, topic string, partition int, offset int64) (openapi.SnapshotVerification, error) {
	p := snapshotPath(topic, partition, offset) + "/verify"
	out, _, err := send[openapi.SnapshotVerification](ctx, c, http.MethodPost, p, nil)
	return out, err
}
