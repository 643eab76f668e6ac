package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
)

// front is a proxy before a gateway that notes when reads of records come, and can
// harm them.
type front struct {
	*httptest.Server
	mu    sync.Mutex
	reads []frontRead
	enter chan struct{} // has a token for each read, as far as there is room
}

// frontRead is a read of records.
type frontRead struct {
	path string
	at   time.Time
}

// newFront starts one. harm is called for the n-th read of records, counted from 1, and
// reports whether it has answered it.
func newFront(t *testing.T, g *gateway, harm func(n int, w http.ResponseWriter, r *http.Request) bool) *front {
	t.Helper()
	target, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{enter: make(chan struct{}, 100)}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.ErrorLog = log.New(io.Discard, "", 0) // clients go when they are interrupted
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/records") {
			f.mu.Lock()
			f.reads = append(f.reads, frontRead{r.URL.Path, time.Now()})
			n := len(f.reads)
			f.mu.Unlock()
			select {
			case f.enter <- struct{}{}:
			default:
			}
			if harm(n, w, r) {
				return
			}
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// pauses waits for n reads more than one, and returns the times between them.
func (f *front) pauses(t *testing.T, n int) []time.Duration {
	t.Helper()
	for range n + 1 {
		select {
		case <-f.enter:
		case <-time.After(startTimeout):
			t.Fatal("the consumer has stopped reading")
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var d []time.Duration
	for i := range n {
		d = append(d, f.reads[i+1].at.Sub(f.reads[i].at))
	}
	return d
}

// TestConsumePausesAfterEmptyAnswers expects no storm of reads when something lets no
// poll wait.
func TestConsumePausesAfterEmptyAnswers(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	f := newFront(t, g, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		q := r.URL.Query()
		q.Del("waitMs")
		r.URL.RawQuery = q.Encode()
		return false
	})
	follow := g.run("consume", "--topic", "t", "--url", f.URL)
	for i, d := range f.pauses(t, 4) {
		if d < emptyPause/2 {
			t.Errorf("read %d came %v after the one before it", i+2, d)
		}
	}
	follow.interrupt(exitOK)
}

// TestConsumeSaysThatItTries expects one line when the server fails and one when it is
// back, however often it was asked and for however many partitions, and pauses that
// grow between the tries.
func TestConsumeSaysThatItTries(t *testing.T) {
	const failures = 8
	g := newGateway(t)
	g.createTopic("t", 2, openapi.TopicConfig{})
	failed := make(chan struct{})
	f := newFront(t, g, func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n > failures {
			return false
		}
		if n == failures {
			close(failed)
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	follow := g.run("consume", "--topic", "t", "--url", f.URL)
	<-failed
	for i := range 2 {
		p := g.run("produce", "--topic", "t", "--partition", fmt.Sprint(i))
		fmt.Fprintln(p.in, "line", i)
		p.wait(exitOK)
		follow.expectLine(fmt.Sprint("line ", i))
	}
	said := strings.Split(strings.TrimSuffix(follow.interrupt(exitOK), "\n"), "\n")
	if len(said) < 2 || !strings.Contains(said[0], "trying again for up to 1m0s") || said[len(said)-1] != "oncelog: the server answers again" {
		t.Errorf("%q", said)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	const least = 40 * time.Millisecond // of the first pause; each is twice the one before, up to a bound
	tries, last := map[string]int{}, map[string]time.Time{}
	for n, read := range f.reads {
		if tried := tries[read.path]; tried > 0 {
			if d := read.at.Sub(last[read.path]); d < min(least<<(tried-1), 800*time.Millisecond) {
				t.Errorf("%s is tried again after %v, it has been tried %d times", read.path, d, tried)
			}
		}
		if tries[read.path], last[read.path] = tries[read.path]+1, read.at; n >= failures {
			tries[read.path] = 0 // it was answered
		}
	}
}

// TestProduceSaysThatItWaits expects a word about a server that is not there yet.
func TestProduceSaysThatItWaits(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	g.kill()
	p := g.run("produce", "--topic", "t")
	p.in.Close()
	p.expectSaid("trying again for up to 2m0s")
	g.start()
	if said := p.wait(exitOK); !strings.Contains(said, "refused") || !strings.Contains(said, "the server answers again") {
		t.Error(said)
	}
}

// TestLogsAreReadable expects durations that people can read, those of the
// configuration too.
func TestLogsAreReadable(t *testing.T) {
	g := newGateway(t, "--log-level", "debug", "--log-format", "json")
	g.oncelog("topic", "list")
	g.stop()
	durations := 0
	for line := range strings.SplitSeq(strings.TrimSpace(g.logs.tail(1000)), "\n") {
		var l struct {
			Msg      string
			Duration any
			Flags    map[string]any
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if l.Duration != nil {
			durations++
			text, ok := l.Duration.(string)
			if _, err := time.ParseDuration(text); !ok || err != nil {
				t.Errorf("duration %v in: %s", l.Duration, line)
			}
		}
		if l.Msg == "configuration" && (l.Flags["drain-timeout"] != "30s" || l.Flags["data"] != g.data) {
			t.Errorf("configuration: %s", line)
		}
	}
	if durations < 2 {
		t.Errorf("%d durations in the log:\n%s", durations, g.logs.tail(1000))
	}
}
