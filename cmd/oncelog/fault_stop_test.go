package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// TestStopUnderLoad ends a busy server with SIGTERM: each append that it has begun to read
// is carried out and answered, so are batches that are held for their predecessors, and long
// polls; and what the other clients had under way is stored once in the end.
func TestStopUnderLoad(t *testing.T) {
	const halves, held, polls = 40, 8, 8
	g := newGateway(t, "--reorder-wait", "3s")
	g.createTopic("half", 1, openapi.TopicConfig{})
	g.createTopic("quiet", 1, openapi.TopicConfig{})
	l := startLoad(t, g, 4, 5*time.Second)
	var begun []*halfAppend
	for range halves {
		begun = append(begun, beginAppend(t, g, "half"))
	}
	var waiting errgroup.Group
	for range polls {
		waiting.Go(func() error {
			list, err := g.client.Records(t.Context(), "quiet", 0, producer.Read{Wait: time.Minute})
			if err == nil && len(list.Records) > 0 {
				err = fmt.Errorf("the long poll has %d records", len(list.Records))
			}
			return err
		})
	}
	g.waitForAtLeast(t, "oncelog_http_requests_in_flight", halves+polls)
	l.progress(t, 20)
	for range held { // last, for they do not wait for ever
		id, err := g.client.AllocateProducer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiting.Go(func() error { return g.appendAhead(t.Context(), "quiet", id) })
	}
	g.waitForAtLeast(t, "oncelog_batches_parked", held)
	g.signal(syscall.SIGTERM)
	waitUntilClosed(t, g)
	if err := waiting.Wait(); err != nil {
		t.Error(err)
	}
	for i, a := range begun {
		if status := a.finish(t); status != http.StatusOK {
			t.Errorf("append %d in flight was answered with %d", i, status)
		}
	}
	if code := g.exitCode(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	g.start()
	list, err := g.client.Records(t.Context(), "half", 0, producer.Read{Limit: 1000})
	if err != nil || len(list.Records) != halves {
		t.Errorf("%d of %d appends in flight are stored, %v", len(list.Records), halves, err)
	}
	l.progress(t, 20)
	l.end(t)
	t.Logf("%d appends in flight, %d held batches and %d long polls were answered", halves, held, polls)
}

// appendAhead sends a batch that has to wait for its predecessor, and expects to be told so
// when the server stops.
func (g *gateway) appendAhead(ctx context.Context, topic string, id openapi.ProducerID) error {
	seq, value := int64(1), "ahead"
	_, err := g.client.Append(ctx, topic, 0, openapi.AppendRequest{
		PID: &id.PID, Epoch: &id.Epoch, BaseSeq: &seq, Records: []openapi.AppendRecord{{ValueText: &value}},
	})
	e, ok := err.(*producer.Error)
	if !ok || !e.FromServer || !e.Retryable || e.Outcome != openapi.NotApplied {
		return fmt.Errorf("a batch that was held when the server stopped: %w", err)
	}
	return nil
}

// waitForAtLeast waits until a metric without labels has at least a value.
func (g *gateway) waitForAtLeast(t *testing.T, name string, want int) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(time.Millisecond) {
		if n := g.metric(t, name); n >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is never %d", name, want)
		}
	}
}

// metric reads a metric without labels.
func (g *gateway) metric(t *testing.T, name string) (n int) {
	t.Helper()
	resp, err := http.Get(g.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// TestPaused stops a busy server as a debugger or a suspended machine does, and lets it go
// on. Clients have given up waiting and have sent the same again meanwhile, so it finds
// each batch several times. All is stored once. The time that a producer is idle goes on.
func TestPaused(t *testing.T) {
	const pauses, pause = 5, 150 * time.Millisecond
	g := newGateway(t, "--reorder-wait", "20ms")
	short := pause.Milliseconds() / 2
	g.createTopic("short", 1, openapi.TopicConfig{ProducerExpiryMs: &short})
	idle := &probe{g: g, topic: "short", size: 1}
	l := startLoad(t, g, crashWorkers, pause/5)
	for range pauses {
		l.progress(t, 20)
		id, err := g.client.AllocateProducer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		idle.pid = id.PID
		if _, err := idle.again(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		g.signal(syscall.SIGSTOP)
		time.Sleep(pause) // that is how long it stands still
		g.signal(syscall.SIGCONT)
		_, err = idle.again(t.Context(), 1)
		if e, ok := err.(*producer.Error); !ok || e.Code != producer.CodeProducerExpired {
			t.Errorf("a producer that was idle for %v, with an expiry of %d ms: %v", pause, short, err)
		}
	}
	l.progress(t, 20)
	l.end(t)
	if l.h.duplicates == 0 {
		t.Error("nothing was sent twice")
	}
}
