package bench_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
	"github.com/oncelog/oncelog/producer"
)

// fake is a server that follows the contract as far as a run needs it, unless its
// answer to an append is changed on the way. It stands in for a faulty oncelog, which
// cannot be had otherwise.
type fake struct {
	mu     sync.Mutex
	pids   int64
	next   [4]int64 // offsets
	stored map[string]reply
	posts  int

	// change may alter an answer; it runs before the batch is stored. n counts posts.
	change func(n int, r *reply)
}

// reply is an answer to an append. It has no body if text is set.
type reply struct {
	base, last, nextSeq int64
	duplicate           bool
	at                  string
	status              int
	text                string
	hang                <-chan struct{}

	store bool // whether the batch goes into the log
}

func newFake(t *testing.T, change func(n int, r *reply)) (*fake, bench.Target, *producer.Client) {
	t.Helper()
	f := &fake{stored: map[string]reply{}, change: change}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /producers", f.allocate)
	mux.HandleFunc("GET /topics/t/partitions/{p}", f.partition)
	mux.HandleFunc("POST /topics/t/partitions/{p}/batches", f.append)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	client, err := producer.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return f, bench.Target{URL: s.URL}, client
}

func (f *fake) allocate(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"pid":%d,"epoch":0}`, f.pids)
	f.pids++
}

func (f *fake) partition(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, _ := strconv.Atoi(r.PathValue("p"))
	fmt.Fprintf(w, `{"topic":"t","partition":%d,"earliestOffset":0,"nextOffset":%d,"bytes":0,"segments":[],"producers":0,"parked":0}`, n, f.next[n])
}

func (f *fake) append(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	a := f.answer(r)
	if a.hang != nil {
		<-a.hang
	}
	if a.status != 0 {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(a.status)
	}
	if a.text == "" {
		a.text = fmt.Sprintf(`{"topic":"t","partition":0,"baseOffset":%d,"lastOffset":%d,"nextSeq":%d,"duplicate":%v,"appendedAt":"%s"}`, a.base, a.last, a.nextSeq, a.duplicate, a.at)
	}
	_, _ = io.WriteString(w, a.text)
}

func (f *fake) answer(r *http.Request) reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, _ := strconv.Atoi(r.PathValue("p"))
	q := r.URL.Query()
	seq, _ := strconv.ParseInt(q.Get("baseSeq"), 10, 64)
	key := fmt.Sprint(p, q.Get("pid"), seq)
	a, known := f.stored[key]
	if known {
		a.duplicate = true
	} else {
		a = reply{
			base: f.next[p], last: f.next[p], nextSeq: seq + 1, store: true,
			at: time.Unix(1, f.next[p]*int64(time.Millisecond)).UTC().Format("2006-01-02T15:04:05.000Z"),
		}
	}
	sound := a
	f.posts++
	if f.change != nil {
		f.change(f.posts, &a)
	}
	if a.store && !known {
		f.stored[key] = sound
		f.next[p]++
	}
	return a
}

// load is a short one that ends by itself: 20 batches of one record.
func load() bench.Load {
	return bench.Load{
		Connections: 1, Producers: 1, Partitions: 1, RecordBytes: 10, BatchRecords: 1, Format: bench.Raw,
		Retries: 0.5, Bytes: 200, Duration: time.Minute, Timeout: time.Minute,
	}
}
