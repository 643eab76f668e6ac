package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

var faultsSeed = flag.Uint64("faults.seed", 0, "seed of the tests with random faults; 0: another one each time")

// seed is that of the flag, or a new one. It is in the output of the test.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := *faultsSeed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-faults.seed=%d", s)
	return s
}

// harm is what a proxy does to a request instead of passing it on.
type harm string

const (
	dropRequest harm = "drop the request"          // the connection is closed, nothing arrives
	dropAnswer  harm = "drop the answer"           // it arrives, then the connection is closed
	cutAnswer   harm = "cut the answer"            // it arrives, half of the answer gets back
	doubled     harm = "double"                    // it arrives twice, the second answer gets back
	doubledLate harm = "double late"               // it arrives again when it has been answered
	delayed     harm = "delay"                     // it arrives later
	unavailable harm = "503"                       // the proxy answers itself, nothing arrives
	badGateway  harm = "502 page"                  // so too, in HTML
	lateGateway harm = "502 page after forwarding" // it arrives, the proxy answers all the same
)

var harms = []harm{dropRequest, dropAnswer, cutAnswer, doubled, doubledLate, delayed, unavailable, badGateway, lateGateway}

// badProxy is a reverse proxy that harms some of the requests. Where the server is
// dead it answers 502 in HTML, as proxies do.
type badProxy struct {
	url    string
	target string // host and port
	share  float64
	way    *http.Transport
	late   sync.WaitGroup // requests that arrive after they have been answered
	lost   chan struct{}  // receives when an answer is lost, if somebody waits for that

	mu       sync.Mutex
	rand     *rand.Rand
	requests int
	harmed   map[harm]int
	marks    map[int]chan struct{}
}

func newBadProxy(tb testing.TB, target string, share float64, seed uint64) *badProxy {
	tb.Helper()
	p := &badProxy{
		target: target, share: share, way: &http.Transport{MaxIdleConnsPerHost: 64}, lost: make(chan struct{}),
		rand: rand.New(rand.NewPCG(seed, 1)), harmed: map[harm]int{}, marks: map[int]chan struct{}{},
	}
	s := httptest.NewServer(p)
	p.url = s.URL
	tb.Cleanup(func() {
		s.Close()
		p.late.Wait()
		p.way.CloseIdleConnections()
	})
	return p
}

// after gives a channel that is closed when so many requests have come.
func (p *badProxy) after(requests int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	mark := make(chan struct{})
	if p.requests >= requests {
		close(mark)
	} else {
		p.marks[requests] = mark
	}
	return mark
}

// counts says how many requests there were, and what was done to how many of them.
func (p *badProxy) counts() (requests, harmed int, by map[harm]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.harmed {
		harmed += n
	}
	return p.requests, harmed, maps.Clone(p.harmed)
}

// decide draws the fate of a request, "" for none, and a time that some fates need.
func (p *badProxy) decide() (harm, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	if mark := p.marks[p.requests]; mark != nil {
		close(mark)
		delete(p.marks, p.requests)
	}
	if p.rand.Float64() >= p.share {
		return "", 0
	}
	h := harms[p.rand.IntN(len(harms))]
	p.harmed[h]++
	return h, time.Duration(p.rand.IntN(200)) * time.Millisecond
}

func (p *badProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	what, d := p.decide()
	switch what {
	case dropRequest:
		panic(http.ErrAbortHandler)
	case unavailable:
		http.Error(w, "no upstream", http.StatusServiceUnavailable)
		return
	case badGateway:
		htmlPage(w)
		return
	case delayed:
		time.Sleep(d)
	case doubled:
		p.forward(r, body)
	case doubledLate:
		p.late.Go(func() {
			time.Sleep(d)
			p.forward(r, body)
		})
	}
	a := p.forward(r, body)
	if what == dropAnswer && a != nil && a.status < 300 {
		select {
		case p.lost <- struct{}{}:
		default:
		}
	}
	switch {
	case what == dropAnswer:
		panic(http.ErrAbortHandler)
	case what == lateGateway || a == nil:
		htmlPage(w)
	case what == cutAnswer:
		a.write(w, len(a.body)/2)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		a.write(w, len(a.body))
	}
}

