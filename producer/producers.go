package producer

import (
	"context"
	"net/http"
	"strconv"

	"github.com/oncelog/oncelog/openapi"
)

// AllocateProducer returns a producer id that nobody has had before, with epoch 0. A
// lost answer costs nothing but an id.
func (c *Client) AllocateProducer(ctx context.Context) (openapi.ProducerID, error) {
	out, _, err := send[openapi.ProducerID](ctx, c, http.MethodPost, path("producers"), nil)
	return out, err
}

// Producers lists the producers with live state anywhere, by pid.
func (c *Client) Producers(ctx context.Context, p Page) (openapi.ProducerList, error) {
	return get[openapi.ProducerList](ctx, c, path("producers"), p.query())
}

// Producer gives the state of a producer in each partition. It fails with
// CodeUnknownProducerID for a pid that was never issued.
func (c *Client) Producer(ctx context.Context, pid int64) (openapi.Producer, error) {
	return get[openapi.Producer](ctx, c, path("producers", strconv.FormatInt(pid, 10)), nil)
}

// PartitionProducers lists the producers with live state in a partition, by pid.
func (c *Client) PartitionProducers(ctx context.Context, topic string, partition int, p Page) (openapi.PartitionProducerList, error) {
	return get[openapi.PartitionProducerList](ctx, c, partitionPath(topic, partition, "producers"), p.query())
}

// PartitionProducer gives the state of a producer in a partition. It fails with
// CodeUnknownProducerID when there is no live state.
func (c *Client) PartitionProducer(ctx context.Context, topic string, partition int, pid int64) (openapi.PartitionProducer, error) {
	return get[openapi.PartitionProducer](ctx, c, partitionPath(topic, partition, "producers", strconv.FormatInt(pid, 10)), nil)
}

// ExpireProducer makes a partition forget a producer now, but for a tombstone: only a
// higher epoch may go on.
func (c *Client) ExpireProducer(ctx context.Context, topic string, partition int, pid int64) error {
	_, err := c.do(ctx, call{
		method: http.MethodDelete,
		path:   partitionPath(topic, partition, "producers", strconv.FormatInt(pid, 10)),
	}, nil)
	return err
}
