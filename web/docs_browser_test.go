package web_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/openapi/spec"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store/bolt"
)

// docsPage is a browser at a server with an empty store.
type docsPage struct {
	tb  testing.TB
	ctx context.Context //nolint:containedctx // the browser's own
	url string

	mu      sync.Mutex
	faults  []string // what a page must not do
	refused string   // the host of a server that it is to try to ask
}

// patience is for a machine with two cores that has much else to do. Nothing waits
// longer than it must.
const patience = 8 * time.Minute

// openDocs starts both. When the test ends, no page may have written an error to the
// console, broken its policy, or asked another machine for anything.
func openDocs(t *testing.T) *docsPage {
	t.Helper()
	chromium := findChromium(t)
	gateway, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st, err := bolt.Open(t.TempDir(), bolt.Options{DiskReserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	gateway.Serve(st)
	s := httptest.NewServer(gateway)
	t.Cleanup(s.Close)

	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium),
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
	p := &docsPage{tb: t, ctx: ctx, url: s.URL}
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
	return p
}

// findChromium finds a browser. Without one the test is skipped, but not where one is
// known to be.
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

// watch notes what a page must not do. Breaches of a policy are log entries.
func (p *docsPage) watch(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.fault("exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.fault("console: %s %s", e.Type, e.Args[0].Value)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.fault("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.url+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			p.fault("a request to %s", e.Request.URL)
		}
	}
}

func (p *docsPage) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text := fmt.Sprintf(format, args...); p.refused == "" || !strings.Contains(text, p.refused) {
		p.faults = append(p.faults, text)
	}
}

func (p *docsPage) do(steps ...chromedp.Action[chromedp.Void]) {
	p.tb.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.tb.Fatal(err)
	}
}

// eval runs JavaScript, and waits for its promise if it gives one.
func eval[T any](p *docsPage, script string) T {
	p.tb.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.tb.Fatal(err)
	}
	return value
}

func (p *docsPage) screen(width, height int64) {
	p.tb.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// theme is what the system of the user has chosen, light or dark.
func (p *docsPage) theme(name string) {
	p.tb.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	if err != nil {
		p.tb.Fatal(err)
	}
}

// open loads the page about the API and waits until all of the document is shown.
func (p *docsPage) open() {
	p.tb.Helper()
	p.do(chromedp.Navigate(p.url + "/docs"))
	p.until(`document.querySelector(".opblock")`)
}

// until waits until an expression gives something.
func (p *docsPage) until(expression string) {
	p.tb.Helper()
	eval[chromedp.Void](p, `(async () => {
		while (!(`+expression+`)) await new Promise(done => setTimeout(done, 20));
	})()`)
}

// wide is an expression that gives what sticks out of the screen on the right.
const wide = `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
	.slice(0, 5).map(e => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 60))
	.concat(document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : [])`

// answer is what Swagger UI shows after Execute.
type answer struct {
	Status string
	Body   string
	Wide   []string
}

func (a *answer) check(t *testing.T, operation string) {
	t.Helper()
	if !strings.HasPrefix(a.Status, "2") || strings.Contains(a.Status, "Undocumented") {
		t.Errorf("%s: %s %s", operation, a.Status, a.Body)
	}
	if len(a.Wide) > 0 {
		t.Errorf("%s is wider than the screen: %q", operation, a.Wide)
	}
}

// tryOut opens an operation, presses Try it out and then Execute, and closes it again.
// It gives what Swagger UI shows of the answer.
func (p *docsPage) tryOut(operation string) answer {
	p.tb.Helper()
	return eval[answer](p, `(async () => {
		const until = async get => {
			for (let got; ; await new Promise(done => setTimeout(done, 20))) if ((got = get())) return got;
		};
		const op = document.querySelector('.opblock[id$="-`+operation+`"]');
		const toggle = () => op.querySelector(".opblock-summary-control").click();
		if (!op.classList.contains("is-open")) toggle();
		const start = await until(() => op.querySelector(".try-out__btn"));
		if (!start.classList.contains("cancel")) start.click();
		const execute = await until(() => op.querySelector(".execute"));
		op.querySelector(".btn-clear")?.click(); // the answer before this one
		await until(() => !op.querySelector(".live-responses-table"));
		execute.click();
		const row = await until(() => op.querySelector(".live-responses-table tbody tr, .validation-errors"));
		const shown = row.matches(".validation-errors") ? { Status: "not sent", Body: row.textContent, Wide: [] } : {
			Status: row.querySelector(".response-col_status").textContent,
			Body: row.querySelector(".response-col_description").textContent,
			Wide: `+wide+`,
		};
		toggle();
		return shown;
	})()`)
}

// tour are the operations that the page tells a newcomer to click.
var tour = []string{"createTopic", "allocateProducer", "appendBatch", "appendBatch", "readRecords"}

// last are the operations that take away what the others look at.
var last = []string{"trimRecords", "expireProducer", "deleteSnapshot", "deleteTopic"}

// TestDocsExamplesWork clicks the tour and then every other operation, in the order of
// the page, with nothing but the examples that are filled in, on a small screen.
func TestDocsExamplesWork(t *testing.T) {
	p := openDocs(t)
	p.screen(360, 740)
	p.open()
	var answers []answer
	for _, operation := range tour {
		a := p.tryOut(operation)
		a.check(t, operation)
		answers = append(answers, a)
	}
	if t.Failed() {
		return // the others need what these have made
	}
	if first, again := answers[2].Body, answers[3].Body; !strings.Contains(first, `"duplicate": false`) || !strings.Contains(again, `"duplicate": true`) {
		t.Errorf("the append and its retry: %s\n%s", first, again)
	}
	if read := answers[4].Body; !strings.Contains(read, `"nextOffset": 3`) {
		t.Errorf("read: %s", read)
	}
	shown := eval[[]string](p, `[...document.querySelectorAll(".opblock")].map(op => op.id.split("-").pop())`)
	if want := operations(t); !slices.Equal(slices.Sorted(slices.Values(shown)), want) {
		t.Errorf("shown are %v, not %v", shown, want)
	}
	rest := slices.DeleteFunc(shown, func(operation string) bool {
		return operation == "events" || slices.Contains(tour, operation) || slices.Contains(last, operation)
	})
	for _, operation := range slices.Concat(rest, last) {
		a := p.tryOut(operation)
		a.check(t, operation)
	}
}

// operations are those of the document, sorted.
func operations(t *testing.T) []string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(spec.JSON(), &document); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, methods := range document.Paths {
		for _, op := range methods {
			all = append(all, op.OperationID)
		}
	}
	slices.Sort(all)
	return all
}

