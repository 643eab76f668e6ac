package producer

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/oncelog/oncelog/openapi"
)

// Offsets that a read may begin at, besides a number.
const (
	Earliest = "earliest"
	Latest   = "latest" // the high watermark: records that come from now on
)

// Read says which records are wanted. The zero value asks for the first ones.
type Read struct {
	// Offset is a number, Earliest, Latest, or -N for the last N; "" is Earliest.
	Offset   string
	Limit    int           // records; 0: the server's default, 100; at most 10 000
	MaxBytes int           // 0: the server's default, 1 MiB
	Wait     time.Duration // at the end, wait so long for records; at most a minute
	// Base64 gives every value as valueBase64, whatever it was stored as.
	Base64 bool
}

func (r Read) query() url.Values {
	q := url.Values{}
	if r.Offset != "" {
		q.Set("offset", r.Offset)
	}
	if r.Limit != 0 {
		q.Set("limit", strconv.Itoa(r.Limit))
	}
	if r.MaxBytes != 0 {
		q.Set("maxBytes", strconv.Itoa(r.MaxBytes))
	}
	if r.Wait != 0 {
		q.Set("waitMs", strconv.FormatInt(r.Wait.Milliseconds(), 10))
	}
	if r.Base64 {
		q.Set("values", "base64")
	}
	return q
}

// Records reads records of a partition. At the end it returns none, after r.Wait.
func (c *Client) Records(ctx context.Context, topic string, partition int, r Read) (openapi.RecordList, error) {
	var out openapi.RecordList
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: partitionPath(topic, partition, "records"),
		query: r.query(), extra: r.Wait,
		fits: func() error { return r.fits(&out) },
	}, &out)
	return out, err
}

// fits says what is wrong with an answer to r. One that is JSON and no list of records,
// or a list from a cache, would make a reader go back and see records again.
func (r Read) fits(l *openapi.RecordList) error {
	from, err := strconv.ParseInt(r.Offset, 10, 64)
	if err != nil || from < 0 {
		from = 0
	}
	for i := range l.Records {
		if l.Records[i].Offset < from {
			return fmt.Errorf("a record with offset %d where %d or more was to be", l.Records[i].Offset, from)
		}
		from = l.Records[i].Offset + 1
	}
	if l.Records == nil || l.NextOffset < from {
		return fmt.Errorf("no list of records from offset %d on", from)
	}
	return nil
}

// followWait is how long one request of Follow waits for records when r.Wait is 0.
// It is below the idle limits that proxies commonly have.
const followWait = 25 * time.Second

// Follow yields records from r.Offset on, for ever, by long polls. What may pass by
// itself is tried again without end; any other error is yielded once and ends the
// sequence, as does the end of ctx.
func (c *Client) Follow(ctx context.Context, topic string, partition int, r Read) iter.Seq2[openapi.Record, error] {
	if r.Wait == 0 {
		r.Wait = followWait
	}
	return func(yield func(openapi.Record, error) bool) {
		failures := 0
		for {
			asked := time.Now()
			list, err := c.Records(ctx, topic, partition, r)
			if err == nil && (len(list.Records) > 0 || time.Since(asked) >= r.Wait/2) {
				failures = 0
				for _, rec := range list.Records {
					if !yield(rec, nil) {
						return
					}
				}
				r.Offset = strconv.FormatInt(list.NextOffset, 10)
				continue
			}
			var after time.Duration
			if err == nil { // it has not waited for records: it is draining, or no long poll gets through
				r.Offset = strconv.FormatInt(list.NextOffset, 10)
			} else {
				e := asError(err)
				if !e.Retryable || ctx.Err() != nil {
					yield(openapi.Record{}, err)
					return
				}
				after = e.RetryAfter
			}
			if !sleep(ctx, defaultBackoff.delay(failures, after)) {
				yield(openapi.Record{}, ctx.Err())
				return
			}
			failures++
		}
	}
}

// sleep waits for d and reports whether ctx outlived it.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
