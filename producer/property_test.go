package producer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// storm is one run of the property: several producers, several partitions, and a
// network and a server that do their worst.
type storm struct {
	seed       uint64
	producers  int
	partitions int
	records    int // of each producer
	inFlight   int
	batchBytes int
	harm       float64 // share of the requests that something happens to
	refuse     float64 // share of the appends that are refused for good
	outages    int     // times of 4 s in which nothing gets through
	expiries   int     // times that a partition forgets a producer
	restarts   int
	hurried    bool // a delivery timeout that outages and delays exceed
}

func drawStorm(t *rapid.T) storm {
	return storm{
		seed:       rapid.Uint64().Draw(t, "seed"),
		producers:  rapid.IntRange(1, 3).Draw(t, "producers"),
		partitions: rapid.IntRange(1, 3).Draw(t, "partitions"),
		records:    rapid.IntRange(1, 60).Draw(t, "records"),
		inFlight:   rapid.IntRange(1, 5).Draw(t, "inFlight"),
		batchBytes: rapid.SampledFrom([]int{1, 100, 1000}).Draw(t, "batchBytes"),
		harm:       rapid.SampledFrom([]float64{0, 0.1, 0.3, 0.6}).Draw(t, "harm"),
		refuse:     rapid.SampledFrom([]float64{0, 0, 0.05}).Draw(t, "refuse"),
		outages:    rapid.IntRange(0, 3).Draw(t, "outages"),
		expiries:   rapid.IntRange(0, 3).Draw(t, "expiries"),
		restarts:   rapid.IntRange(0, 3).Draw(t, "restarts"),
		hurried:    rapid.Bool().Draw(t, "hurried"),
	}
}

// rule is what befalls each request. It is called under the network's lock.
func (s storm) rule(down []time.Time) func(request) fate {
	r := rand.New(rand.NewPCG(s.seed, 1))
	return func(x request) fate {
		for _, at := range down {
			if d := time.Since(at); d >= 0 && d < 4*time.Second {
				return fate{lose: true}
			}
		}
		ms := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Millisecond }
		if x.Op == "append" && r.Float64() < s.refuse {
			return fate{code: []producer.Code{producer.CodeForbidden, producer.CodeInvalidArgument, producer.CodeTooLarge}[r.IntN(3)]}
		}
		if r.Float64() >= s.harm {
			return fate{}
		}
		switch r.IntN(9) {
		case 0:
			return fate{lose: true, delay: ms(50)}
		case 1:
			return fate{loseAnswer: true, delay: ms(50)}
		case 2:
			return fate{double: true, delay: ms(100)}
		case 3:
			return fate{delay: ms(300)}
		case 4:
			return fate{delay: ms(5000)} // beyond the request timeout, and still arriving
		case 5:
			return fate{status: 503}
		case 6:
			return fate{statusLate: []int{408, 429, 500, 502, 504}[r.IntN(5)]}
		case 7:
			return fate{code: []producer.Code{producer.CodeOverloaded, producer.CodeRateLimited, producer.CodeNotReady}[r.IntN(3)], retryAfter: "1"}
		}
		return fate{late: ms(3000)}
	}
}

// outcome is what was told of one record.
type outcome struct {
	value     string
	partition int
	ack       producer.Ack
	err       error
}

// run lets the storm pass and returns what is wrong, "" when nothing is.
func (s storm) run(w *world) string {
	r := rand.New(rand.NewPCG(s.seed, 2))
	start := time.Now()
	soon := func() time.Time { return start.Add(time.Duration(r.IntN(10_000)) * time.Millisecond) }
	var down []time.Time
	for range s.outages {
		down = append(down, soon())
	}
	w.decide(s.rule(down))
	for range s.restarts {
		time.AfterFunc(time.Until(soon()), w.restart)
	}
	for range s.expiries {
		partition, pid := r.IntN(s.partitions), int64(r.IntN(s.producers))
		time.AfterFunc(time.Until(soon()), func() { _ = w.store.ExpireProducer(context.Background(), w.place(partition), pid) })
	}
	var mu sync.Mutex
	var told []outcome
	var wg sync.WaitGroup
	for i := range s.producers {
		seed := r.Uint64()
		wg.Go(func() {
			got := s.produce(w, i, rand.New(rand.NewPCG(seed, 3)))
			mu.Lock()
			told = append(told, got...)
			mu.Unlock()
		})
	}
	wg.Wait()
	time.Sleep(time.Hour) // what is still under way arrives
	return s.check(w, told)
}

