package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/batch"
)

// page is the status page of a gateway in a real browser. When the test ends, it must
// not have written an error to the console, broken its policy, or asked another machine
// for anything.
type page struct {
	tb  testing.TB
	ctx context.Context //nolint:containedctx // the browser's own
	url string
	// refusals are allowed to be on the console: browsers put answers above 399 there,
	// and connections that fail.
	refusals atomic.Bool

	mu       sync.Mutex
	faults   []string
	requests []*network.Request // of GET /events
}

// patience bounds a whole test, on a machine that has much else to do. Nothing waits
// longer than it must.
const patience = 5 * time.Minute

// openPage starts a browser at the gateway.
func openPage(t *testing.T, g *gateway) *page {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(findChromium(t)),
		chromedp.UserDataDir(t.TempDir()), chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	p := &page{tb: t, ctx: ctx, url: g.url}
	if err := chromedp.Listen(ctx, p.watch); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.faults {
			t.Error(f)
		}
	})
	p.screen(1440, 900)
	p.do(chromedp.Navigate(p.url + "/"))
	return p
}

// findChromium finds a browser. Without one the test is skipped, but not where one has
// to be.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("ONCELOG_REQUIRE_BROWSER") != "" {
		t.Fatal("there is no Chromium")
	}
	t.Skip("there is no Chromium")
	return ""
}

// watch notes what the page does that it must not. Breaches of its policy are log entries.
func (p *page) watch(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.fault("exception: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.fault("console: %s %s", e.Type, e.Args[0].Value)
		}
	case *log.EventEntryAdded:
		expected := p.refusals.Load() && strings.HasPrefix(e.Entry.Text, "Failed to load resource")
		if !expected && (e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning) {
			p.fault("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.url+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			p.fault("a request to %s", e.Request.URL)
		}
		if strings.HasPrefix(e.Request.URL, p.url+"/events") {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.requests = append(p.requests, e.Request)
		}
	}
}

func (p *page) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.tb.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.tb.Fatal(err)
	}
}

// eval runs JavaScript on a page, and waits for its promise if it gives one.
func eval[T any](p *page, script string) T {
	p.tb.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.tb.Fatalf("%s: %v", script, err)
	}
	return value
}

// until waits until an expression holds.
func (p *page) until(expression string) {
	p.tb.Helper()
	ok := eval[bool](p, `(async () => {
		for (const end = Date.now() + 60000; Date.now() < end; await new Promise((done) => setTimeout(done, 20))) {
			try {
				if (`+expression+`) return true;
			} catch {
				// what it looks at is not there yet
			}
		}
		return false;
	})()`)
	if !ok {
		p.tb.Fatalf("never: %s\nThe page says:\n%s", expression, eval[string](p, `document.querySelector("main").innerText`))
	}
}

// untilText waits until an element has a text in it.
func (p *page) untilText(selector, words string) {
	p.tb.Helper()
	p.until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, words))
}

// text is that of an element.
func (p *page) text(selector string) string {
	p.tb.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q)?.textContent ?? "(nothing)"`, selector))
}

// texts are those of all elements.
func (p *page) texts(selector string) []string {
	p.tb.Helper()
	return eval[[]string](p, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.textContent)`, selector))
}

// click clicks an element with the mouse.
func (p *page) click(selector string) {
	p.tb.Helper()
	p.do(chromedp.ScrollIntoView(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// visit goes to a view, as a link would, and waits until it has its title.
func (p *page) visit(hash, title string) {
	p.tb.Helper()
	eval[chromedp.Void](p, fmt.Sprintf(`location.hash = %q`, hash))
	p.until(fmt.Sprintf(`document.title === %q && document.querySelector("h1")`, title))
}

// screen sets the size of the window.
func (p *page) screen(width, height int64) {
	p.tb.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// theme is what the system of the user has chosen, light or dark.
func (p *page) theme(name string) {
	p.tb.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	if err != nil {
		p.tb.Fatal(err)
	}
}

// axe is the accessibility checker of Deque, unmodified; its license lies beside it.
func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("..", "..", "web", "testdata", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// sender is a producer that a test plays, request by request.
type sender struct {
	g         *gateway
	topic     string
	partition int
	pid       int64
}

func (g *gateway) newSender(topic string, partition int) *sender {
	g.tb.Helper()
	id, err := g.client.AllocateProducer(context.Background())
	if err != nil {
		g.tb.Fatal(err)
	}
	return &sender{g: g, topic: topic, partition: partition, pid: id.PID}
}

// send appends a batch of JSON values.
func (s *sender) send(epoch, baseSeq int64, values ...string) (openapi.AppendResponse, error) {
	var b batch.Builder
	for i, v := range values {
		b.Add(&batch.Record{
			Key: fmt.Appendf(nil, "order-%d", baseSeq+int64(i)), KeyForm: batch.FormText,
			Value: []byte(v), ValueForm: batch.FormJSON, Timestamp: batch.NoTimestamp,
		})
	}
	seq := &producer.Sequence{PID: s.pid, Epoch: epoch, BaseSeq: baseSeq}
	return s.g.client.AppendBatch(context.Background(), s.topic, s.partition, seq, b.Build().Bytes, producer.Identity)
}

// stored sends a batch that must be taken.
func (s *sender) stored(epoch, baseSeq int64, values ...string) openapi.AppendResponse {
	s.g.tb.Helper()
	r, err := s.send(epoch, baseSeq, values...)
	if err != nil {
		s.g.tb.Fatal(err)
	}
	return r
}

// refused sends a batch that must be refused with a code.
func (s *sender) refused(code producer.Code, epoch, baseSeq int64, values ...string) {
	s.g.tb.Helper()
	if _, err := s.send(epoch, baseSeq, values...); err == nil || !strings.Contains(err.Error(), string(code)) {
		s.g.tb.Fatalf("got %v, want %s", err, code)
	}
}
