package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/oncelog/oncelog/producer"
)

// retry calls try until it succeeds, fails for good, or ctx ends. It then returns the
// last error that says more than that ctx has ended.
func retry(ctx context.Context, try func() error) error {
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
		} else if !pause(ctx, max(wait, e.RetryAfter)) {
			return fmt.Errorf("given up: %w", last)
		}
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
