package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
)

// activeFor is how long after its last batch a producer counts as active.
const activeFor = time.Minute

// spare is how many producers are gathered before those that cannot be on the page are
// dropped: memory is bounded by it, not by how many producers there are.
const spare = 500

// sortedTokens is the mark of the tokens of a list of producers that is sorted or filtered.
const sortedTokens = "f"

// producerKeys are what a list of producers can be sorted by.
var producerKeys = map[string]func(*store.ProducerSummary) int64{
	"pid":           func(p *store.ProducerSummary) int64 { return p.ID },
	"epoch":         func(p *store.ProducerSummary) int64 { return p.Epoch },
	"partitions":    func(p *store.ProducerSummary) int64 { return int64(p.Partitions) },
	"lastSeq":       func(p *store.ProducerSummary) int64 { return p.Newest.Seq },
	"lastOffset":    func(p *store.ProducerSummary) int64 { return p.Newest.Offset },
	"lastTimestamp": func(p *store.ProducerSummary) int64 { return p.LastTimestamp.UnixMilli() },
	"expiresAt":     func(p *store.ProducerSummary) int64 { return p.ExpiresAt.UnixMilli() },
	"accepted":      func(p *store.ProducerSummary) int64 { return p.Counters.Accepted },
	"duplicate":     func(p *store.ProducerSummary) int64 { return p.Counters.Duplicate },
	"outOfOrder":    func(p *store.ProducerSummary) int64 { return p.Counters.OutOfOrder },
	"fenced":        func(p *store.ProducerSummary) int64 { return p.Counters.Fenced },
	"reused":        func(p *store.ProducerSummary) int64 { return p.Counters.Reused },
	"held":          func(p *store.ProducerSummary) int64 { return p.Counters.Held },
}

// producerStates are what a list of producers can be filtered by.
var producerStates = map[string]func(p *store.ProducerSummary, now time.Time) bool{
	"active": func(p *store.ProducerSummary, now time.Time) bool { return now.Sub(p.LastTimestamp) < activeFor },
	"idle":   func(p *store.ProducerSummary, now time.Time) bool { return now.Sub(p.LastTimestamp) >= activeFor },
	"refused": func(p *store.ProducerSummary, _ time.Time) bool {
		return p.Counters.OutOfOrder+p.Counters.Fenced+p.Counters.Reused > 0
	},
}

// producerQuery is a list of producers in another order than that of their ids, or of
// some of them only.
type producerQuery struct {
	sort    string
	key     func(*store.ProducerSummary) int64
	descend bool
	topic   string // "": all
	pid     int64  // −1: all
	keep    func(p *store.ProducerSummary, now time.Time) bool
	limit   int
	// after is where the page begins: behind the producer that the last one ended with.
	after *producerPlace
}

// producerPlace is a producer's place in a sorted list.
type producerPlace struct{ key, pid int64 }

