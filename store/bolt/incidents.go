package bolt

import (
	"cmp"
	"slices"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// note remembers a request that the rule did not let append.
func (s *Store) note(r *request, v sequence.Verdict, passing bool) {
	state, _ := s.group.lookup(r.p, r.producer.ID)
	i := store.IncidentOf(r.p.name, r.producer, r.attempt.Count, state, v)
	i.Lasting = v.Kind == sequence.OutOfOrder && !passing
	s.remember(r, &i)
}

// noteHeld remembers a request that was held until its predecessors came, and is stored
// at an offset now.
func (s *Store) noteHeld(r *request, state *sequence.State, offset int64) {
	i := store.IncidentOf(r.p.name, r.producer, r.attempt.Count, state, sequence.Verdict{Kind: sequence.Append})
	i.Offset = offset
	s.remember(r, &i)
}

func (s *Store) remember(r *request, i *store.Incident) {
	i.At = millis(s.clock.millis())
	if !r.heldAt.IsZero() {
		i.Waited = max(time.Since(r.heldAt), 1)
	}
	s.incidents.Add(i)
}

// Incidents tells what was not simply stored; see [store.Incidents].
func (s *Store) Incidents(after int64, limit int) []store.Incident {
	return s.incidents.Incidents(after, limit)
}

// Rejections tells what of a producer was refused; see [store.Incidents].
func (s *Store) Rejections(id int64) []store.Incident { return s.incidents.Rejections(id) }

// Held tells what waits for its predecessors; see [store.Incidents].
func (s *Store) Held(p store.Partition, id int64) []store.HeldBatch {
	pt, err := s.partition(p)
	if err != nil || pt.parked.Load() == 0 {
		return nil
	}
	pt.heldMu.Lock()
	defer pt.heldMu.Unlock()
	var out []store.HeldBatch
	for _, r := range pt.held[id] {
		out = append(out, store.HeldBatch{
			Epoch: r.attempt.Epoch, BaseSeq: r.attempt.BaseSeq, LastSeq: r.attempt.LastSeq(), Since: r.heldAt,
		})
	}
	slices.SortFunc(out, func(a, b store.HeldBatch) int { return cmp.Compare(a.BaseSeq, b.BaseSeq) })
	return out
}

// setHeld replaces the requests that are held of a producer.
func (p *partition) setHeld(pid int64, held []*request) {
	p.heldMu.Lock()
	defer p.heldMu.Unlock()
	switch {
	case len(held) == 0:
		delete(p.held, pid)
	case p.held == nil:
		p.held = map[int64][]*request{pid: held}
	default:
		p.held[pid] = held
	}
}
