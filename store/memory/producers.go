package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// expiresAt is when a live state expires, unless another batch comes.
func expiresAt(state sequence.State, c store.Config) int64 {
	return min(state.LastTimestamp()+c.ProducerExpiryMs, sequence.Max)
}

// expireIdle replaces the states whose time has come by tombstones.
func (s *Store) expireIdle(p *partition, c store.Config) {
	for id, state := range p.producers {
		if due := expiresAt(state, c); state.Live() && due <= s.clock {
			p.expire(id, due)
			s.stats.ExpiredProducers++
		}
	}
	s.boundTombstones(p)
}

func (p *partition) expire(id, at int64) {
	state := p.producers[id]
	p.producers[id] = state.Expire(at)
	delete(p.counters, id)
	p.expiries++
}

// live counts the producers that are no tombstones.
func (p *partition) live() int {
	n := 0
	for _, state := range p.producers {
		if state.Live() {
			n++
		}
	}
	return n
}

// states lists the live ones among the states of p by producer id.
func (p *partition) states(of map[int64]sequence.State, c store.Config) []store.ProducerState {
	var out []store.ProducerState
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if state := of[id]; state.Live() {
			ps := store.ProducerState{Partition: p.name, ID: id, State: state, ExpiresAt: fromMillis(expiresAt(state, c))}
			if counters := p.counters[id]; counters != nil { // none since a restart
				ps.Counters = *counters
			}
			out = append(out, ps)
		}
	}
	return out
}

// liveStates lists the producers of a partition as of now.
func (s *Store) liveStates(t *topic, p *partition) []store.ProducerState {
	s.expireIdle(p, t.Config)
	return p.states(p.producers, t.Config)
}

// Producers sums up each producer over the partitions that know it.
func (s *Store) Producers(ctx context.Context, after int64, limit int) ([]store.ProducerSummary, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	all := s.summaries("")
	from := sort.Search(len(all), func(i int) bool { return all[i].ID > after })
	return all[from:min(from+limit, len(all))], nil
}

// VisitProducers shows all producers, or those of a topic.
func (s *Store) VisitProducers(ctx context.Context, topic string, visit func(*store.ProducerSummary) error) error {
	all, err := s.summariesOf(ctx, topic)
	for i := range all { // without the lock, for visit may call back
		if err := visit(&all[i]); err != nil {
			return err
		}
	}
	return err
}

func (s *Store) summariesOf(ctx context.Context, topic string) ([]store.ProducerSummary, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if topic != "" && s.topics[topic] == nil {
		return nil, unknownTopic(topic)
	}
	return s.summaries(topic), nil
}

// summaries sums up the producers of a topic, "" for all, by id.
func (s *Store) summaries(topic string) []store.ProducerSummary {
	sums := map[int64]*store.ProducerSummary{}
	for _, t := range s.byName() {
		if topic != "" && t.Name != topic {
			continue
		}
		for _, p := range t.partitions {
			for _, state := range s.liveStates(t, p) {
				if sums[state.ID] == nil {
					sums[state.ID] = &store.ProducerSummary{}
				}
				sums[state.ID].Add(&state)
			}
		}
	}
	var out []store.ProducerSummary
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[id])
	}
	return out
}

// Producer lists what each partition knows of one producer.
func (s *Store) Producer(ctx context.Context, id int64) ([]store.ProducerState, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if id < 0 || id >= s.nextPID {
		return nil, unissued(id)
	}
	var out []store.ProducerState
	for _, t := range s.byName() {
		for _, p := range t.partitions {
			for _, state := range s.liveStates(t, p) {
				if state.ID == id {
					out = append(out, state)
				}
			}
		}
	}
	return out, nil
}

// ProducerOwner says whom an id was given to.
func (s *Store) ProducerOwner(ctx context.Context, id int64) (string, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	defer s.leave()
	if id < 0 || id >= s.nextPID {
		return "", unissued(id)
	}
	return s.owners[id], nil
}

// PartitionProducers lists the producers that a partition knows.
func (s *Store) PartitionProducers(ctx context.Context, name store.Partition, after int64, limit int) ([]store.ProducerState, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return nil, err
	}
	var out []store.ProducerState
	for _, state := range s.liveStates(t, p) {
		if state.ID > after && len(out) < limit {
			out = append(out, state)
		}
	}
	return out, nil
}

// RecentProducers lists the producers that a partition knows by their newest batches.
func (s *Store) RecentProducers(ctx context.Context, name store.Partition, limit int) ([]store.ProducerState, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return nil, err
	}
	states := s.liveStates(t, p)
	slices.SortFunc(states, func(a, b store.ProducerState) int {
		return cmp.Compare(b.State.LastOffset(), a.State.LastOffset())
	})
	return states[:min(limit, len(states))], nil
}

// PartitionProducer gives what a partition knows of one producer.
func (s *Store) PartitionProducer(ctx context.Context, name store.Partition, id int64) (store.ProducerState, error) {
	if err := s.enter(ctx); err != nil {
		return store.ProducerState{}, err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return store.ProducerState{}, err
	}
	return s.liveState(t, p, id)
}

func (s *Store) liveState(t *topic, p *partition, id int64) (store.ProducerState, error) {
	for _, state := range s.liveStates(t, p) {
		if state.ID == id {
			return state, nil
		}
	}
	left := p.state(id)
	return store.ProducerState{}, store.NoState(p.name, id, &left)
}

// ExpireProducer makes a tombstone of a live producer.
func (s *Store) ExpireProducer(ctx context.Context, name store.Partition, id int64) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	t, p, err := s.find(name)
	if err != nil {
		return err
	}
	if _, err := s.liveState(t, p, id); err != nil {
		return err
	}
	p.expire(id, s.clock)
	s.stats.ExpiredProducers++
	s.boundTombstones(p)
	return nil
}
