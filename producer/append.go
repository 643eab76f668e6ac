package producer

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store/batch"
)

// Sequence names a producer and the place of a batch in the producer's sequence.
// Each is 0 … 2^53 − 1.
type Sequence struct {
	PID     int64
	Epoch   int64
	BaseSeq int64 // sequence of the batch's first record
}

// Encoding is a content coding of a request's body.
type Encoding string

// The codings that a server takes. Its limits count decoded bytes.
const (
	Identity Encoding = ""
	Gzip     Encoding = "gzip"
	Zstd     Encoding = "zstd"
)

// Append appends one batch in JSON form, as a whole or not at all. With PID, Epoch
// and BaseSeq the same request may be sent as often as one likes; without them each
// one that arrives is stored.
func (c *Client) Append(ctx context.Context, topic string, partition int, r openapi.AppendRequest) (openapi.AppendResponse, error) {
	out, _, err := send[openapi.AppendResponse](ctx, c, http.MethodPost, partitionPath(topic, partition, "batches"), r)
	return out, err
}

// AppendBatch appends one batch in the binary form of package store/batch, which body
// holds, encoded by enc. A nil s makes it a plain append.
func (c *Client) AppendBatch(ctx context.Context, topic string, partition int, s *Sequence, body []byte, enc Encoding) (openapi.AppendResponse, error) {
	var out openapi.AppendResponse
	r := call{
		method: http.MethodPost, path: partitionPath(topic, partition, "batches"),
		body: body, media: batch.ContentType,
	}
	if s != nil {
		r.query = url.Values{
			"pid":     {strconv.FormatInt(s.PID, 10)},
			"epoch":   {strconv.FormatInt(s.Epoch, 10)},
			"baseSeq": {strconv.FormatInt(s.BaseSeq, 10)},
		}
	}
	if enc != Identity {
		r.header = http.Header{"Content-Encoding": {string(enc)}}
	}
	_, err := c.do(ctx, r, &out)
	return out, err
}
