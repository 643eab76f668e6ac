package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// busy starts producers that write, repeat and overtake until stop is called.
func (g *gateway) busy(topic string, partitions int) (stop func()) {
	g.tb.Helper()
	g.createTopic(topic, partitions, openapi.TopicConfig{})
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 2 * partitions {
		s := g.newSender(topic, i%partitions)
		r := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for seq := int64(0); ; {
				select {
				case <-done:
					return
				default:
				}
				n := 1 + r.IntN(4)
				values := slices.Repeat([]string{fmt.Sprintf(`{"order":%d,"state":"paid"}`, r.IntN(1e6))}, n)
				if _, err := s.send(0, seq, values...); err != nil {
					g.tb.Error(err)
					return
				}
				if r.IntN(5) == 0 {
					if _, err := s.send(0, seq, values...); err != nil {
						g.tb.Error(err)
						return
					}
				}
				seq += int64(n)
			}
		})
	}
	var once sync.Once
	stop = func() { once.Do(func() { close(done); wg.Wait() }) }
	g.tb.Cleanup(stop)
	return stop
}

// commas writes a number as the page does.
func commas(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// TestPageViews loads each view with traffic running, and compares what it says with the
// API when the traffic has ended.
func TestPageViews(t *testing.T) {
	g := newGateway(t)
	stop := g.busy("orders", 3)
	p := openPage(t, g)
	p.until(`Number(document.querySelector('[data-total="records"]').textContent.replaceAll(",", "")) > 0`)
	for _, v := range []struct{ hash, title, shows string }{
		{"#/topics", "Topics – oncelog", "#topics tbody tr"},
		{"#/topics/orders", "orders – oncelog", "#partitions tbody tr"},
		{"#/topics/orders/1", "orders/1 – oncelog", ".record"},
		{"#/producers", "Producers – oncelog", "#producers tbody tr"},
		{"#/producers/0", "Producer 0 – oncelog", ".strip svg .s-stored"},
		{"#/snapshots", "Snapshots – oncelog", "#take"},
		{"#/try", "Try it – oncelog", "#try-again"},
		{"#/", "oncelog", "#chart-latency canvas"},
	} {
		p.visit(v.hash, v.title)
		p.until(fmt.Sprintf(`document.querySelector(%q)`, v.shows))
	}
	stop()
	p.sameTotals(g)

	ctx := context.Background()
	parts := make([]openapi.Partition, 3)
	var records int64
	for n := range parts {
		var err error
		if parts[n], err = g.client.Partition(ctx, "orders", n); err != nil {
			t.Fatal(err)
		}
		records += parts[n].NextOffset
	}
	p.visit("#/topics", "Topics – oncelog")
	p.untilText(`#topics [data-label="Records"]`, commas(records))
	p.visit("#/topics/orders", "orders – oncelog")
	for n := range parts {
		p.until(fmt.Sprintf(`document.querySelectorAll('#partitions [data-label="Next offset"]')[%d]?.textContent === %q`, n, commas(parts[n].NextOffset)))
	}
	p.visit("#/topics/orders/1", "orders/1 – oncelog")
	p.untilText("#fact-next", commas(parts[1].NextOffset))
	p.until(fmt.Sprintf(`[...document.querySelectorAll(".record-offset")].at(-1).textContent === %q`, commas(parts[1].NextOffset-1)))
	p.producersAgree(g)
}

// producersAgree compares the table of producers and one of their pages with the API.
func (p *page) producersAgree(g *gateway) {
	p.tb.Helper()
	list, err := g.client.Producers(context.Background(), producer.Page{Limit: 100})
	if err != nil {
		p.tb.Fatal(err)
	}
	p.visit("#/producers", "Producers – oncelog")
	p.click("#producers thead th:first-child button")
	p.until(`document.querySelector("#producers thead th:first-child").getAttribute("aria-sort") === "ascending"`)
	for i, s := range list.Items {
		p.until(fmt.Sprintf(`(() => {
			const row = document.querySelectorAll("#producers tbody tr")[%d];
			const cell = (name) => row.querySelector('[data-label="' + name + '"]').textContent;
			return cell("Producer") === %q && cell("Accepted") === %q && cell("Duplicate") === %q;
		})()`, i, commas(s.PID), commas(s.Counters.Accepted), commas(s.Counters.Duplicate)))
	}
	p.click("#producers tbody tr:nth-child(2) a")
	p.until(`document.title === "Producer 1 – oncelog"`)
	p.untilText("#fact-accepted", commas(list.Items[1].Counters.Accepted))
	p.untilText("#fact-duplicate", commas(list.Items[1].Counters.Duplicate))
}

// TestPageRecords: values are shown as they were sent, whatever JSON.parse would make of
// them, in three ways, and page by page.
func TestPageRecords(t *testing.T) {
	g := newGateway(t)
	g.createTopic("orders", 1, openapi.TopicConfig{})
	s := g.newSender("orders", 0)
	for i := range int64(30) {
		s.stored(0, 2*i, fmt.Sprintf(`{"n":%d}`, i), `[1.0,{}]`)
	}
	big := `{"id":9007199254740993,"n":1e400,"text":"<b>&amp;</b>"}`
	s.stored(0, 60, big)
	p := openPage(t, g)
	p.visit("#/topics/orders/0", "orders/0 – oncelog")
	last := `[...document.querySelectorAll(".record-value")].at(-1).textContent`
	p.until(last + ` === '` + big + `'`)
	eval[chromedp.Void](p, `(() => { const as = document.querySelector("#values-as"); as.value = "json"; as.dispatchEvent(new Event("change")); })()`)
	want := "{\n  \"id\": 9007199254740993,\n  \"n\": 1e400,\n  \"text\": \"<b>&amp;</b>\"\n}"
	if got := eval[string](p, last); got != want {
		t.Errorf("as JSON: %q, want %q", got, want)
	}
	eval[chromedp.Void](p, `(() => { const as = document.querySelector("#values-as"); as.value = "base64"; as.dispatchEvent(new Event("change")); })()`)
	if got := eval[string](p, `atob(`+last+`)`); got != big {
		t.Errorf("as base64: %q", got)
	}
	p.untilText("#records-where", "41–60 of 0–60")
	eval[chromedp.Void](p, `[...document.querySelectorAll(".records .pager button")].find((b) => b.textContent === "Older").click()`)
	p.untilText("#records-where", "21–40 of 0–60")
	if heads := p.texts(".batch-head"); len(heads) != 11 || !strings.Contains(heads[0], "producer 0, epoch 0sequence 20–21 · 2 records, 1 on this page") {
		t.Errorf("batch headers beside the page: %q", heads)
	}
	eval[chromedp.Void](p, `[...document.querySelectorAll(".records .pager button")].find((b) => b.textContent === "Newer").click()`)
	p.untilText("#records-where", "41–60 of 0–60")
	p.do(chromedp.SendKeys(chromedp.CSS("#offset"), "7"+kb.Enter))
	p.untilText("#records-where", "7–26 of 0–60")
}

// TestPageSnapshots takes a snapshot and verifies it.
func TestPageSnapshots(t *testing.T) {
	g := newGateway(t)
	g.createTopic("orders", 2, openapi.TopicConfig{})
	g.newSender("orders", 1).stored(0, 0, `1`, `2`)
	p := openPage(t, g)
	p.visit("#/snapshots", "Snapshots – oncelog")
	p.untilText("#fact-mark", "1,000")
	p.click("#take")
	p.untilText(".take-outcome", "2 snapshots taken.")
	p.until(`document.querySelectorAll("#snapshots tbody tr").length === 2`)
	row := `[...document.querySelectorAll("#snapshots tbody tr")].find((r) => r.textContent.includes("orders/1"))`
	eval[chromedp.Void](p, row+`.querySelector("button").click()`)
	p.until(row + `.textContent.includes("the same")`)
	list, err := g.client.Snapshots(context.Background(), producer.SnapshotFilter{Topic: "orders"}, producer.Page{Limit: 10})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	crcs := p.texts("#snapshots code")
	slices.Sort(crcs)
	want := []string{list.Items[0].CRC, list.Items[1].CRC}
	slices.Sort(want)
	if !slices.Equal(crcs, want) {
		t.Errorf("on the page %v, in the API %v", crcs, want)
	}
}

// TestPageFirstRun: a server without topics offers the commands of a first append, which
// work as they stand, the last of them twice.
func TestPageFirstRun(t *testing.T) {
	g := newGateway(t)
	p := openPage(t, g)
	p.until(`!document.querySelector(".first-run").hidden`)
	commands := strings.Split(p.text(".first-run pre"), "\n\n")
	if len(commands) != 3 {
		t.Fatalf("%d commands: %q", len(commands), commands)
	}
	for _, command := range append(commands, commands[2]) {
		if out, err := exec.Command("sh", "-c", strings.Replace(command, "curl", "curl -sS --fail-with-body", 1)).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	p.untilText(`[data-total="records"]`, "1")
	p.untilText(`[data-total="duplicates"]`, "1")
	p.until(`document.querySelector(".first-run").hidden`)
	p.sameTotals(g)
}

// TestPageTryIt does what the form offers, on a server where nothing is yet.
func TestPageTryIt(t *testing.T) {
	g := newGateway(t)
	p := openPage(t, g)
	p.visit("#/try", "Try it – oncelog")
	try := func(id string, answers int) []string {
		t.Helper()
		p.click("#" + id)
		p.until(fmt.Sprintf(`document.querySelectorAll(".answer").length === %d && !document.querySelector("#%s").disabled`, answers, id))
		return p.texts(".answer-body")
	}
	bodies := try("try-again", 2)
	if !strings.Contains(bodies[0], `"duplicate": false`) || !strings.Contains(bodies[1], `"duplicate": true`) ||
		p.text("mark.hit") != "  \"duplicate\": true,\n" || !slices.Contains(p.texts(".answer:nth-child(2) .same"), "  \"baseOffset\": 0,\n") {
		t.Errorf("answers: %q, marked %q", bodies, p.texts(".answer:nth-child(2) .same, .hit"))
	}
	p.until(`document.querySelector(".strip svg .s-again")`)
	p.refusals.Store(true)
	if bodies = try("try-gap", 1); !strings.Contains(bodies[0], `"code": "out-of-order-sequence"`) || !strings.Contains(bodies[0], `"expectedSeq": 2`) {
		t.Errorf("a gap: %q", bodies)
	}
	p.until(`document.querySelector(".strip svg .s-gap")`)
	if bodies = try("try-payload", 2); !strings.Contains(bodies[1], `"code": "sequence-reused"`) {
		t.Errorf("another payload: %q", bodies)
	}
	if bodies = try("try-fence", 2); !strings.Contains(bodies[0], `"nextSeq": 2`) || !strings.Contains(bodies[1], `"code": "producer-fenced"`) {
		t.Errorf("an old epoch: %q", bodies)
	}
	if part, err := g.client.Partition(context.Background(), "try-it", 0); err != nil || part.NextOffset != 6 {
		t.Errorf("stored: %+v, %v", part, err)
	}
}

// many is how much TestPageOfMany puts on the page, "1000x10000" say: partitions, producers.
const many = "ONCELOG_MANY"

// longestTask is how many milliseconds of the browser's main thread the page may take at a
// time, with so much on it. Up to 200 ms a page is felt to answer at once.
const longestTask = 200

// fill creates a topic and lets producers write to it. It gives their number.
func fill(t *testing.T, g *gateway, topic string) (partitions, producers int) {
	t.Helper()
	partitions, producers = 120, 130
	if text := os.Getenv(many); text != "" {
		if _, err := fmt.Sscanf(text, "%dx%d", &partitions, &producers); err != nil {
			t.Fatalf("%s=%s: %v", many, text, err)
		}
	}
	g.createTopic(topic, partitions, openapi.TopicConfig{})
	for range producers { // one after the other, for ids in the order of partitions
		g.newSender(topic, 0)
	}
	next := make(chan int64)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for pid := range next {
				s := &sender{g: g, topic: topic, partition: int(pid) % partitions, pid: pid}
				if _, err := s.send(0, 0, `1`); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for pid := range int64(producers) {
		next <- pid
	}
	close(next)
	wg.Wait()
	return partitions, producers
}

// TestPageOfMany: lists are paged by the server, so the page stays small and quick, however
// much there is.
func TestPageOfMany(t *testing.T) {
	g := newGateway(t)
	partitions, producers := fill(t, g, "orders")
	again := &sender{g: g, topic: "orders", partition: 77 % partitions, pid: 77}
	again.stored(0, 0, `1`)
	p := openPage(t, g)
	eval[chromedp.Void](p, `(() => {
		window.tasks = [];
		new PerformanceObserver((l) => l.getEntries().forEach((e) => window.tasks.push([e.duration, location.hash]))).observe({ type: "longtask" });
	})()`)
	p.visit("#/topics/orders", "orders – oncelog")
	p.until(`document.querySelectorAll("#partitions tbody tr").length === 50`)
	turn := func(name string) {
		eval[chromedp.Void](p, `[...document.querySelectorAll(".pager button")].find((b) => b.textContent === "`+name+`").click()`)
	}
	turn("Next")
	p.until(`document.querySelector("#partitions tbody th").textContent === "50"`)
	turn("Next")
	p.until(fmt.Sprintf(`document.querySelectorAll("#partitions tbody tr").length === %d`, min(partitions-100, 50)))
	turn("Previous")
	p.until(`document.querySelector("#partitions tbody th").textContent === "50"`)

	p.visit("#/producers", "Producers – oncelog")
	p.until(`document.querySelectorAll("#producers tbody tr").length === 50`)
	p.click("#producers thead th:nth-child(9) button") // duplicates
	p.until(`document.querySelector("#producers tbody th").textContent === "77"`)
	p.do(chromedp.SendKeys(chromedp.CSS("#filter-pid"), "123"))
	p.until(`document.querySelectorAll("#producers tbody tr").length === 1 && document.querySelector("#producers tbody th").textContent === "123"`)
	p.do(chromedp.SendKeys(chromedp.CSS("#filter-topic"), "orders"))
	p.until(`document.querySelectorAll("#producers tbody tr").length === 1`)
	eval[chromedp.Void](p, `(() => { const s = document.querySelector("#filter-state"); s.value = "refused"; s.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	p.untilText(".table-none", "No producer is like that.")

	p.visit("#/snapshots", "Snapshots – oncelog")
	p.click("#take")
	p.untilText(".take-outcome", commas(int64(partitions))+" snapshots taken.")
	p.until(`document.querySelectorAll("#snapshots tbody tr").length === 50`)
	if n := eval[int](p, `document.querySelectorAll("*").length`); n > 2000 {
		t.Errorf("%d elements on the page", n)
	}
	if os.Getenv(many) != "" { // when nothing else keeps the machine busy
		t.Logf("%d partitions, %d producers: tasks of more than 50 ms: %s", partitions, producers, eval[string](p, `JSON.stringify(window.tasks)`))
		if took := eval[float64](p, `Math.max(0, ...window.tasks.map(([ms]) => ms))`); took > longestTask {
			t.Errorf("the page did not answer for %.0f ms", took)
		}
	}
}
