package main

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

const (
	// screenshots is the directory that pictures of the views are written to, if it is
	// set. Those of the README, .github/status-light.png and status-dark.png, are readme-…
	// of a scene of five minutes:
	//
	//	ONCELOG_SCREENSHOTS=/tmp/pictures ONCELOG_SCENE=5m10s go test -run TestPageLook -timeout 20m ./cmd/oncelog
	screenshots = "ONCELOG_SCREENSHOTS"
	// sceneTime is for how long the scene is played before the first picture.
	sceneTime = "ONCELOG_SCENE"
)

const paid = `{"order":17,"state":"paid","amount":129.9}`

// play is what a healthy day looks like: producers that write at their pace, some of whose
// batches come twice or overtake each other.
func play(g *gateway) {
	g.tb.Helper()
	g.createTopic("orders", 2, openapi.TopicConfig{})
	g.createTopic("payments", 2, openapi.TopicConfig{})
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 8 {
		s := g.newSender([]string{"orders", "payments"}[i/5], i%2)
		wg.Go(func() { s.play(rand.New(rand.NewPCG(1, uint64(i))), float64(i), done) })
	}
	g.tb.Cleanup(func() { close(done); wg.Wait() })
}

func (s *sender) play(r *rand.Rand, phase float64, done <-chan struct{}) {
	began := time.Now()
	for seq := int64(0); ; {
		n := int64(1 + r.IntN(6))
		values := slices.Repeat([]string{paid}, int(n))
		switch r.IntN(60) {
		case 0: // overtakes
			ahead := make(chan struct{})
			go func() {
				defer close(ahead)
				_, _ = s.send(0, seq+n, paid)
			}()
			select {
			case <-done:
			case <-time.After(20 * time.Millisecond):
			}
			_, _ = s.send(0, seq, values...)
			<-ahead
			seq += n + 1
		case 1, 2, 3, 4: // comes again
			_, _ = s.send(0, seq, values...)
			fallthrough
		default:
			_, _ = s.send(0, seq, values...)
			seq += n
		}
		select {
		case <-done:
			return
		case <-time.After(time.Duration(r.ExpFloat64() * wave(time.Since(began), phase) * float64(150*time.Millisecond))):
		}
	}
}

// wave makes traffic come and go.
func wave(t time.Duration, phase float64) float64 {
	s := t.Seconds()
	return math.Exp(0.5*math.Sin(s/23+phase/9) + 0.35*math.Sin(s/7+phase/5))
}

// rough is what is long over when the pictures of a long scene are taken: an old instance
// that is fenced off, and a gap that is filled.
func rough(g *gateway) {
	g.tb.Helper()
	a, b := g.newSender("orders", 0), g.newSender("payments", 0)
	a.stored(0, 0, paid)
	a.stored(1, 0, paid)
	a.refused(producer.CodeProducerFenced, 0, 1, paid)
	b.refused(producer.CodeOutOfOrderSequence, 0, 20_000, paid)
	b.stored(0, 0, paid)
}

// trouble adds everything that can go wrong. It gives the producer that is fenced off.
func trouble(g *gateway) (fenced int64) {
	g.tb.Helper()
	g.createTopic("refunds", 1, openapi.TopicConfig{})
	a, b, c, d := g.newSender("refunds", 0), g.newSender("refunds", 0), g.newSender("refunds", 0), g.newSender("refunds", 0)
	for i := range int64(7) {
		a.stored(0, 2*i, paid, paid)
	}
	a.stored(0, 12, paid, paid)
	a.stored(0, 12, paid, paid)
	a.stored(0, 8, paid, paid)
	b.stored(0, 0, paid)
	b.refused(producer.CodeOutOfOrderSequence, 0, 20_000, paid)
	c.stored(0, 0, paid)
	c.stored(1, 0, paid, paid, paid)
	c.refused(producer.CodeProducerFenced, 0, 1, paid)
	d.stored(0, 0, paid, paid)
	d.refused(producer.CodeSequenceReused, 0, 0, paid, `{"order":17,"state":"open"}`)
	go func() {
		_, _ = d.send(0, 6, paid, paid) // it is held while pictures are taken
	}()
	return c.pid
}