func htmlPage(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusBadGateway)
	io.WriteString(w, "<html><body><h1>502 Bad Gateway</h1></body></html>") //nolint:errcheck // the client may have gone
}

// proxied is an answer of the server.
type proxied struct {
	status int
	header http.Header
	body   []byte
}

func (a *proxied) write(w http.ResponseWriter, n int) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	w.Write(a.body[:n])
}

// forward passes a request on, whether or not its sender still waits. It gives nil
// when there is no answer.
func (p *badProxy) forward(r *http.Request, body []byte) *proxied {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), time.Minute)
	defer cancel()
	out, err := http.NewRequestWithContext(ctx, r.Method, "http://"+p.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil
	}
	out.Header = r.Header.Clone()
	resp, err := p.way.RoundTrip(out)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	return &proxied{status: resp.StatusCode, header: resp.Header, body: answer}
}

// TestProduceThroughBadProxy sends lines with `oncelog produce` through a proxy that
// harms 30 % of the requests, while the server behind it is killed three times, and
// expects each line to be there once, and those of a partition in order.
func TestProduceThroughBadProxy(t *testing.T) {
	const lines, partitions, kills = 9000, 3, 3
	s := seed(t)
	r := rand.New(rand.NewPCG(s, 0))
	g := newGateway(t)
	segment := int64(64 << 10) // kills meet rolls as well
	g.createTopic("t", partitions, openapi.TopicConfig{SegmentBytes: &segment})
	proxy := newBadProxy(t, g.listen, 0.3, s)
	input, want := keyedLines(r, lines, partitions)

	p := exec.Command("oncelog", "produce", "--url", proxy.url, "--topic", "t", "--key-separator", ":", "--batch-bytes", "1KiB")
	p.Stdin = strings.NewReader(input)
	done := make(chan error, 1)
	var said []byte
	go func() {
		var err error
		said, err = p.CombinedOutput()
		done <- err
	}()
	for kill := range kills {
		select {
		case <-proxy.after(80*(kill+1) + r.IntN(60)):
			g.restart(true)
		case err := <-done:
			t.Fatalf("it has ended before kill %d: %v\n%s", kill, err, said)
		}
	}
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	summary := regexp.MustCompile(`(?m)^(\d+) records stored in \d+ batches, (\d+) of them found stored when sent again;.*$`).FindSubmatch(said) // perhaps behind what it says of outages
	if summary == nil || string(summary[1]) != strconv.Itoa(lines) || string(summary[2]) == "0" {
		t.Errorf("it said %q", said)
	}
	proxy.late.Wait()
	for n, lines := range want {
		got := g.oncelog("consume", "--topic", "t", "--partition", strconv.Itoa(n), "--exit")
		if diff := firstDifference(lines, got); diff != "" {
			t.Errorf("partition %d: %s", n, diff)
		}
	}
	g.stop()
	checkData(t, g.data)

	requests, harmed, by := proxy.counts()
	t.Logf("%s%d of %d requests harmed: %v", said, harmed, requests, by)
	for _, h := range harms {
		if by[h] == 0 {
			t.Errorf("no request met with: %s", h)
		}
	}
}

// keyedLines makes lines with keys, and says which values each partition is to have.
func keyedLines(r *rand.Rand, lines, partitions int) (input string, want []string) {
	var all strings.Builder
	each := make([]strings.Builder, partitions)
	for n := range lines {
		key := fmt.Sprintf("key-%d", r.IntN(50))
		value := fmt.Sprintf("%d %s", n, strings.Repeat("ä:", r.IntN(10)))
		fmt.Fprintf(&all, "%s:%s\n", key, value)
		fmt.Fprintln(&each[producer.KeyPartition([]byte(key), partitions)], value)
	}
	for n := range each {
		want = append(want, each[n].String())
	}
	return all.String(), want
}

// firstDifference says where two texts part, "" when they do not.
func firstDifference(want, got string) string {
	if want == got {
		return ""
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	n := 0
	for n < min(len(w), len(g)) && w[n] == g[n] {
		n++
	}
	end := func(lines []string) []string { return lines[min(n, len(lines)):min(n+3, len(lines))] }
	return fmt.Sprintf("line %d of %d (%d wanted) is %q, not %q", n+1, len(g), len(w), end(g), end(w))
}
