package bolt_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/bolt"
)

func TestMain(m *testing.M) {
	serveFaults()
	goleak.VerifyTestMain(m)
}

// rig is a data directory with an engine that can be restarted. When the test ends the
// directory must pass Check.
type rig struct {
	*bolt.Store
	t    testing.TB
	dir  string
	opts bolt.Options
	log  *logBuffer
}

// logBuffer keeps what the engine logs.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newRig(t testing.TB, o bolt.Options) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), opts: o, log: &logBuffer{}}
	r.opts.Logger = slog.New(slog.NewTextHandler(r.log, nil))
	r.open()
	t.Cleanup(func() {
		if r.Store != nil {
			_ = r.Store.Close()
		}
	})
	return r
}

// always makes all tests that use a rig go through the tail. Those that damage the trees
// then look in vain for what lies in the tail, and fail.
var always = flag.Bool("tail", false, "put every small batch into the tail first")

func (r *rig) open() {
	r.t.Helper()
	if *always {
		r.opts = bolt.WithTail(r.opts)
	}
	s, err := bolt.Open(r.dir, r.opts)
	if err != nil {
		r.t.Fatalf("open: %v", err)
	}
	r.Store = s
}

func (r *rig) crash() {
	r.t.Helper()
	if err := r.Store.Crash(); err != nil {
		r.t.Fatalf("crash: %v", err)
	}
	r.Store = nil
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.Store.Close(); err != nil {
		r.t.Fatalf("close: %v", err)
	}
	r.Store = nil
}

// check expects that Check finds nothing in the closed directory.
func (r *rig) check() *bolt.Report {
	r.t.Helper()
	rep, err := bolt.Check(r.dir, nil)
	if err != nil {
		r.t.Fatalf("check: %v", err)
	}
	for _, p := range rep.Problems {
		r.t.Errorf("check: %s", p)
	}
	return rep
}

func (r *rig) topic(name string, change func(*store.Config)) store.Partition {
	r.t.Helper()
	c := store.DefaultConfig()
	if change != nil {
		change(&c)
	}
	if _, err := r.CreateTopic(context.Background(), name, 1, c); err != nil {
		r.t.Fatal(err)
	}
	return store.Partition{Topic: name}
}

func (r *rig) pid() int64 {
	r.t.Helper()
	p, err := r.AllocateProducer(context.Background(), "")
	if err != nil {
		r.t.Fatal(err)
	}
	return p.ID
}

// app makes an idempotent append of n records that is not held.
func app(p store.Partition, pid, epoch, seq int64, n int) store.Append {
	return store.Append{
		Partition: p, Producer: &store.ProducerSeq{ID: pid, Epoch: epoch, BaseSeq: seq},
		Batch: texts(fmt.Sprintf("%d/%d/%d", pid, epoch, seq), n), NoHold: true,
	}
}

func texts(payload string, n int) batch.Batch {
	var b batch.Builder
	for i := range n {
		b.Add(&batch.Record{
			Value: fmt.Appendf(nil, "%s-%d", payload, i), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp,
		})
	}
	return b.Build()
}

// must appends and expects a fresh record at offset.
func (r *rig) must(a store.Append, offset int64) {
	r.t.Helper()
	ack, err := r.Append(context.Background(), a)
	if err != nil || ack.Duplicate || ack.BaseOffset != offset {
		r.t.Fatalf("append %+v: got %+v, %v, want offset %d", a.Producer, ack, err, offset)
	}
}

// again appends and expects a duplicate of what lies at offset.
func (r *rig) again(a store.Append, offset int64) {
	r.t.Helper()
	ack, err := r.Append(context.Background(), a)
	if err != nil || !ack.Duplicate || ack.BaseOffset != offset {
		r.t.Fatalf("append %+v again: got %+v, %v, want a duplicate at %d", a.Producer, ack, err, offset)
	}
}

// refused appends and expects an error of a code.
func (r *rig) refused(a store.Append, code store.Code) *store.Error {
	r.t.Helper()
	ack, err := r.Append(context.Background(), a)
	if store.CodeOf(err) != code {
		r.t.Fatalf("append %+v: got %+v, %v, want %s", a.Producer, ack, err, code)
	}
	return err.(*store.Error)
}

func (r *rig) bounds(p store.Partition, earliest, next int64) {
	r.t.Helper()
	b, err := r.Bounds(context.Background(), p)
	if err != nil || b.Earliest != earliest || b.HighWatermark != next {
		r.t.Fatalf("bounds %+v, %v, want %d to %d", b, err, earliest, next)
	}
}

// ticker is a clock that the test turns.
type ticker struct {
	mu  sync.Mutex
	now time.Time
}

func newTicker() *ticker { return &ticker{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *ticker) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *ticker) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
