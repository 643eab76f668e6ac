package memory

import (
	"bytes"
	"context"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

// Append judges a batch and stores it if it is in order.
func (s *Store) Append(ctx context.Context, a store.Append) (store.Ack, error) {
	if err := s.enter(ctx); err != nil {
		return store.Ack{}, err
	}
	defer s.leave()
	t, p, err := s.find(a.Partition)
	if err != nil {
		return store.Ack{}, err
	}
	if a.Producer == nil && t.Config.RequireIdempotence {
		return store.Ack{}, store.Errorf(store.CodeIdempotenceRequired, "topic %q takes no appends without a producer id", t.Name)
	}
	if err := store.CheckSize(t.Config, &a.Batch); err != nil {
		return store.Ack{}, err
	}
	if a.Producer == nil {
		return s.write(t, p, a), nil
	}
	if a.Producer.ID >= s.nextPID {
		return store.Ack{}, unissued(a.Producer.ID)
	}
	if s.owners[a.Producer.ID] != a.Principal {
		return store.Ack{}, store.NotOwner(a.Producer.ID)
	}
	s.expireIdle(p, t.Config)
	state, attempt := p.state(a.Producer.ID), a.Attempt()
	verdict := sequence.Check(&state, attempt)
	lasting := s.count(p.counters[a.Producer.ID], verdict, attempt)
	if verdict.Kind != sequence.Append {
		i := store.IncidentOf(p.name, *a.Producer, a.Batch.Count, &state, verdict)
		i.At, i.Lasting = fromMillis(s.clock), lasting
		s.Log.Add(&i)
	}
	switch verdict.Kind {
	case sequence.Append:
		if !state.Live() {
			s.makeRoom(p, t.Config)
		}
		ack := s.write(t, p, a)
		for _, q := range s.all() {
			s.boundTombstones(q) // room may have been made in any of them
		}
		return ack, nil
	case sequence.Duplicate, sequence.Forgotten:
		return store.DuplicateAck(verdict, attempt), nil
	default:
		return store.Ack{}, store.Refusal(&state, verdict, attempt)
	}
}

// write puts a batch at the end of the partition, together with the state of its
// producer that follows.
func (s *Store) write(t *topic, p *partition, a store.Append) store.Ack {
	if p.rollDue(int64(len(a.Batch.Bytes)), s.clock, t.Config) {
		s.roll(t, p)
	}
	stored := a.Batch
	stored.Bytes = bytes.Clone(a.Batch.Bytes) // the caller may use its own again
	h := store.BatchHeader{
		BaseOffset: p.next,
		LastOffset: p.next + int64(stored.Count) - 1,
		Bytes:      int64(len(stored.Bytes)),
		AppendedAt: fromMillis(s.clock),
		CRC:        batch.CRC(stored.Bytes),
	}
	ack := store.Ack{BaseOffset: h.BaseOffset, LastOffset: h.LastOffset, NextSeq: -1, AppendedAt: h.AppendedAt}
	if a.Producer != nil {
		producer := *a.Producer
		h.Producer = &producer
		ack.NextSeq = a.Attempt().LastSeq() + 1
		state := p.producers[producer.ID]
		p.producers[producer.ID] = state.Apply(a.Attempt(), h.BaseOffset, s.clock)
		if p.counters[producer.ID] == nil {
			p.counters[producer.ID] = &store.Counters{}
		}
		p.counters[producer.ID].Accepted++
	}
	p.add(entry{BatchHeader: h, batch: stored})
	s.stats.Accepted++
	s.stats.Records += int64(stored.Count)
	s.stats.Bytes += h.Bytes
	s.wake()
	return ack
}

// Held gives nothing: what is out of order is refused at once here.
func (s *Store) Held(store.Partition, int64) []store.HeldBatch { return nil }

// count counts what became of an attempt, unless it was appended, in the store's
// counters and in c, those of its producer. A producer that the partition does not know
// has none. It reports whether the attempt has left a gap that lasts.
func (s *Store) count(c *store.Counters, v sequence.Verdict, a sequence.Attempt) (lasting bool) {
	if c == nil {
		c = &store.Counters{}
	}
	switch v.Kind {
	case sequence.Append:
	case sequence.Duplicate, sequence.Forgotten:
		c.Duplicate++
		s.stats.Duplicates++
	case sequence.OutOfOrder:
		c.OutOfOrder++
		// A batch could fit in between for each that may be on its way; what is
		// further ahead than full ones would reach has lost something.
		if a.BaseSeq-v.Expected <= sequence.Window*store.MaxBatchRecords {
			s.stats.PassingGaps++
		} else {
			s.stats.LastingGaps++
			lasting = true
		}
	case sequence.Fenced:
		c.Fenced++
		s.stats.Fenced++
	case sequence.Reused:
		c.Reused++
		s.stats.Reused++
	case sequence.Overlap:
		s.stats.Overlaps++
	case sequence.Expired:
		s.stats.Expired++
	}
	return lasting
}

func unissued(id int64) error {
	return store.Errorf(store.CodeUnknownProducerID, "producer id %d was never given out", id)
}