// producerQuery takes the parameters that sort and filter a list of producers. It gives
// nil when there are none: then the list is by id.
func (q *query) producerQuery() *producerQuery {
	given := false
	text := func(name string) (string, bool) {
		v, ok := q.text(name)
		given = given || ok
		return v, ok
	}
	p := producerQuery{sort: "pid", pid: -1}
	if v, ok := text("sort"); ok {
		p.sort = v
	}
	if p.key = producerKeys[p.sort]; p.key == nil {
		q.fault("sort", "must be one of "+strings.Join(sortedKeys(producerKeys), ", "))
	}
	order, ok := text("order")
	if p.descend = order == "desc"; ok && order != "asc" && order != "desc" {
		q.fault("order", "must be asc or desc")
	}
	if v, ok := text("topic"); ok {
		if p.topic = v; v == "" {
			q.fault("topic", "is empty")
		}
	}
	if v, ok := text("pid"); ok {
		n, is := parseInteger(v)
		if p.pid = n; !is {
			q.fault("pid", "must be an integer from 0 to 9007199254740991")
		}
	}
	if v, ok := text("state"); ok {
		if p.keep = producerStates[v]; p.keep == nil {
			q.fault("state", "must be one of "+strings.Join(sortedKeys(producerStates), ", "))
		}
	}
	if !given {
		return nil
	}
	p.page(q)
	return &p
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// page takes limit and pageToken.
func (p *producerQuery) page(q *query) {
	limit, text := q.page(sortedTokens)
	p.limit = limit
	if text == "" {
		return
	}
	parts := strings.Split(text, ",")
	if len(parts) != 3 || parts[0] != p.order() {
		q.fault("pageToken", "is not a token of this list in this order")
		return
	}
	key, ok := parseInteger(parts[1])
	pid, is := parseInteger(parts[2])
	if !ok || !is {
		q.fault("pageToken", "is not a token of this list")
	}
	p.after = &producerPlace{key, pid}
}

// order names what the list is sorted by.
func (p *producerQuery) order() string {
	if p.descend {
		return "-" + p.sort
	}
	return p.sort
}

func (p *producerQuery) place(s *store.ProducerSummary) producerPlace {
	return producerPlace{p.key(s), s.ID}
}

// compare orders places; producers with the same key are in the order of their ids.
func (p *producerQuery) compare(a, b producerPlace) int {
	c := cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.pid, b.pid))
	if p.descend {
		return -c
	}
	return c
}

// find gives the page, and one producer more if there is a next page.
func (p *producerQuery) find(ctx context.Context, st store.Store, now time.Time) ([]store.ProducerSummary, error) {
	var best []store.ProducerSummary
	var worst *producerPlace // of the best so far, once there are enough of them
	shorten := func() {
		slices.SortFunc(best, func(a, b store.ProducerSummary) int { return p.compare(p.place(&a), p.place(&b)) })
		if len(best) > p.limit {
			best = best[:p.limit+1]
			last := p.place(&best[p.limit])
			worst = &last
		}
	}
	err := p.scan(ctx, st, func(s *store.ProducerSummary) {
		switch {
		case p.keep != nil && !p.keep(s, now):
		case p.after != nil && p.compare(p.place(s), *p.after) <= 0:
		case worst != nil && p.compare(p.place(s), *worst) > 0:
		default:
			if best = append(best, *s); len(best) > spare+p.limit {
				shorten()
			}
		}
	})
	shorten()
	return best, err
}

// scan visits the producers that may be wanted.
func (p *producerQuery) scan(ctx context.Context, st store.Store, visit func(*store.ProducerSummary)) error {
	if p.pid < 0 {
		return st.VisitProducers(ctx, p.topic, func(s *store.ProducerSummary) error {
			visit(s)
			return nil
		})
	}
	if p.topic != "" {
		if _, err := st.Topic(ctx, p.topic); err != nil {
			return err
		}
	}
	states, err := st.Producer(ctx, p.pid)
	if err != nil && store.CodeOf(err) != store.CodeUnknownProducerID {
		return err
	}
	var sum store.ProducerSummary
	for i := range states {
		if p.topic == "" || states[i].Partition.Topic == p.topic {
			sum.Add(&states[i])
		}
	}
	if sum.Partitions > 0 {
		visit(&sum)
	}
	return nil
}

// answer writes the page.
func (p *producerQuery) answer(x *exchange, r *http.Request, st store.Store, now time.Time) error {
	sums, err := p.find(r.Context(), st, now)
	if err != nil {
		return err
	}
	sums, next := cutPage(sums, p.limit, sortedTokens, func(s *store.ProducerSummary) string {
		at := p.place(s)
		return p.order() + "," + decimal(at.key) + "," + decimal(at.pid)
	})
	list := openapi.ProducerList{Items: make([]openapi.ProducerSummary, len(sums)), NextPageToken: next}
	for i := range sums {
		s := &sums[i]
		list.Items[i] = summaryBody(s)
		list.Items[i].Newest = &openapi.NewestBatch{
			Topic: s.Newest.Partition.Topic, Partition: s.Newest.Partition.Number, LastSeq: s.Newest.Seq, LastOffset: s.Newest.Offset,
		}
	}
	return writeJSON(x, http.StatusOK, list)
}
