package producer

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/oncelog/oncelog/openapi"
)

// Partition describes a partition: its ends, size and segments.
func (c *Client) Partition(ctx context.Context, topic string, partition int) (openapi.Partition, error) {
	return get[openapi.Partition](ctx, c, partitionPath(topic, partition), nil)
}

// Batches lists the headers of stored batches, the first one being that of the batch
// that holds offset. A negative offset means the earliest; limit 0 the server's
// default.
func (c *Client) Batches(ctx context.Context, topic string, partition int, offset int64, limit int) (openapi.BatchHeaderList, error) {
	q := url.Values{}
	if offset >= 0 {
		q.Set("offset", strconv.FormatInt(offset, 10))
	}
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return get[openapi.BatchHeaderList](ctx, c, partitionPath(topic, partition, "batches"), q)
}

// Trim removes all records below the offset before. Producer state is kept.
func (c *Client) Trim(ctx context.Context, topic string, partition int, before int64) (openapi.TrimResponse, error) {
	var out openapi.TrimResponse
	_, err := c.do(ctx, call{
		method: http.MethodDelete,
		path:   partitionPath(topic, partition, "records"),
		query:  url.Values{"before": {strconv.FormatInt(before, 10)}},
	}, &out)
	return out, err
}

// Roll closes the active segment and opens a new one, with a snapshot between them.
func (c *Client) Roll(ctx context.Context, topic string, partition int) (openapi.Partition, error) {
	out, _, err := send[openapi.Partition](ctx, c, http.MethodPost, partitionPath(topic, partition, "roll"), nil)
	return out, err
}
