package store

import (
	"math"
	"time"
)

// Durations counts durations in buckets, each wider than the one before by a quarter of
// an octave, so that a quantile is right to a tenth. The first bucket holds what took at
// most 50 µs, the last one everything above 50 s.
type Durations [82]int64

const (
	firstBound       = 50 * time.Microsecond
	bucketsPerOctave = 4
)

// DurationBucket is the place of a duration in [Durations].
func DurationBucket(d time.Duration) int {
	if d <= firstBound {
		return 0
	}
	i := int(math.Ceil(bucketsPerOctave * math.Log2(float64(d)/float64(firstBound))))
	return min(i, len(Durations{})-1)
}

// bound is the largest duration of a bucket.
func bound(i int) float64 {
	return float64(firstBound) * math.Exp2(float64(i)/bucketsPerOctave)
}

// DurationBound is the largest duration that counts in a bucket of [Durations], and whether
// a whole number of octaves lies below it. The last bucket has none.
func DurationBound(i int) (limit time.Duration, octave bool) {
	last := len(Durations{}) - 1
	return time.Duration(bound(i)), i < last && i%bucketsPerOctave == 0
}

// Since gives what was counted after the counts of before.
func (d *Durations) Since(before *Durations) Durations {
	var out Durations
	for i := range d {
		out[i] = d[i] - before[i]
	}
	return out
}

// Quantile gives the duration that the share q of all did not exceed, 0 when nothing
// was counted. Within a bucket all durations are taken to be spread evenly.
func (d *Durations) Quantile(q float64) time.Duration {
	total := int64(0)
	for _, n := range d {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank := q * float64(total)
	below := 0.0
	for i, n := range d {
		if below+float64(n) < rank || n == 0 {
			below += float64(n)
			continue
		}
		low := 0.0
		if i > 0 {
			low = bound(i - 1)
		}
		return time.Duration(low + (bound(i)-low)*(rank-below)/float64(n))
	}
	return time.Duration(bound(len(d) - 1))
}
