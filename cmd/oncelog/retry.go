package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/oncelog/oncelog/producer"
)

// retry calls try until it succeeds, fails for good, or ctx ends. It then returns the
// last error that says more than that ctx has ended. failed is told of each failure
// that is not for good.
func retry(ctx context.Context, try func() error, failed func(error)) error {
	const first, most = 50 * time.Millisecond, time.Second
	var last error
	for wait := first; ; wait = min(2*wait, most) {
		err := try()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if e, ok := errors.AsType[*producer.Error](err); !ok || !e.Retryable && ctx.Err() == nil {
			return err
		} else if ctx.Err() == nil {
			failed(err)
			if pause(ctx, max(wait, e.RetryAfter)) {
				continue
			}
		}
		return fmt.Errorf("given up: %w", last)
	}
}

// outage tells whoever waits that there is a reason for the silence: once when the
// server fails, however many calls are being tried again then, and once when it is back.
type outage struct {
	mu      sync.Mutex
	out     io.Writer
	failing int // calls that are being tried again
}

// retry is [retry] with a word about failures. limit is how long ctx lets it try.
func (o *outage) retry(ctx context.Context, limit time.Duration, try func() error) error {
	failing := false
	err := retry(ctx, try, func(err error) {
		if !failing {
			failing = true
			o.begin(err, limit)
		}
	})
	if failing {
		o.end(err == nil)
	}
	return err
}

func (o *outage) begin(err error, limit time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failing++
	if o.failing == 1 {
		fmt.Fprintf(o.out, "oncelog: %v; trying again for up to %v\n", explain(err), limit)
	}
}

func (o *outage) end(ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failing--
	if o.failing == 0 && ok {
		fmt.Fprintln(o.out, "oncelog: the server answers again")
	}
}

// pause waits for about d, or not at all when ctx would end before that.
func pause(ctx context.Context, d time.Duration) bool {
	d = time.Duration(float64(d) * (0.8 + 0.4*rand.Float64())) // so that many do not come back as one
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
