package bench_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
)

func ownTopic() bench.Topic { return bench.Topic{Name: "t", Partitions: 1, Own: true} }

func TestCounts(t *testing.T) {
	f, target, client := newFake(t, nil)
	l := load()
	l.Connections, l.Producers, l.Partitions = 2, 8, 4
	topic := ownTopic()
	topic.Partitions = 4
	got, err := bench.Append(context.Background(), target, l, topic, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Appends != 20 || got.Retries != 10 || got.Requests != 30 || got.Records != 20 || got.Bytes != 200 {
		t.Errorf("%+v", got)
	}
	if got.LatencyMs.Count != 20 || got.RetryLatencyMs.Count != 10 || got.Total.TopicRecords != 20 || got.Total.Requests != 30 {
		t.Errorf("%+v", got)
	}
	if l := got.LatencyMs; l.P50 <= 0 || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max {
		t.Errorf("%+v", l)
	}
	if got.Server != nil {
		t.Errorf("counters of a server without metrics: %+v", got.Server)
	}
	if n := f.next; f.posts != 30 || n[0]+n[1]+n[2]+n[3] != 20 || min(n[0], n[1], n[2], n[3]) == 0 || f.pids != 8 {
		t.Errorf("%d requests, offsets %v, %d producers", f.posts, f.next, f.pids)
	}
}

// A server that answers wrongly is found out, by the answer itself or by what the topic
// holds at the end.
func TestWrongAnswers(t *testing.T) {
	// With a retry of every second batch, request 2 is the first retry: 1, 1 or 2 again…
	retry := func(change func(r *reply)) func(int, *reply) {
		return func(_ int, r *reply) {
			if r.duplicate {
				change(r)
			}
		}
	}
	fresh := func(change func(r *reply)) func(int, *reply) {
		return func(n int, r *reply) {
			if n > 6 && !r.duplicate {
				change(r)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(int, *reply)
		want   string
	}{
		"a retry is stored again":   {retry(func(r *reply) { r.duplicate = false; r.base++; r.last++ }), "not said to be a duplicate"},
		"a retry has other offsets": {retry(func(r *reply) { r.base--; r.last-- }), "answered otherwise"},
		"a retry has no offsets": {retry(func(r *reply) {
			r.text = `{"baseOffset":null,"lastOffset":null,"nextSeq":1,"duplicate":true,"appendedAt":null}`
		}), "answered otherwise"},
		"a retry has another time":    {retry(func(r *reply) { r.at = "2026-01-02T03:04:05.678Z" }), "answered otherwise"},
		"a retry has another nextSeq": {retry(func(r *reply) { r.nextSeq++ }), "answered otherwise"},
		"a retry is refused": {retry(func(r *reply) {
			r.status, r.text = 409, `{"code":"sequence-overlap","retryable":false,"outcome":"not-applied"}`
		}), "a retry is refused: 409 sequence-overlap"},
		"a new batch is called duplicate": {fresh(func(r *reply) { r.duplicate = true }), "never sent before"},
		"an offset is given twice":        {fresh(func(r *reply) { r.base--; r.last-- }), "offset 3 after an answer with 3"},
		"more offsets than records":       {fresh(func(r *reply) { r.last++ }), "for 1 records"},
		"null offsets":                    {fresh(func(r *reply) { r.text = `{"baseOffset":null,"lastOffset":null,"nextSeq":5,"duplicate":false}` }), "offsets -1 to -1"},
		"the wrong nextSeq":               {fresh(func(r *reply) { r.nextSeq-- }), "nextSeq is"},
		"acknowledged and not stored":     {fresh(func(r *reply) { r.store = false; r.base += 100; r.last += 100 }), "after an answer with"},
		"no JSON":                         {fresh(func(r *reply) { r.text = "<html>" }), "no flat JSON"},
		"an error that is no problem":     {fresh(func(r *reply) { r.status, r.text = 502, "bad gateway" }), "status 502"},
		"a refusal for good": {fresh(func(r *reply) {
			r.status, r.text = 404, `{"code":"unknown-topic","detail":"gone","retryable":false,"outcome":"not-applied"}`
		}), "404 unknown-topic: gone"},
		"a redirect, which nobody follows": {fresh(func(r *reply) { r.status, r.text = 307, "elsewhere" }), "status 307"},
	} {
		t.Run(name, func(t *testing.T) {
			_, target, client := newFake(t, c.change)
			_, err := bench.Append(context.Background(), target, load(), ownTopic(), client, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// The last answers of a run may be wrong as well: only the topic itself shows it.
func TestWrongTopic(t *testing.T) {
	lose := func(_ *fake, r *reply) { r.store = false }
	double := func(f *fake, _ *reply) { f.next[0]++ }
	leaveOut := func(_ *fake, r *reply) { r.base++; r.last++ }
	for name, c := range map[string]struct {
		last func(f *fake, r *reply) // changes the last answer
		own  bool
		want string
	}{
		"lost":                  {lose, true, "holds 19 new records, and 20 were acknowledged"},
		"lost, shared":          {lose, false, "holds 19 new records, and 20 were acknowledged"},
		"stored twice":          {double, true, "holds 21 new records, and only 20 were sent"},
		"of others":             {double, false, ""},
		"an offset is left out": {leaveOut, true, "an offset was given twice, and another one not at all"},
	} {
		t.Run(name, func(t *testing.T) {
			f, target, client := newFake(t, nil)
			l := load()
			l.Retries = 0
			f.change = func(n int, r *reply) {
				if n == 20 {
					c.last(f, r)
				}
			}
			topic := ownTopic()
			topic.Own = c.own
			_, err := bench.Append(context.Background(), target, l, topic, client, nil)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What may pass by itself is counted and sent again.
func TestRefusals(t *testing.T) {
	f, target, client := newFake(t, func(n int, r *reply) {
		switch n {
		case 3: // not stored
			r.status, r.store, r.text = 503, false, `{"code":"overloaded","retryable":true,"outcome":"not-applied"}`
		case 8: // stored, as it turns out
			r.status, r.text = 504, `{"code":"commit-timeout","retryable":true,"outcome":"unknown"}`
		}
	})
	l := load()
	l.Retries = 0
	got, err := bench.Append(context.Background(), target, l, ownTopic(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int64{"overloaded": 1, "commit-timeout": 1}; !maps.Equal(got.Errors, want) {
		t.Errorf("errors %v, want %v", got.Errors, want)
	}
	if got.Appends != 20 || f.next[0] != 20 || f.posts != 22 {
		t.Errorf("%d appends, %d records, %d requests", got.Appends, f.next[0], f.posts)
	}
}

func TestNoAnswer(t *testing.T) {
	never := make(chan struct{})
	_, target, client := newFake(t, func(n int, r *reply) {
		if n == 5 {
			r.hang = never
		}
	})
	defer close(never)
	l := load()
	l.Timeout = 50 * time.Millisecond
	_, err := bench.Append(context.Background(), target, l, ownTopic(), client, nil)
	if err == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Error(err)
	}
}

func TestStop(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	_, target, client := newFake(t, func(n int, _ *reply) {
		if n == 10 {
			cancel()
		}
	})
	l := load()
	l.Bytes = 0
	got, err := bench.Append(ctx, target, l, ownTopic(), client, nil)
	if err == nil || got == nil || got.Total.Appends < 5 {
		t.Errorf("%+v, %v", got, err)
	}
}

// With a rate, a stall of the server counts for all that were due meanwhile, not only for
// the one that was under way.
func TestRateCountsFromWhenDue(t *testing.T) {
	const stall = 500 * time.Millisecond
	stalled := make(chan struct{})
	_, target, client := newFake(t, func(n int, r *reply) {
		if n == 10 {
			r.hang = stalled
			time.AfterFunc(stall, func() { close(stalled) })
		}
	})
	l := load()
	l.Bytes, l.Retries, l.Rate, l.Duration = 0, 0, 100, 2*time.Second
	reports := 0
	got, err := bench.Append(context.Background(), target, l, ownTopic(), client, func(p bench.Progress) {
		if reports++; p.Phase != "measuring" || p.Of != l.Duration || p.Done <= 0 || p.RequestsPerSecond < 0 {
			t.Errorf("%+v", p)
		}
	})
	if err != nil || reports == 0 {
		t.Fatalf("%v, %d reports", err, reports)
	}
	// 50 were due, and 25 of them waited for at least half the stall: an eighth of all.
	if got.LatencyMs.P90 < float64(stall.Milliseconds())/2 {
		t.Errorf("p90 is %.1f ms after a stall of %v: %+v", got.LatencyMs.P90, stall, got.LatencyMs)
	}
	if float64(got.Appends) > got.Seconds*l.Rate+2 {
		t.Errorf("%d batches in %.1f s at %.0f a second", got.Appends, got.Seconds, l.Rate)
	}
}
