package store_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
)

func TestQuantileIsNearTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var d store.Durations
	var all []time.Duration
	for range 20_000 {
		took := time.Duration(float64(60*time.Microsecond) * (1 + 400*r.ExpFloat64()))
		all = append(all, took)
		d[store.DurationBucket(took)]++
	}
	slices.Sort(all)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 0.999} {
		want := all[int(q*float64(len(all)))]
		got := d.Quantile(q)
		if ratio := float64(got) / float64(want); ratio < 0.9 || ratio > 1.1 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

func TestQuantileOfFew(t *testing.T) {
	var d, none store.Durations
	if got := d.Quantile(0.99); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	for _, took := range []time.Duration{0, -1, time.Nanosecond, 50 * time.Microsecond} {
		if got := store.DurationBucket(took); got != 0 {
			t.Errorf("%v is in bucket %d", took, got)
		}
	}
	if got := store.DurationBucket(time.Hour); got != len(d)-1 {
		t.Errorf("an hour is in bucket %d", got)
	}
	d[store.DurationBucket(3*time.Millisecond)]++
	if got := d.Quantile(0.99); got < 2500*time.Microsecond || got > 3600*time.Microsecond {
		t.Errorf("of one of 3 ms: %v", got)
	}
	later := d
	later[store.DurationBucket(time.Second)]++
	if got := later.Since(&d); got.Quantile(0.5) < 800*time.Millisecond {
		t.Errorf("what came after is %v", got.Quantile(0.5))
	}
	if got := d.Since(&d); got != none {
		t.Error("nothing came after, but something is counted")
	}
}
