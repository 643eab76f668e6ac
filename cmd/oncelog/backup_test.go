package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/batch"
)

// sentBatch is a batch that a server has acknowledged.
type sentBatch struct {
	partition int
	producer.Sequence
	body       []byte
	baseOffset int64
}

// senders append from several producers, each batch of every third sent twice, and keep
// what has been acknowledged.
type senders struct {
	client *producer.Client

	mu     sync.Mutex
	acked  []sentBatch
	failed bool
	more   *sync.Cond
}

func (s *senders) have() []sentBatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.acked)
}

// wait waits until so many batches are acknowledged.
func (s *senders) wait(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.acked) < n && !s.failed {
		s.more.Wait()
	}
}

func (s *senders) run(ctx context.Context, partitions int) error {
	id, err := s.client.AllocateProducer(ctx)
	if err != nil {
		return err
	}
	for n := int64(0); ctx.Err() == nil; n++ {
		for p := range partitions {
			b := sentBatch{partition: p, Sequence: producer.Sequence{PID: id.PID, Epoch: id.Epoch, BaseSeq: 2 * n}}
			var builder batch.Builder
			for i := range int64(2) {
				value := fmt.Appendf(nil, "record %d of producer %d", b.BaseSeq+i, b.PID)
				builder.Add(&batch.Record{Value: value, ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
			}
			b.body = builder.Build().Bytes
			if err := s.send(ctx, &b, n%3 == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *senders) send(ctx context.Context, b *sentBatch, twice bool) error {
	ack, err := s.client.AppendBatch(ctx, "t", b.partition, &b.Sequence, b.body, producer.Identity)
	if err != nil || ack.BaseOffset == nil {
		return err
	}
	b.baseOffset = *ack.BaseOffset
	if twice {
		again, err := s.client.AppendBatch(ctx, "t", b.partition, &b.Sequence, b.body, producer.Identity)
		if err != nil {
			return err
		}
		if !again.Duplicate || *again.BaseOffset != b.baseOffset {
			return fmt.Errorf("sent again: %+v", again)
		}
	}
	s.mu.Lock()
	s.acked = append(s.acked, *b)
	s.mu.Unlock()
	s.more.Broadcast()
	return nil
}

// TestBackupUnderLoad takes backups while appends with retries run. Each one, restored,
// knows every batch that was acknowledged before it was asked for: sent again, it is a
// duplicate at its old offset. Both servers then pass oncelog verify.
func TestBackupUnderLoad(t *testing.T) {
	const partitions, workers = 2, 4
	g := newGateway(t)
	g.createTopic("t", partitions, openapi.TopicConfig{})
	s := &senders{client: g.client}
	s.more = sync.NewCond(&s.mu)
	ctx, stop := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error {
			err := s.run(ctx, partitions)
			if err == nil || ctx.Err() != nil {
				return nil //nolint:nilerr // it was to end
			}
			s.mu.Lock()
			s.failed = true
			s.mu.Unlock()
			s.more.Broadcast()
			return err
		})
	}
	var files [2]string
	var before [2][]sentBatch
	for i := range files {
		s.wait(len(s.have()) + 100)
		files[i] = filepath.Join(t.TempDir(), "backup.db")
		before[i] = s.have()
		g.oncelog("backup", g.url, files[i])
	}
	s.wait(len(s.have()) + 20) // so that there is something that no backup has
	stop()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	g.oncelog("verify")
	for i, file := range files {
		h := unstarted(t)
		h.oncelog("restore", file, h.data)
		h.start()
		h.oncelog("verify")
		stored := h.total("t", partitions)
		for _, b := range before[i] {
			ack, err := h.client.AppendBatch(t.Context(), "t", b.partition, &b.Sequence, b.body, producer.Identity)
			if err != nil || !ack.Duplicate || ack.BaseOffset != nil && *ack.BaseOffset != b.baseOffset {
				t.Fatalf("backup %d, a retry of %+v at offset %d: %+v, %v", i, b.Sequence, b.baseOffset, ack, err)
			}
		}
		if now, all := h.total("t", partitions), g.total("t", partitions); now != stored || now >= all || now < 2*int64(len(before[i])) {
			t.Errorf("backup %d has %d records, %d after the retries; %d batches were acknowledged before it, and the server has %d records",
				i, stored, now, len(before[i]), all)
		}
		h.oncelog("verify")
	}
}

// total is how many records a topic has ever had.
func (g *gateway) total(topic string, partitions int) (n int64) {
	g.tb.Helper()
	for p := range partitions {
		info, err := g.client.Partition(context.Background(), topic, p)
		if err != nil {
			g.tb.Fatal(err)
		}
		n += info.NextOffset
	}
	return n
}

// halfway is a proxy that gives half of a backup and then does something.
type halfway struct {
	target string
	then   func(w http.ResponseWriter, rest io.Reader)
}

func (p *halfway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resp, err := http.Get(p.target + r.URL.Path)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	for _, k := range []string{"Content-Length", "Content-Type", "Repr-Digest"} {
		w.Header().Set(k, resp.Header.Get(k))
	}
	w.WriteHeader(resp.StatusCode)
	n, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64)
	if err != nil {
		panic(err)
	}
	if _, err := io.CopyN(w, resp.Body, n/2); err != nil {
		panic(http.ErrAbortHandler)
	}
	w.(http.Flusher).Flush()
	p.then(w, resp.Body)
}

// TestBackupThatDoesNotCome: whatever becomes of a backup on the way, no file looks whole
// that is not.
func TestBackupThatDoesNotCome(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	fillLog(t, g, "t", 1, 8, 1<<19)
	var client *exec.Cmd
	half := make(chan struct{})
	wait := func(_ http.ResponseWriter, _ io.Reader) { half <- struct{}{}; <-half }
	for _, tc := range []struct {
		name, said string
		then       func(w http.ResponseWriter, rest io.Reader)
		now        func() error // when half of it has come
		code       int
		left       int
	}{
		{name: "cut off", said: "broke off after", then: func(http.ResponseWriter, io.Reader) { panic(http.ErrAbortHandler) }, code: exitFailure},
		{name: "a bit is another", said: "its SHA-256 is", then: func(w http.ResponseWriter, rest io.Reader) {
			b, _ := io.ReadAll(rest)
			b[len(b)-1] ^= 1
			_, _ = w.Write(b)
		}, code: exitFailure},
		{name: "interrupted", said: "canceled", then: wait, now: func() error { return client.Process.Signal(syscall.SIGINT) }, code: exitFailure},
		// Nobody can tidy up then. What is left says that it is a part.
		{name: "killed", then: wait, now: func() error { return client.Process.Kill() }, code: -1, left: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proxy := httptest.NewServer(&halfway{g.url, tc.then})
			defer proxy.Close()
			dir := t.TempDir()
			client = exec.Command("oncelog", "backup", proxy.URL, filepath.Join(dir, "backup.db"))
			var stderr bytes.Buffer
			client.Stderr = &stderr
			if err := client.Start(); err != nil {
				t.Fatal(err)
			}
			if tc.now != nil {
				<-half
				if err := tc.now(); err != nil {
					t.Error(err)
				}
			}
			client.Wait() //nolint:errcheck // the code says it
			if tc.now != nil {
				half <- struct{}{}
			}
			if code := client.ProcessState.ExitCode(); code != tc.code || !strings.Contains(stderr.String(), tc.said) {
				t.Errorf("code %d, %s", code, &stderr)
			}
			left, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || len(left) != tc.left || tc.left == 1 && !strings.HasSuffix(left[0], ".part") {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestBackupOfADyingServer: the server is killed while it sends. When it is back, nothing
// of the copy is left in its directory.
func TestBackupOfADyingServer(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	fillLog(t, g, "t", 1, 32, 1<<20-64) // more than sockets hold
	resp, err := http.Get(g.url + "/backup")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	g.kill()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("%d of %d bytes look like a whole backup", n, resp.ContentLength)
	}
	g.start()
	left, err := os.ReadDir(g.data)
	if err != nil || len(left) != 1 {
		t.Errorf("in the data directory are %v, %v", left, err)
	}
	g.oncelog("backup", g.url, filepath.Join(t.TempDir(), "backup.db"))
	g.oncelog("verify")
}
