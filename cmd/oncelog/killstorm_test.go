package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

var faultsRounds = flag.Int("faults.rounds", 4, "rounds of TestProducersThroughKills")

// killStorm is one round: several producers send to several partitions of one topic,
// directly and through a proxy, while the server is killed.
type killStorm struct {
	name       string
	rand       *rand.Rand
	producers  int
	partitions int
	records    int // of each producer
	kills      int
	hurried    bool // delivery timeouts end while the server is down
	oversized  bool // some records are refused for good, as they are beyond the topic's limit
}

const (
	stormBatchBytes = 2000 // the topic's limit, below what some producers want to send
	stormOversize   = 3000
)

func newKillStorm(round int, seed uint64) *killStorm {
	r := rand.New(rand.NewPCG(seed, uint64(round)))
	return &killStorm{
		name: fmt.Sprintf("storm-%d", round), rand: r,
		producers: 2 + r.IntN(3), partitions: 1 + r.IntN(3), records: 150 + r.IntN(250), kills: 2 + r.IntN(2),
		// Every combination in four rounds.
		hurried: round%2 == 1, oversized: round%4 >= 2,
	}
}

// sentRecord is a record and what was told of it.
type sentRecord struct {
	producer, partition, number int
	oversized                   bool
	future                      producer.Future
	ack                         producer.Ack
	err                         error
}

func (s *sentRecord) value() string {
	v := fmt.Sprintf("%d %d %d ", s.producer, s.partition, s.number)
	n := 1 + s.number*37%200
	if s.oversized {
		n = stormOversize
	}
	return v + strings.Repeat("x", n)
}

// TestProducersThroughKills expects of every record of every producer: acknowledged, it
// is stored once, at that offset, and in the order of the sends to its partition;
// reported as not applied, it is not there; reported as unknown, it is there at most
// once, and in its place.
func TestProducersThroughKills(t *testing.T) {
	s := seed(t)
	g := unstarted(t, "--reorder-wait", "20ms")
	g.program = testedBinary(t)
	g.start()
	proxy := newBadProxy(t, g.listen, 0.3, s)
	for round := range *faultsRounds {
		k := newKillStorm(round, s)
		limit, segment := int64(stormBatchBytes), int64(32<<10)
		g.createTopic(k.name, k.partitions, openapi.TopicConfig{MaxBatchBytes: &limit, SegmentBytes: &segment})
		k.run(t, g, proxy)
	}
}

func (k *killStorm) run(t *testing.T, g *gateway, proxy *badProxy) {
	t.Helper()
	var sending sync.WaitGroup
	sent := make([][]*sentRecord, k.producers)
	for i := range k.producers {
		url := g.url
		if i%2 == 1 {
			url = proxy.url
		}
		p, err := producer.New(url, k.options()...)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(k.rand.Uint64(), 0))
		sending.Go(func() {
			sent[i] = k.send(p, i, r)
			if err := p.Close(context.Background()); err != nil {
				t.Errorf("%s: close: %v", k.name, err)
			}
		})
	}
	for range k.kills {
		time.Sleep(time.Duration(50+k.rand.IntN(300)) * time.Millisecond) // the kill is to come at any moment
		if k.hurried {                                                    // kill it before it can be asked again for what it has stored
			select {
			case <-proxy.lost:
			case <-time.After(time.Second): // there may be nothing more to send
			}
		}
		g.kill()
		if k.hurried {
			time.Sleep(time.Duration(300+k.rand.IntN(1000)) * time.Millisecond) // an outage that some do not sit out
		}
		g.start()
	}
	sending.Wait()
	proxy.late.Wait()

	stored := k.read(t, g)
	var acked, duplicates, refused, unknown int
	for _, all := range sent {
		for _, s := range all {
			s.ack, s.err = s.future.Wait(t.Context())
			k.check(t, s, stored)
			switch {
			case s.err == nil && s.ack.Duplicate:
				duplicates++
				fallthrough
			case s.err == nil:
				acked++
			case producer.OutcomeOf(s.err) == openapi.NotApplied:
				refused++
			default:
				unknown++
			}
		}
	}
	if acked == 0 {
		t.Errorf("%s: not one record was acknowledged", k.name)
	}
	t.Logf("%s: %d producers × %d partitions, %d kills, hurried %t, oversized %t: %d records stored (%d duplicates), %d not, %d unknown",
		k.name, k.producers, k.partitions, k.kills, k.hurried, k.oversized, acked, duplicates, refused, unknown)
}