func (s storm) produce(w *world, i int, r *rand.Rand) []outcome {
	opts := []producer.Option{
		producer.WithMaxInFlight(s.inFlight), producer.WithBatchBytes(s.batchBytes),
		producer.WithLinger(2 * time.Millisecond), producer.WithRequestTimeout(2 * time.Second),
		producer.WithDeliveryTimeout(10 * time.Minute),
	}
	if s.hurried {
		opts = append(opts, producer.WithDeliveryTimeout(3*time.Second))
	}
	p := w.producer(opts...)
	told := make([]outcome, s.records)
	var futures []producer.Future
	for n := range told {
		o := &told[n]
		o.partition = r.IntN(s.partitions)
		o.value = fmt.Sprintf("%d-%d-%04d", i, o.partition, n)
		futures = append(futures, p.Send(context.Background(), recTo(o.partition, o.value)))
		if r.IntN(4) == 0 {
			time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
		}
	}
	if err := p.Close(context.Background()); err != nil {
		told = append(told, outcome{err: err, value: "close"})
	}
	for n, f := range futures {
		told[n].ack, told[n].err = f.Wait(context.Background())
	}
	return told
}

// check holds the logs against what was told.
func (s storm) check(w *world, told []outcome) string {
	at := map[string][]int64{}
	for partition := range s.partitions {
		last := map[string]string{} // by producer
		for offset, v := range w.log(partition) {
			at[v] = append(at[v], int64(offset))
			if v < last[v[:3]] {
				return fmt.Sprintf("partition %d: %s lies behind %s", partition, v, last[v[:3]])
			}
			last[v[:3]] = v
		}
	}
	for _, o := range told {
		stored := at[o.value]
		e, _ := errors.AsType[*producer.Error](o.err)
		switch {
		case len(stored) > 1:
			return fmt.Sprintf("%s is stored %d times, told %+v, %v", o.value, len(stored), o.ack, o.err)
		case o.err == nil && len(stored) == 0:
			return fmt.Sprintf("%s was acknowledged with %+v and is not stored", o.value, o.ack)
		case o.err == nil && o.ack.Offset >= 0 && o.ack.Offset != stored[0]:
			return fmt.Sprintf("%s was acknowledged at %d and is at %d", o.value, o.ack.Offset, stored[0])
		case o.err != nil && e == nil:
			return fmt.Sprintf("%s failed with %v", o.value, o.err)
		case e != nil && e.Outcome == openapi.NotApplied && len(stored) > 0:
			return fmt.Sprintf("%s is stored, told %v", o.value, o.err)
		case e != nil && e.Outcome != openapi.NotApplied && e.Outcome != openapi.Unknown:
			return fmt.Sprintf("%s has the outcome %q", o.value, e.Outcome)
		case e != nil && s.refuse == 0 && !s.hurried:
			return fmt.Sprintf("%s failed without a reason: %v", o.value, o.err)
		}
	}
	return ""
}

// Every record is stored once and in the order of the sends, or reported with the
// right outcome.
func TestStorm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStorm(rt)
		var wrong string
		var trace []request
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			wrong = s.run(w)
			trace = w.requests
		})
		if wrong != "" {
			for _, x := range trace {
				if x.Op == "append" || x.Op == "ask" {
					rt.Logf("%s %s partition %d pid %d %d:%d try %d -> %d", x.At.Format("05.000"), x.Op, x.Partition, x.PID, x.Epoch, x.BaseSeq, x.Try, x.Answer)
				}
			}
			rt.Fatal(wrong)
		}
	})
}
