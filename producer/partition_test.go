package producer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// The values are those of Kafka's own test of its hash.
func TestMurmur2(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := producer.Murmur2([]byte(key)); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestKeyPartition(t *testing.T) {
	for _, tt := range []struct {
		key  string
		n    int
		want int
	}{
		{"21", 1000, int(-973932308&0x7fffffff) % 1000},
		{"abc", 7, 479470107 % 7},
		{"", 1, 0},
	} {
		if got := producer.KeyPartition([]byte(tt.key), tt.n); got != tt.want {
			t.Errorf("partition of %q among %d is %d, want %d", tt.key, tt.n, got, tt.want)
		}
	}
}

func partitionOf(t *testing.T, p *producer.Producer, r producer.Record) int {
	t.Helper()
	f := p.Send(context.Background(), r)
	a, err := f.Wait(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return a.Partition
}

func TestPartitioners(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer()
		for i := range 30 {
			key := fmt.Append(nil, "key-", i)
			if got, want := partitionOf(t, p, producer.Record{Topic: "t", Key: key}), producer.KeyPartition(key, 3); got != want {
				t.Errorf("key %s went to %d, want %d", key, got, want)
			}
		}
		// An empty key is a key.
		if got, want := partitionOf(t, p, producer.Record{Topic: "t", Key: []byte{}}), producer.KeyPartition(nil, 3); got != want {
			t.Errorf("the empty key went to %d, want %d", got, want)
		}
		closeProducer(t, p)

		q := w.producer(producer.WithPartitioner(func(r producer.Record, n int) int { return len(r.Value) % n }))
		if got := partitionOf(t, q, producer.Record{Topic: "t", Value: []byte("12345")}); got != 2 {
			t.Errorf("the function's choice was 2, it went to %d", got)
		}
		if got := partitionOf(t, q, producer.Record{Topic: "t", Partition: new(1), Value: []byte("12345")}); got != 1 {
			t.Errorf("partition 1 was named, it went to %d", got)
		}
		closeProducer(t, q)

		bad := w.producer(producer.WithPartitioner(func(producer.Record, int) int { return 3 }))
		wantFailure(t, bad.Send(t.Context(), producer.Record{Topic: "t"}), producer.CodeInvalidArgument, openapi.NotApplied)
		closeProducer(t, bad)
		wantFailure(t, bad.Send(t.Context(), producer.Record{Topic: "t", Partition: new(-1)}), producer.CodeInvalidArgument, openapi.NotApplied)
	})
}

// Records without a key stay together for a batch, and reach all partitions.
func TestStickyPartition(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &hooks{}
		p := w.producer(producer.WithBatchBytes(1000), producer.WithLinger(time.Second), producer.WithHook(h))
		const n = 3000
		for range n { // with framing a hundred bytes each: ten make a batch
			p.Send(t.Context(), producer.Record{Topic: "t", Value: make([]byte, 76)})
		}
		closeProducer(t, p)
		seen := map[int]int{}
		for _, b := range h.done {
			seen[b.Partition] += b.Records
		}
		if len(h.done) > n/8 || len(seen) != 3 || min(seen[0], seen[1], seen[2]) < n/6 {
			t.Errorf("%d batches, records by partition %v", len(h.done), seen)
		}
	})
}

func TestUnknownTopic(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.producer()
		wantFailure(t, p.Send(t.Context(), producer.Record{Topic: "u", Key: []byte("k")}), producer.CodeUnknownTopic, openapi.NotApplied)
		wantFailure(t, p.Send(t.Context(), producer.Record{Topic: "u", Partition: new(0)}), producer.CodeUnknownTopic, openapi.NotApplied)
		wantFailure(t, p.Send(t.Context(), producer.Record{Topic: "t", Partition: new(3)}), producer.CodeUnknownPartition, openapi.NotApplied)
		w.recreate("u")
		if got := partitionOf(t, p, producer.Record{Topic: "u", Key: []byte("k")}); got != producer.KeyPartition([]byte("k"), 3) {
			t.Errorf("went to %d", got)
		}
		if a, err := p.Send(t.Context(), producer.Record{Topic: "u", Partition: new(0)}).Wait(t.Context()); err != nil {
			t.Errorf("%+v, %v", a, err)
		}
		closeProducer(t, p)
	})
}

// A topic that grows gets its new partitions used after a while.
func TestTopicGrows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var key []byte
		for i := 0; ; i++ {
			key = fmt.Append(nil, i)
			if producer.KeyPartition(key, 8) > 2 {
				break
			}
		}
		p := w.producer(producer.WithMetadataAge(time.Minute))
		r := producer.Record{Topic: "t", Key: key}
		if got := partitionOf(t, p, r); got > 2 {
			t.Fatal(got)
		}
		if _, err := mustClient(t, w).UpdateTopic(t.Context(), "t", openapi.PutTopicRequest{Partitions: new(8)}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		partitionOf(t, p, r) // starts the look-up
		time.Sleep(time.Second)
		if got := partitionOf(t, p, r); got <= 2 {
			t.Errorf("still goes to %d", got)
		}
		closeProducer(t, p)
	})
}

func TestTopicThatDoesNotCome(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.decide(func(r request) fate { return fate{lose: r.Op == "topic"} })
		p := w.producer(producer.WithMaxBlock(3 * time.Second))
		start := time.Now()
		wantFailure(t, p.Send(t.Context(), producer.Record{Topic: "t"}), producer.CodeBlocked, openapi.NotApplied)
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("blocked for %v", d)
		}
		w.decide(nil)
		partitionOf(t, p, producer.Record{Topic: "t"})
		closeProducer(t, p)
	})
}
