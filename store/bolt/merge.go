package bolt

import (
	"container/heap"
	"context"

	"github.com/oncelog/oncelog/store"
)

// Producers are listed over all partitions by merging the partitions' own lists, which
// are in the order of ids: so a list costs what it gives, not what there is.

// mergeStretch is how many ids are taken from a partition at a time.
const mergeStretch = 64

// cursor is a place in the list of a partition.
type cursor struct {
	p    *partition
	nth  int     // the place of the partition among all, for a steady order
	ids  []int64 // what is left of the stretch, never empty
	full bool    // there may be more behind it
}

// merge is a heap of cursors, the one with the smallest id first.
type merge []*cursor

func (m merge) Len() int      { return len(m) }
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m merge) Less(i, j int) bool {
	if a, b := m[i].ids[0], m[j].ids[0]; a != b {
		return a < b
	}
	return m[i].nth < m[j].nth
}

// Push implements [heap.Interface]; cursors are put in at the start only.
func (m *merge) Push(x any) { *m = append(*m, x.(*cursor)) } //nolint:errcheck // nothing else is pushed

// Pop implements [heap.Interface].
func (m *merge) Pop() any {
	last := len(*m) - 1
	c := (*m)[last]
	*m = (*m)[:last]
	return c
}

func newMerge(parts []*partition, after int64, stretch int) *merge {
	m := make(merge, 0, len(parts))
	for i, p := range parts {
		if ids := p.idsAfter(after, stretch); len(ids) > 0 {
			m = append(m, &cursor{p: p, nth: i, ids: ids, full: len(ids) == stretch})
		}
	}
	heap.Init(&m)
	return &m
}

// next gives the summary of the next producer that is still live, nil at the end.
func (m *merge) next() *store.ProducerSummary {
	for len(*m) > 0 {
		sum := &store.ProducerSummary{}
		for id := (*m)[0].ids[0]; len(*m) > 0 && (*m)[0].ids[0] == id; {
			if st, ok := (*m)[0].p.lookup(id); ok {
				sum.Add(&st)
			}
			m.advance()
		}
		if sum.Partitions > 0 {
			return sum
		}
	}
	return nil
}

// advance moves the first cursor on, and drops it at its end.
func (m *merge) advance() {
	c := (*m)[0]
	last := c.ids[0]
	if c.ids = c.ids[1:]; len(c.ids) == 0 && c.full {
		c.ids = c.p.idsAfter(last, mergeStretch)
		c.full = len(c.ids) == mergeStretch
	}
	if len(c.ids) == 0 {
		heap.Pop(m)
		return
	}
	heap.Fix(m, 0)
}

// merged picks partitions, settles what is due in them, and merges their producers.
func (s *Store) merged(ctx context.Context, topic string, after int64, stretch int) (*merge, error) {
	parts, err := s.pick(store.SnapshotFilter{Topic: topic})
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if err := s.settle(ctx, p); err != nil {
			return nil, err
		}
	}
	return newMerge(parts, after, stretch), nil
}

// Producers lists live producers over all partitions; see [store.Producers].
func (s *Store) Producers(ctx context.Context, after int64, limit int) ([]store.ProducerSummary, error) {
	m, err := s.merged(ctx, "", after, max(1, min(limit, mergeStretch)))
	if err != nil {
		return nil, err
	}
	var out []store.ProducerSummary
	for len(out) < limit {
		sum := m.next()
		if sum == nil {
			break
		}
		out = append(out, *sum)
	}
	return out, nil
}

// VisitProducers shows all live producers, or those of a topic; see [store.Producers].
func (s *Store) VisitProducers(ctx context.Context, topic string, visit func(*store.ProducerSummary) error) error {
	m, err := s.merged(ctx, topic, -1, mergeStretch)
	if err != nil {
		return err
	}
	for sum := m.next(); sum != nil; sum = m.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(sum); err != nil {
			return err
		}
	}
	return nil
}
