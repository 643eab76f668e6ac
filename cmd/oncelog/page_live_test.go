package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// lostAnswer is a proxy that lets the first append through and cuts the connection
// instead of giving its answer back.
func lostAnswer(t *testing.T, g *gateway) *producer.Client {
	t.Helper()
	target, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.ErrorLog = log.New(io.Discard, "", 0)
	lost := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/batches") && !lost {
			lost = true
			pass.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	c, err := producer.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// TestPageShowsWhatHappens plays what clients do to a log while a browser looks at it:
// a retry after a lost answer, an overtaking request, a batch that was dropped, a fenced
// instance, a sequence that is used twice.
func TestPageShowsWhatHappens(t *testing.T) {
	g := newGateway(t, "--reorder-wait", "29s")
	g.createTopic("orders", 1, openapi.TopicConfig{})
	p := openPage(t, g)
	p.untilText("#sentence", "Nothing has been appended")

	s := g.newSender("orders", 0)
	// A lost answer: the client knows nothing and sends the same again.
	direct := g.client
	g.client = lostAnswer(t, g)
	if _, err := s.send(0, 0, `1`, `2`); err == nil {
		t.Fatal("the answer was not lost")
	}
	if again := s.stored(0, 0, `1`, `2`); !again.Duplicate || *again.BaseOffset != 0 {
		t.Fatalf("retry: %+v", again)
	}
	g.client = direct
	p.untilText(`[data-total="duplicates"]`, "1")
	p.untilText(".feed-row:has(.mark-duplicate)", "producer 0 in orders/0: sequences 0–1 came again; stored once, at offset 0")
	p.untilText("#sentence", "Nothing lost, nothing doubled.")
	p.untilText("#advice", "One batch came twice")

	// An overtaking request is held, and committed when its predecessor comes.
	p.visit("#/topics/orders/0", "orders/0 – oncelog")
	p.untilText(".strip-note", "1 came again")
	p.until(`document.querySelector(".strip svg").getAttribute("aria-label").includes("Remembered: 0–1, which came again 1 time")`)
	ahead := make(chan error, 1)
	go func() {
		_, err := s.send(0, 4, `5`)
		ahead <- err
	}()
	p.until(`document.querySelector(".strip svg .s-held")`)
	if said := eval[string](p, `document.querySelector(".strip svg").getAttribute("aria-label")`); !strings.Contains(said, "Missing: 2–3.") || !strings.Contains(said, "Held: 4.") {
		t.Errorf("the line says %q", said)
	}
	p.untilText("#fact-parked", "1")
	s.stored(0, 2, `3`, `4`)
	if err := <-ahead; err != nil {
		t.Fatal(err)
	}
	p.until(`!document.querySelector(".strip svg .s-held") && document.querySelector(".strip svg").getAttribute("aria-label").includes("stored up to sequence 4")`)
	p.untilText("#fact-parked", "0")
	p.visit("#/", "oncelog")
	p.untilText(`[data-total="overtook"]`, "1")
	p.untilText(".feed-row:has(.mark-held)", "sequence 4 came early, waited")
	p.untilText("#sentence", "Nothing lost, nothing doubled.")

	// A dropped batch: nobody sends what is missing.
	s.refused(producer.CodeOutOfOrderSequence, 0, 100_000, `9`)
	p.untilText("#sentence", "Producer 0 has left a gap in orders/0: sequences 5 to 99,999 are missing.")
	p.untilText(`[data-total="lastingGaps"]`, "1")
	p.untilText("#announce", "Trouble: Producer 0 has left a gap")
	p.visit("#/producers/0", "Producer 0 – oncelog")
	p.until(`document.querySelector(".strip svg").getAttribute("aria-label").includes("Missing: 5–99,999. Refused: 100,000.")`)
	p.untilText(".feed-row:has(.mark-missing)", "orders/0: sequence 100,000 came, but 5–99,999 are missing; refused")
	p.untilText("#verdict", "has left a gap")
	s.stored(0, 5, `6`)
	p.until(`!document.querySelector("#verdict").textContent.includes("gap")`)

	// A new instance fences the old one; a sequence is used for another payload.
	s.stored(1, 0, `10`)
	s.refused(producer.CodeProducerFenced, 0, 6, `7`)
	p.untilText("#fact-fenced", "1")
	p.untilText(".strip-fence", "epoch 0 fenced off")
	s.refused(producer.CodeSequenceReused, 1, 0, `11`)
	p.untilText("#fact-reused", "1")
	p.visit("#/", "oncelog")
	p.untilText("#sentence", "used sequences of orders/0 again")
	p.untilText(".findings", "still uses epoch 0 in orders/0")
	p.sameTotals(g)
}

// sameTotals fails unless the counts on the overview are those of the API.
func (p *page) sameTotals(g *gateway) {
	p.tb.Helper()
	c, err := g.client.Producers(context.Background(), producer.Page{Limit: 1000})
	if err != nil {
		p.tb.Fatal(err)
	}
	var sum openapi.ProducerCounters
	for _, s := range c.Items {
		sum.Duplicate += s.Counters.Duplicate
		sum.Fenced += s.Counters.Fenced
		sum.Reused += s.Counters.Reused
	}
	metrics := g.metrics()
	for name, want := range map[string]int64{
		"records": metrics["oncelog_records_stored_total"], "duplicates": sum.Duplicate, "fenced": sum.Fenced, "reused": sum.Reused,
		"overtook":    metrics["oncelog_batches_held_total"] + metrics["oncelog_gaps_passing_total"],
		"lastingGaps": metrics["oncelog_gaps_lasting_total"],
	} {
		p.until(fmt.Sprintf(`document.querySelector('[data-total=%q]').textContent === %q`, name, commas(want)))
	}
}

// metrics are those without labels.
func (g *gateway) metrics() map[string]int64 {
	g.tb.Helper()
	r, err := http.Get(g.url + "/metrics")
	if err != nil {
		g.tb.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		g.tb.Fatal(err)
	}
	out := map[string]int64{}
	for line := range strings.Lines(string(body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.Contains(name, "{") {
			if f, err := strconv.ParseFloat(value, 64); err == nil {
				out[name] = int64(f)
			}
		}
	}
	return out
}

// TestPageComesBack: the page notices that the server has gone, finds the one that was
// started anew, and begins its counts with it.
func TestPageComesBack(t *testing.T) {
	g := newGateway(t)
	g.createTopic("orders", 1, openapi.TopicConfig{})
	s := g.newSender("orders", 0)
	s.stored(0, 0, `1`)
	s.stored(0, 0, `1`)
	p := openPage(t, g)
	p.refusals.Store(true)
	p.untilText(`[data-total="duplicates"]`, "1")
	g.kill()
	p.untilText("#live-text", "no answer")
	p.untilText("#sentence", "The server does not answer.")
	g.start()
	p.untilText("#live-text", "live")
	p.untilText("#sentence", "Ready.")
	p.untilText(`[data-total="duplicates"]`, "0")
	s.stored(0, 0, `1`)
	p.untilText(`[data-total="duplicates"]`, "1") // known again after the kill
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := p.requests[len(p.requests)-1]; last.Headers["Last-Event-ID"] == nil {
		t.Errorf("the stream does not say where it was: %v", last.Headers)
	}
}

// TestPageMissesNothing: when the stream breaks and comes back, the seconds between are
// not missing, nor doubled.
func TestPageMissesNothing(t *testing.T) {
	g := newGateway(t)
	g.createTopic("orders", 1, openapi.TopicConfig{})
	p := openPage(t, g)
	p.untilText("#live-text", "live")
	// Another view makes another stream, which goes on where the one before was.
	p.visit("#/topics/orders/0", "orders/0 – oncelog")
	p.untilText("#fact-next", "0")
	p.visit("#/", "oncelog")
	began := time.Now()
	p.until(`document.querySelector("#tape")`)
	s := g.newSender("orders", 0)
	for i := range int64(4) {
		s.stored(0, i, `1`)
		p.visit("#/producers/0", "Producer 0 – oncelog")
		p.untilText("#fact-accepted", strconv.FormatInt(i+1, 10))
		p.visit("#/", "oncelog")
	}
	t.Logf("views changed for %v", time.Since(began))
	p.untilText(`[data-total="records"]`, "4")
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.requests[1:] {
		if r.Headers["Last-Event-ID"] == nil {
			t.Errorf("stream %d begins anew: %s", i+1, r.URL)
		}
	}
}

// TestPageWithToken: a server with access control is looked at with a token.
func TestPageWithToken(t *testing.T) {
	g := newLockedGateway(t)
	token := g.token("--scope", "consume", "--name", "screen")
	p := openPage(t, g)
	p.refusals.Store(true)
	p.untilText("#sentence", "This server wants a token.")
	eval[string](p, `document.querySelector("#token").value = "nonsense"`)
	p.click(".token-form button")
	p.untilText("#sentence", "The server does not take this token.")
	if got := eval[int](p, `document.querySelectorAll(".panel").length`); got != 0 {
		t.Errorf("%d panels of a server that says nothing", got)
	}
	eval[string](p, `document.querySelector("#token").value = "`+token+`"`)
	p.click(".token-form button")
	p.untilText("#live-text", "live")
	p.untilText("#sentence", "Ready.")
	p.visit("#/topics", "Topics – oncelog")
	p.untilText(".table-none", "There is no topic yet.")
}