// sceneLength is how long the scene is played before the first picture.
func sceneLength(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(sceneTime)
	if text == "" {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPageLook shows every view to a checker of accessibility, in both themes and at two
// widths, holds it to the width of the window, and takes a picture.
func TestPageLook(t *testing.T) {
	g := newGateway(t, "--reorder-wait", "29s")
	play(g)
	if length := sceneLength(t); length > 2*time.Minute {
		time.Sleep(length / 3)
		rough(g)
		time.Sleep(length - length/3)
	} else {
		time.Sleep(length)
	}
	p := openPage(t, g)
	dir := os.Getenv(screenshots)
	if dir == "" {
		dir = t.TempDir()
	}
	eval[chromedp.Void](p, axe(t))
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.untilText("#sentence", "Nothing lost, nothing doubled.")
		p.until(`document.querySelector(".feed-row")`)
		p.accessible("calm, " + theme)
		p.picture(filepath.Join(dir, fmt.Sprintf("calm-1440-%s.png", theme)), chromedp.FullScreenshot(100))
		p.screen(1440, eval[int64](p, `Math.ceil(document.querySelector(".below").getBoundingClientRect().bottom + scrollY) + 14`))
		p.picture(filepath.Join(dir, fmt.Sprintf("readme-%s.png", theme)), chromedp.CaptureScreenshot())
		p.screen(1440, 900)
	}
	fenced := trouble(g)
	views := []struct{ name, hash, title, ready string }{
		{"overview", "#/", "oncelog", `document.querySelector("#chart-percommit canvas") && document.querySelector(".findings li")`},
		{"partition", "#/topics/refunds/0", "refunds/0 – oncelog", `document.querySelectorAll(".strip svg").length > 3 && document.querySelector(".record")`},
		{"topics", "#/topics", "Topics – oncelog", `document.querySelector("#topics tbody tr")`},
		{"topic", "#/topics/orders", "orders – oncelog", `document.querySelector("#partitions tbody tr")`},
		{"producers", "#/producers", "Producers – oncelog", `document.querySelector("#producers tbody tr")`},
		{"producer", fmt.Sprintf("#/producers/%d", fenced), fmt.Sprintf("Producer %d – oncelog", fenced), `document.querySelector(".strip svg") && document.querySelector(".feed-row")`},
		{"snapshots", "#/snapshots", "Snapshots – oncelog", `(window.tried ??= document.querySelector("#take").click() ?? true) && document.querySelectorAll("#snapshots tbody tr").length >= 5`},
		{"try", "#/try", "Try it – oncelog", `(window.tried ??= document.querySelector("#try-again").click() ?? true) && document.querySelectorAll(".answer").length === 2`},
		{"nowhere", "#/nowhere", "Not here – oncelog", `true`},
	}
	for _, width := range []int64{1440, 360} {
		for _, v := range views {
			p.screen(width, 900)
			eval[chromedp.Void](p, `delete window.tried`)
			p.visit(v.hash, v.title)
			p.until(v.ready)
			for _, theme := range []string{"light", "dark"} {
				p.theme(theme)
				p.fits(v.name)
				p.accessible(v.name + ", " + theme)
				p.picture(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", v.name, width, theme)), chromedp.FullScreenshot(100))
			}
		}
	}
	p.screen(1920, 1080)
	for _, v := range views {
		p.visit(v.hash, v.title)
		p.fits(v.name)
	}
}

// fits fails when the page is wider than the window.
func (p *page) fits(name string) {
	p.tb.Helper()
	wide := eval[[]string](p, `document.documentElement.scrollWidth <= innerWidth ? [] :
		[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
			.slice(0, 5).map((e) => e.tagName + "." + e.getAttribute("class") + ": " + e.textContent.slice(0, 60))`)
	if len(wide) > 0 {
		p.tb.Errorf("%s is wider than the window: %q", name, wide)
	}
}

// accessible fails when the checker finds a serious or critical fault.
func (p *page) accessible(name string) {
	p.tb.Helper()
	if n := eval[int](p, `axe.run().then((r) => r.passes.length)`); n < 10 {
		p.tb.Errorf("%s: only %d rules apply, the page is not there", name, n)
	}
	for _, v := range eval[[]string](p, `axe.run().then((r) => r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
		.map((v) => v.impact + ": " + v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).slice(0, 3).join("\n")))`) {
		p.tb.Errorf("%s: %s", name, v)
	}
}

// picture writes what the page looks like.
func (p *page) picture(file string, take chromedp.Action[[]byte]) {
	p.tb.Helper()
	data, err := chromedp.Run(p.ctx, take)
	if err != nil {
		p.tb.Fatal(err)
	}
	if _, err := png.DecodeConfig(bytes.NewReader(data)); err != nil {
		p.tb.Fatalf("%s: %v", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		p.tb.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		p.tb.Fatal(err)
	}
}

// TestPageFlash: a row that has just come can be read in the brightest moment of its
// flash, whatever kind it is of.
func TestPageFlash(t *testing.T) {
	g := newGateway(t)
	g.createTopic("orders", 1, openapi.TopicConfig{})
	s := g.newSender("orders", 0)
	s.stored(0, 0, paid)
	s.stored(0, 0, paid)
	p := openPage(t, g)
	p.until(`document.querySelector(".feed-row")`)
	eval[chromedp.Void](p, axe(t))
	rows := eval[int](p, `(() => {
		const list = document.querySelector(".feed").cloneNode();
		list.id = "flash";
		for (const tone of ["good mark-duplicate", "wait mark-held", "wait mark-early", "lost mark-missing", "lost mark-fenced", "lost mark-reused"]) {
			const row = document.querySelector(".feed-row").cloneNode(true);
			row.classList.add("fresh");
			row.querySelector(".tag").className = "tag " + tone;
			list.append(row);
		}
		document.querySelector(".happenings").append(list);
		const flashes = list.getAnimations({ subtree: true });
		for (const f of flashes) {
			f.pause();
			f.currentTime = 0;
		}
		return flashes.length;
	})()`)
	if rows != 6 {
		t.Errorf("%d rows flash", rows)
	}
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		if n := eval[int](p, `axe.run("#flash", { runOnly: ["color-contrast"] }).then((r) => r.passes.flatMap((v) => v.nodes).length)`); n < 4*rows {
			t.Errorf("%s: only %d texts can be read for certain", theme, n)
		}
		for _, v := range eval[[]string](p, `axe.run("#flash", { runOnly: ["color-contrast"] }).then((r) =>
			[...r.violations, ...r.incomplete].flatMap((v) => v.nodes.map((n) => n.html + " " + n.any[0].message)))`) {
			t.Errorf("%s: %s", theme, v)
		}
	}
}

// TestPageKeyboard: without a mouse one gets to the content, to a view, and is told where
// one is.
func TestPageKeyboard(t *testing.T) {
	g := newGateway(t)
	p := openPage(t, g)
	p.untilText("#live-text", "live")
	focus := func() string {
		return eval[string](p, `document.activeElement.id || document.activeElement.textContent`)
	}
	p.do(chromedp.KeyEvent(kb.Tab))
	if got := focus(); got != "Skip to the content" {
		t.Errorf("first comes %q", got)
	}
	p.do(chromedp.KeyEvent(kb.Enter))
	if got := focus(); got != "main" {
		t.Errorf("the skip link leads to %q", got)
	}
	if got := eval[string](p, `location.hash`); got == "#main" {
		t.Error("the skip link has changed the view")
	}
	eval[chromedp.Void](p, `document.querySelector('[data-view="overview"]').focus()`)
	p.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	p.until(`document.title === "Topics – oncelog"`)
	if got := eval[string](p, `document.activeElement.tagName + " " + document.activeElement.textContent`); got != "H1 Topics" {
		t.Errorf("the focus is on %q", got)
	}
	if got := p.text(`.page-nav [aria-current="page"]`); got != "Topics" {
		t.Errorf("the current view is %q", got)
	}
}

// TestPageTheme: the page follows the system until another theme is chosen, and keeps it.
func TestPageTheme(t *testing.T) {
	g := newGateway(t)
	p := openPage(t, g)
	ground := func() string { return eval[string](p, `getComputedStyle(document.body).backgroundColor`) }
	p.theme("light")
	light := ground()
	p.theme("dark")
	dark := ground()
	if light == dark {
		t.Fatalf("both are %s", light)
	}
	for _, want := range []struct{ text, ground string }{{"Theme: light", light}, {"Theme: dark", dark}, {"Theme: auto", dark}, {"Theme: light", light}} {
		p.click("#theme")
		if got := ground(); got != want.ground || p.text("#theme") != want.text {
			t.Errorf("%s: %s, want %s: %s", p.text("#theme"), got, want.text, want.ground)
		}
	}
	p.do(chromedp.Reload())
	if got := ground(); got != light || !strings.Contains(p.text("#theme"), "light") {
		t.Errorf("after a reload: %s", got)
	}
}