// TestDocsTour follows the links of the page with the mouse.
func TestDocsTour(t *testing.T) {
	p := openDocs(t)
	p.screen(1280, 900)
	p.open()
	for _, operation := range []string{"createTopic", "readRecords"} {
		p.do(
			chromedp.ScrollIntoView(chromedp.ID("tour")),
			chromedp.Click(chromedp.CSS(`a[href$="/`+operation+`"]`), chromedp.NodeVisible),
		)
		p.until(`document.querySelector('.opblock.is-open[id$="-` + operation + `"] .try-out__btn')`)
	}
	eval[chromedp.Void](p, `document.querySelector('.opblock[id$="-events"] .opblock-summary-control').click()`)
	p.until(`document.querySelector('.opblock[id$="-events"] .responses-wrapper')`)
	if eval[bool](p, `document.querySelector('.opblock[id$="-events"] .try-out__btn') !== null`) {
		t.Error("the event stream can be executed, and never ends")
	}
}

// TestDocsInTheDark expects the page to follow the theme of the system.
func TestDocsInTheDark(t *testing.T) {
	p := openDocs(t)
	colours := func(theme string) string {
		p.theme(theme)
		p.open()
		if got := eval[bool](p, `document.documentElement.classList.contains("dark-mode")`); got != (theme == "dark") {
			t.Errorf("Swagger UI has its dark colours in the %s: %v", theme, got)
		}
		return eval[string](p, `getComputedStyle(document.querySelector(".opblock")).backgroundColor + getComputedStyle(document.querySelector(".opblock-summary-path")).color`)
	}
	if light, dark := colours("light"), colours("dark"); light == dark {
		t.Errorf("both are %s", light)
	}
}

// axe is the accessibility checker of Deque, unmodified.
//
//go:embed testdata/axe-core/axe.min.js
var axe string

// TestProblemPagesForAll expects the page of each problem code to fit on a small
// screen, and to be fit for screen readers and for weak eyes, in the light and in the
// dark.
func TestProblemPagesForAll(t *testing.T) {
	p := openDocs(t)
	p.screen(360, 740)
	paths := []string{"/problems"}
	for _, problem := range openapi.ProblemTypes() {
		paths = append(paths, problem.Path())
	}
	for _, path := range paths {
		p.do(chromedp.Navigate(p.url + path))
		if w := eval[[]string](p, wide); len(w) > 0 {
			t.Errorf("%s is wider than the screen: %q", path, w)
		}
		eval[chromedp.Void](p, axe)
		for _, theme := range []string{"light", "dark"} {
			p.theme(theme)
			for _, v := range eval[[]string](p, `axe.run().then(r => r.violations.map(v => v.impact + ": " + v.id + ": " + v.nodes[0].html))`) {
				t.Errorf("%s, %s: %s", path, theme, v)
			}
		}
	}
}

// TestOtherOriginsStayOut expects the policy of each page to keep a script of the page
// itself from asking another server.
func TestOtherOriginsStayOut(t *testing.T) {
	p := openDocs(t)
	other := httptest.NewServer(nil)
	defer other.Close()
	u, err := url.Parse(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.refused = u.Host // the browser may tell of it later than the page does
	p.mu.Unlock()
	for _, path := range []string{"/docs", "/problems"} {
		p.do(chromedp.Navigate(p.url + path))
		refused := eval[bool](p, `new Promise(done => {
			addEventListener("securitypolicyviolation", () => done(true));
			fetch("`+other.URL+`/").then(() => done(false), () => {});
		})`)
		if !refused {
			t.Errorf("%s can ask %s", path, other.URL)
		}
	}
}
