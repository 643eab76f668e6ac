package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/batch"
)

var killRounds = flag.Int("kill.rounds", 200, "rounds of TestKills")

const (
	crashWorkers    = 5
	crashPartitions = 3
)

// TestKills appends from many producers while the server is killed again and again:
// nothing that was confirmed may be lost, nothing may be there twice, and there may be
// no gap, neither in offsets nor in a producer's sequence.
func TestKills(t *testing.T) {
	g := newGateway(t, "--reorder-wait", "20ms")
	l := startLoad(t, g, crashWorkers, 5*time.Second)
	reader := newLogReader()
	for round := range *killRounds {
		time.Sleep(time.Duration(1+rand.IntN(40)) * time.Millisecond) // the kill is to come at any moment
		confirmed := l.h.confirmedSince()
		g.restart(true)
		reader.read(t, g)
		for _, c := range confirmed {
			if at, ok := reader.found[c.payload]; !ok || at != c.offset {
				t.Errorf("round %d: %s was confirmed at %d, it is at %d (%v)", round, c.payload, c.offset, at, ok)
			}
		}
	}
	l.end(t)
	t.Logf("%d kills", *killRounds)
}

// history is what the workers have been told.
type history struct {
	mu         sync.Mutex
	acked      map[string]int64 // payload → offset
	fresh      []confirmed
	answers    int
	duplicates int
}

// confirmed is a record and where it is said to be.
type confirmed struct {
	payload string
	offset  int64
}

// confirmedSince gives what has been confirmed since the last call.
func (h *history) confirmedSince() []confirmed {
	h.mu.Lock()
	defer h.mu.Unlock()
	fresh := h.fresh
	h.fresh = nil
	return fresh
}

func (h *history) add(payloads []string, r openapi.AppendResponse) error {
	if r.BaseOffset == nil {
		return fmt.Errorf("%s: the offset was forgotten after no more than five batches", payloads[0])
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers++
	if r.Duplicate {
		h.duplicates++
	}
	for i, p := range payloads {
		h.acked[p] = *r.BaseOffset + int64(i)
		h.fresh = append(h.fresh, confirmed{p, *r.BaseOffset + int64(i)})
	}
	return nil
}

// check compares what is in the log with what was confirmed. All workers have got an
// answer for all that they sent, so both are the same.
func (h *history) check(t *testing.T, found map[string]int64) {
	t.Helper()
	if len(found) != len(h.acked) {
		t.Errorf("%d records are there, %d were confirmed", len(found), len(h.acked))
	}
	for p, offset := range h.acked {
		if at, ok := found[p]; !ok || at != offset {
			t.Errorf("%s was confirmed at %d, it is at %d (%v)", p, offset, at, ok)
		}
	}
}

// crashWorker is one producer, with a sequence for each partition. It sends up to
// three batches at a time, so that they may overtake each other.
type crashWorker struct {
	client *producer.Client
	pid    int64
	binary bool
	next   [crashPartitions]int64
	h      *history
}

func newCrashWorker(t *testing.T, g *gateway, h *history, i int, timeout time.Duration) (*crashWorker, error) {
	t.Helper()
	client, err := producer.NewClient(g.url, producer.WithRequestTimeout(timeout))
	if err != nil {
		return nil, err
	}
	t.Cleanup(client.CloseIdleConnections)
	id, err := g.client.AllocateProducer(t.Context()) // which has more patience
	return &crashWorker{client: client, pid: id.PID, binary: i%2 == 0, h: h}, err
}

func (w *crashWorker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		partition := rand.IntN(crashPartitions)
		var window errgroup.Group
		for range 1 + rand.IntN(3) {
			baseSeq := w.next[partition]
			payloads := make([]string, 1+rand.IntN(20))
			for i := range payloads {
				payloads[i] = fmt.Sprintf("%d/%d/%d", w.pid, partition, baseSeq+int64(i))
			}
			w.next[partition] += int64(len(payloads))
			window.Go(func() error { return w.send(partition, baseSeq, payloads) })
		}
		if err := window.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// send sends one batch until it is confirmed; it goes on when the test winds up, so
// that nothing is left open.
func (w *crashWorker) send(partition int, baseSeq int64, payloads []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var r openapi.AppendResponse
	err := until(ctx, func() (err error) {
		if w.binary {
			r, err = w.sendBinary(ctx, partition, baseSeq, payloads)
		} else {
			r, err = w.sendJSON(ctx, partition, baseSeq, payloads)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("pid %d partition %d sequence %d: %w", w.pid, partition, baseSeq, err)
	}
	return w.h.add(payloads, r)
}

func (w *crashWorker) sendBinary(ctx context.Context, partition int, baseSeq int64, payloads []string) (openapi.AppendResponse, error) {
	var b batch.Builder
	for _, p := range payloads {
		b.Add(&batch.Record{Value: []byte(p), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
	}
	s := &producer.Sequence{PID: w.pid, BaseSeq: baseSeq}
	return w.client.AppendBatch(ctx, "t", partition, s, b.Build().Bytes, producer.Identity)
}

func (w *crashWorker) sendJSON(ctx context.Context, partition int, baseSeq int64, payloads []string) (openapi.AppendResponse, error) {
	r := openapi.AppendRequest{PID: &w.pid, Epoch: new(int64), BaseSeq: &baseSeq}
	for _, p := range payloads {
		r.Records = append(r.Records, openapi.AppendRecord{ValueText: &p})
	}
	return w.client.Append(ctx, "t", partition, r)
}

// logReader reads partitions from where it left off, and checks that offsets and
// sequences have no gap and no repetition.
type logReader struct {
	found map[string]int64 // payload → offset
	parts [crashPartitions]struct {
		offset int64
		next   map[string]int64 // by pid
	}
}

func newLogReader() *logReader {
	l := &logReader{found: map[string]int64{}}
	for n := range l.parts {
		l.parts[n].next = map[string]int64{}
	}
	return l
}

// read reads each partition up to its end as it is at the first answer.
func (l *logReader) read(t *testing.T, g *gateway) {
	t.Helper()
	for n := range l.parts {
		at := &l.parts[n]
		for end := int64(math.MaxInt64); at.offset < end; {
			r := producer.Read{Offset: strconv.FormatInt(at.offset, 10), Limit: 10_000}
			list, err := g.client.Records(t.Context(), "t", n, r)
			if err != nil {
				t.Fatal(err)
			}
			end = min(end, list.HighWatermark)
			for _, r := range list.Records {
				if r.Offset != at.offset || r.ValueText == nil {
					t.Fatalf("partition %d: record %d where %d was to be", n, r.Offset, at.offset)
				}
				pid, rest, _ := strings.Cut(*r.ValueText, "/")
				if want := fmt.Sprintf("%d/%d", n, at.next[pid]); rest != want {
					t.Fatalf("partition %d offset %d: %s/%s where %s/%s was to be", n, r.Offset, pid, rest, pid, want)
				}
				at.offset++
				at.next[pid]++
				l.found[*r.ValueText] = r.Offset
			}
		}
	}
}
