package producer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/oncelog/oncelog/store/batch"
)

// StoredBatch is a batch as it is stored.
type StoredBatch struct {
	BaseOffset int64
	AppendedAt time.Time
	// Bytes are the encoded batch: openapi/BATCH.md, package store/batch. Its checksum has
	// not been looked at here.
	Bytes []byte
}

// storedPrefix is what comes before each batch: base offset and arrival.
const storedPrefix = 16

// StoredBatches reads batches as they are stored, the first one being that which holds
// r.Offset. At the end it returns none, after r.Wait. next is where
// to go on.
func (c *Client) StoredBatches(ctx context.Context, topic string, partition int, r Read) (batches []StoredBatch, next int64, err error) {
	var body []byte
	a, err := c.do(ctx, call{
		method: http.MethodGet, path: partitionPath(topic, partition, "records"),
		header: http.Header{"Accept": {batch.ContentType + ", application/problem+json"}},
		query:  r.query(), extra: r.Wait,
		fits: func() (err error) {
			batches, next, err = splitStored(body)
			return err
		},
	}, &body)
	if err == nil && len(batches) == 0 {
		next, err = strconv.ParseInt(a.header.Get("Next-Offset"), 10, 64)
	}
	return batches, next, err
}

// splitStored cuts an answer into batches.
func splitStored(b []byte) (batches []StoredBatch, next int64, err error) {
	for len(b) > 0 {
		if len(b) < storedPrefix+batch.HeaderLen {
			return nil, 0, errors.New("the answer ends within a batch")
		}
		head := b[storedPrefix:]
		count := int64(binary.BigEndian.Uint32(head[4:]))
		n := int64(batch.HeaderLen) + int64(binary.BigEndian.Uint32(head[8:])) + int64(binary.BigEndian.Uint32(head[12:]))
		if int64(len(head)) < n || count < 1 {
			return nil, 0, errors.New("the answer ends within a batch")
		}
		s := StoredBatch{
			BaseOffset: int64(binary.BigEndian.Uint64(b)),
			AppendedAt: time.UnixMilli(int64(binary.BigEndian.Uint64(b[8:]))).UTC(),
			Bytes:      head[:n:n],
		}
		if len(batches) > 0 && s.BaseOffset != next {
			return nil, 0, fmt.Errorf("a batch with base offset %d where %d was to be", s.BaseOffset, next)
		}
		batches, next = append(batches, s), s.BaseOffset+count
		b = head[n:]
	}
	return batches, next, nil
}