// options draws how a producer is set up.
func (k *killStorm) options() []producer.Option {
	r := k.rand
	request, delivery, backoff := 5*time.Second, 2*time.Minute, 5*time.Millisecond
	if k.hurried {
		request, delivery, backoff = 300*time.Millisecond, 600*time.Millisecond, 50*time.Millisecond
	}
	return []producer.Option{
		producer.WithRequestTimeout(request), producer.WithDeliveryTimeout(delivery),
		producer.WithBackoff(backoff, 100*time.Millisecond), producer.WithLinger(2 * time.Millisecond),
		producer.WithMaxInFlight(1 + r.IntN(5)),
		producer.WithBatchBytes([]int{100, 1000, 4 * stormBatchBytes}[r.IntN(3)]),
		producer.WithCompression([]producer.Encoding{producer.Identity, producer.Gzip, producer.Zstd}[r.IntN(3)]),
	}
}

func (k *killStorm) send(p *producer.Producer, i int, r *rand.Rand) []*sentRecord {
	var sent []*sentRecord
	for n := range k.records {
		s := &sentRecord{
			producer: i, partition: r.IntN(k.partitions), number: n,
			oversized: k.oversized && r.IntN(50) == 0,
		}
		s.future = p.Send(context.Background(), producer.Record{Topic: k.name, Partition: &s.partition, Value: []byte(s.value())})
		sent = append(sent, s)
		if r.IntN(10) == 0 {
			time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond) // spread over the kills
		}
	}
	return sent
}

// storedAt is where a record was found.
type storedAt struct {
	partition int
	offset    int64
}

// read reads the topic. It checks the order of each producer's records, and by that
// also that none is there twice.
func (k *killStorm) read(t *testing.T, g *gateway) map[string]storedAt {
	t.Helper()
	found := map[string]storedAt{}
	for n := range k.partitions {
		last := map[int]int{} // by producer: number of its last record, plus 1
		for offset, end := int64(0), int64(1); offset < end; {
			list, err := g.client.Records(t.Context(), k.name, n, producer.Read{Offset: strconv.FormatInt(offset, 10), Limit: 10_000})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list.Records {
				var s sentRecord
				if r.ValueText == nil || r.Offset != offset {
					t.Fatalf("%s/%d: record %d where %d was to be", k.name, n, r.Offset, offset)
				}
				if _, err := fmt.Sscan(*r.ValueText, &s.producer, &s.partition, &s.number); err != nil || s.partition != n || s.value() != *r.ValueText {
					t.Fatalf("%s/%d: nobody has sent record %d, %.40q", k.name, n, r.Offset, *r.ValueText)
				}
				if s.number < last[s.producer] {
					t.Errorf("%s/%d: record %d of producer %d lies at %d, behind its record %d", k.name, n, s.number, s.producer, offset, last[s.producer]-1)
				}
				last[s.producer] = s.number + 1
				found[*r.ValueText] = storedAt{n, offset}
				offset++
			}
			end = list.HighWatermark
		}
	}
	return found
}

// check holds what was told of a record against the log.
func (k *killStorm) check(t *testing.T, s *sentRecord, stored map[string]storedAt) {
	t.Helper()
	at, there := stored[s.value()]
	who := fmt.Sprintf("%s: record %d of producer %d in partition %d", k.name, s.number, s.producer, s.partition)
	e, typed := errors.AsType[*producer.Error](s.err)
	switch {
	case s.err == nil && !there:
		t.Errorf("%s was acknowledged with %+v and is not there", who, s.ack)
	case s.err == nil && (at.partition != s.ack.Partition || s.ack.Offset >= 0 && at.offset != s.ack.Offset):
		t.Errorf("%s was acknowledged with %+v and is at %+v", who, s.ack, at)
	case s.err == nil:
	case !typed:
		t.Errorf("%s failed with %v", who, s.err)
	case e.Outcome == openapi.NotApplied && there:
		t.Errorf("%s is at %+v, told %v", who, at, e)
	case e.Outcome != openapi.NotApplied && e.Outcome != openapi.Unknown:
		t.Errorf("%s has the outcome %q: %v", who, e.Outcome, e)
	case s.oversized && e.Code != producer.CodeTooLarge && e.Code != producer.CodeUndecided && !k.hurried:
		t.Errorf("%s is beyond the limit and failed with %v", who, e)
	case !s.oversized && !k.hurried && (!k.oversized || e.Code != producer.CodeUndecided):
		// Undecided: one that was refused in front of it, after an answer had been lost.
		t.Errorf("%s failed without a reason: %v", who, e)
	}
}
