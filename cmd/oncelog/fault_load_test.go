package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// load is producers that append to the partitions of topic t, and send again what they get
// no answer for or what may be sent again, whatever happens to the server.
type load struct {
	g       *gateway
	h       *history
	stop    context.CancelFunc
	workers errgroup.Group
}

// startLoad creates the topic and starts so many workers, which wait so long for an answer.
func startLoad(t *testing.T, g *gateway, workers int, timeout time.Duration) *load {
	t.Helper()
	// Small segments, so that faults also meet rolls and their snapshots.
	segment := int64(64 << 10)
	g.createTopic("t", crashPartitions, openapi.TopicConfig{SegmentBytes: &segment})
	l := &load{g: g, h: &history{acked: map[string]int64{}}}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	t.Cleanup(l.stop)
	for i := range workers {
		w, err := newCrashWorker(t, g, l.h, i, timeout)
		if err != nil {
			t.Fatal(err)
		}
		l.workers.Go(func() error { return w.run(ctx) })
	}
	return l
}

// progress waits until so many more batches have been acknowledged.
func (l *load) progress(t *testing.T, batches int) {
	t.Helper()
	from := l.h.count()
	for deadline := time.Now().Add(startTimeout); l.h.count() < from+batches; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d batches have been acknowledged, not %d", l.h.count()-from, batches)
		}
	}
}

// end ends the load when every batch has been acknowledged, and expects each record to be
// there once, where its answer said.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	if err := l.workers.Wait(); err != nil {
		t.Fatal(err)
	}
	whole := newLogReader()
	whole.read(t, l.g)
	l.h.check(t, whole.found)
	t.Logf("%d records, acknowledged by %d answers of which %d were duplicates", len(whole.found), l.h.answers, l.h.duplicates)
}

func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers
}

// probe is one producer in a topic of its own, which asks how the server takes writes.
type probe struct {
	g     *gateway
	topic string
	pid   int64
	next  int64
	size  int // bytes of each record
}

func newProbe(t *testing.T, g *gateway, topic string, size int) *probe {
	t.Helper()
	g.createTopic(topic, 1, openapi.TopicConfig{})
	id, err := g.client.AllocateProducer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &probe{g: g, topic: topic, pid: id.PID, size: size}
}

// send appends the next record, or the same again if the last one was not acknowledged.
func (p *probe) send(ctx context.Context) error {
	r, err := p.again(ctx, p.next)
	if err != nil {
		return err
	}
	if r.BaseOffset == nil || *r.BaseOffset != p.next {
		return fmt.Errorf("record %d is said to be at %v", p.next, r.BaseOffset)
	}
	p.next++
	return nil
}

// value is the record of a sequence.
func (p *probe) value(seq int64) string {
	digits := strconv.FormatInt(seq, 10)
	return strings.Repeat("0", max(0, p.size-len(digits))) + digits
}

// again sends the record of a sequence.
func (p *probe) again(ctx context.Context, seq int64) (openapi.AppendResponse, error) {
	value := p.value(seq)
	return p.g.client.Append(ctx, p.topic, 0, openapi.AppendRequest{
		PID: &p.pid, Epoch: new(int64), BaseSeq: &seq, Records: []openapi.AppendRecord{{ValueText: &value}},
	})
}

// must sends and expects success.
func (p *probe) must(t *testing.T) {
	t.Helper()
	if err := p.send(t.Context()); err != nil {
		t.Fatalf("record %d: %v", p.next, err)
	}
}

// refused sends until it is refused, at most so often, and expects the status and the
// code.
func (p *probe) refused(t *testing.T, most, status int, code producer.Code, outcome openapi.Outcome) {
	t.Helper()
	for range most {
		err := p.send(t.Context())
		if err == nil {
			continue
		}
		e, ok := errors.AsType[*producer.Error](err)
		if !ok || e.Status != status || e.Code != code || e.Outcome != outcome || !e.Retryable {
			t.Fatalf("record %d: %v; want %d %s, %s", p.next, err, status, code, outcome)
		}
		return
	}
	t.Fatalf("%d appends were taken, %s was to come", most, code)
}

// whole expects the records from a sequence on to be there once, each in its place, and a
// repeat of the last one to be found.
func (p *probe) whole(t *testing.T, from int64) {
	t.Helper()
	for offset := from; offset < p.next; {
		list, err := p.g.client.Records(t.Context(), p.topic, 0, producer.Read{Offset: strconv.FormatInt(offset, 10), Limit: 1000, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatalf("read at %d: %v", offset, err)
		}
		if list.HighWatermark < p.next || list.HighWatermark > p.next+1 { // one may be in doubt
			t.Fatalf("%d records, %d were acknowledged", list.HighWatermark, p.next)
		}
		for _, r := range list.Records {
			if r.Offset < p.next && (r.Offset != offset || r.ValueText == nil || *r.ValueText != p.value(offset)) {
				t.Fatalf("the record at %d is not what was stored at %d", r.Offset, offset)
			}
			offset = r.Offset + 1
		}
	}
	if p.next == 0 {
		return
	}
	if r, err := p.again(t.Context(), p.next-1); err != nil || !r.Duplicate || r.BaseOffset == nil || *r.BaseOffset != p.next-1 {
		t.Fatalf("record %d again: %+v, %v", p.next-1, r, err)
	}
}
