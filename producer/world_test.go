package producer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/memory"
)

// world is a server over the model store, with a network before it.
type world struct {
	*network
	t     testing.TB
	store *memory.Store
}

// inWorld runs a scenario under virtual time: topic "t" with 3 partitions.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t)) })
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{network: &network{tries: map[string]int{}}, t: t}
	w.renew()
	return w
}

// renew replaces the server by one that knows nothing but the empty topic.
func (w *world) renew() { w.renewWith(memory.Options{}) }

func (w *world) renewWith(o memory.Options) {
	w.store = memory.Open(o)
	if _, err := w.store.CreateTopic(w.t.Context(), "t", 3, store.DefaultConfig()); err != nil {
		w.t.Fatal(err)
	}
	w.restart()
}

// restart replaces the server and keeps the store.
func (w *world) restart() {
	s, err := server.New(server.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	s.Serve(w.store)
	w.serve(s)
}

// producer makes a producer that sends each record at once in a batch of its own.
func (w *world) producer(opts ...producer.Option) *producer.Producer {
	w.t.Helper()
	all := append([]producer.Option{
		producer.WithTransport(w.network), producer.WithLinger(0), producer.WithBatchBytes(1),
	}, opts...)
	p, err := producer.New("http://oncelog.test", all...)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// rec is a record for partition 0 of topic "t".
func rec(value string) producer.Record { return recTo(0, value) }

func recTo(partition int, value string) producer.Record {
	return producer.Record{Topic: "t", Partition: &partition, Value: []byte(value)}
}

// sendAll sends r0, r1, … to partition 0.
func sendAll(p *producer.Producer, from, n int) []producer.Future {
	var out []producer.Future
	for i := range n {
		out = append(out, p.Send(context.Background(), rec(fmt.Sprint("r", from+i))))
	}
	return out
}

// log gives the values in a partition.
func (w *world) log(partition int) []string {
	w.t.Helper()
	out := []string{}
	for offset := int64(0); ; {
		r, err := w.store.Read(context.Background(), store.Read{
			Partition: store.Partition{Topic: "t", Number: partition}, Offset: offset, MaxRecords: 1000, MaxBytes: 1 << 20,
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if len(r.Batches) == 0 {
			return out
		}
		for _, b := range r.Batches {
			rd, err := batch.NewReader(b.Bytes)
			if err != nil {
				w.t.Fatal(err)
			}
			var rec batch.Record
			for {
				ok, err := rd.Next(&rec)
				if err != nil {
					w.t.Fatal(err)
				}
				if !ok {
					break
				}
				out = append(out, string(rec.Value))
			}
			offset = b.LastOffset + 1
		}
	}
}

func (w *world) wantLog(partition int, want ...string) {
	w.t.Helper()
	if got := w.log(partition); !slices.Equal(got, want) {
		w.t.Errorf("partition %d holds %q, want %q", partition, got, want)
	}
}

// appends lists the append requests to a partition, as "epoch:baseSeq".
func (w *world) appends(partition int) []string {
	w.mu.Lock()
	sent := slices.Clone(w.requests)
	w.mu.Unlock()
	// What set out at the same moment is listed by sequence.
	slices.SortStableFunc(sent, func(a, b request) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.BaseSeq, b.BaseSeq))
	})
	var out []string
	for _, r := range sent {
		if r.Op == "append" && r.Partition == partition {
			out = append(out, fmt.Sprintf("%d:%d", r.Epoch, r.BaseSeq))
		}
	}
	return out
}

// count counts the requests of an operation.
func (w *world) count(op string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if r.Op == op {
			n++
		}
	}
	return n
}

func (w *world) wantAppends(partition int, want ...string) {
	w.t.Helper()
	if got := w.appends(partition); !slices.Equal(got, want) {
		w.t.Errorf("partition %d was sent %q, want %q", partition, got, want)
	}
}

// wantOffset waits for a success and checks its offset.
func wantOffset(t testing.TB, f producer.Future, offset int64, duplicate bool) {
	t.Helper()
	a, err := f.Wait(context.Background())
	if err != nil {
		t.Errorf("want offset %d, got error %v", offset, err)
		return
	}
	if a.Offset != offset || a.Duplicate != duplicate {
		t.Errorf("got offset %d, duplicate %t, want %d, %t", a.Offset, a.Duplicate, offset, duplicate)
	}
}

// wantFailure waits for a failure and checks its code and outcome.
func wantFailure(t testing.TB, f producer.Future, code producer.Code, outcome openapi.Outcome) *producer.Error {
	t.Helper()
	a, err := f.Wait(context.Background())
	e, ok := errors.AsType[*producer.Error](err)
	if !ok {
		t.Errorf("want %s, got %+v, %v", code, a, err)
		return nil
	}
	if !errors.Is(err, code) || e.Outcome != outcome {
		t.Errorf("got %v, want %s with outcome %s", err, code, outcome)
	}
	return e
}

func wantOffsets(t testing.TB, fs []producer.Future, from int64) {
	t.Helper()
	for i, f := range fs {
		a, err := f.Wait(context.Background())
		if err != nil || a.Offset != from+int64(i) {
			t.Errorf("record %d: got offset %d, %v, want %d", i, a.Offset, err, from+int64(i))
		}
	}
}

func closeProducer(t testing.TB, p *producer.Producer) {
	t.Helper()
	if err := p.Close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// hooks records what a producer tells.
type hooks struct {
	producer.NoHook
	mu     sync.Mutex
	resets []producer.Reset
	done   []producer.BatchOutcome
	tries  []producer.Attempt
}

func (h *hooks) OnReset(r producer.Reset) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resets = append(h.resets, r)
}

func (h *hooks) OnBatch(b producer.BatchOutcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = append(h.done, b)
}

func (h *hooks) OnAttempt(a producer.Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries = append(h.tries, a)
}

func (h *hooks) reasons() []producer.ResetReason {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []producer.ResetReason
	for _, r := range h.resets {
		out = append(out, r.Reason)
	}
	return out
}

func (w *world) place(partition int) store.Partition {
	return store.Partition{Topic: "t", Number: partition}
}

func (w *world) recreate(topic string) {
	w.t.Helper()
	if _, err := w.store.CreateTopic(context.Background(), topic, 3, store.DefaultConfig()); err != nil {
		w.t.Fatal(err)
	}
}

func mustClient(t testing.TB, w *world) *producer.Client {
	t.Helper()
	c, err := producer.NewClient("http://oncelog.test", producer.WithTransport(w.network))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
