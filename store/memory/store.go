package memory

import (
	"context"
	"sync"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/incident"
)

var _ store.Store = (*Store)(nil)

// Options of a [Store]. The zero value is ready for use.
type Options struct {
	// Now is the clock; nil means time.Now. It may jump: arrival times never go back.
	Now func() time.Time
	// MaxProducers bounds the producers that all partitions know, MaxTombstones what one
	// remembers of expired ones. 0: no bound.
	MaxProducers  int64
	MaxTombstones int
}

// Store is an engine that keeps everything in memory.
type Store struct {
	incident.Log
	options Options

	// mu guards everything below, and all that can be reached from there.
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced by each call that changes something
	closed   bool
	clock    int64 // the newest time that was given out, in milliseconds since 1970
	topics   map[string]*topic
	topicIDs int64 // topics ever created
	// partitions is how many were ever made.
	partitions int64
	nextPID    int64
	owners     map[int64]string // of producer ids that have one
	stats      store.Stats
}

// Open gives an empty store.
func Open(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{options: o, changed: make(chan struct{}), topics: map[string]*topic{}, owners: map[int64]string{}}
}

// Restart closes the store, or with kill drops it as it is, and gives the one that
// finds all its data. Neither loses anything but the rest of the block of producer
// ids that was in use when the process was killed.
func (s *Store) Restart(kill bool) *Store {
	if !kill {
		_ = s.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.wake()
	next := Open(s.options)
	next.clock, next.topics, next.topicIDs, next.partitions = s.clock, s.topics, s.topicIDs, s.partitions
	next.nextPID, next.owners = s.nextPID, s.owners
	if block := int64(store.ProducerBlockSize); kill {
		next.nextPID = (s.nextPID + block - 1) / block * block
	}
	for _, t := range s.topics {
		for _, p := range t.partitions {
			for id, state := range p.producers {
				if state.Live() {
					p.counters[id] = &store.Counters{}
				}
			}
		}
	}
	s.topics = nil
	return next
}

// enter takes the lock for one call, which must leave. It fails without the lock
// when the call is cancelled already or the store closed.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return draining()
	}
	s.clock = max(s.clock, s.options.Now().UnixMilli())
	return nil
}

func (s *Store) leave() { s.mu.Unlock() }

// wake lets all that wait look again.
func (s *Store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func draining() error { return store.Errorf(store.CodeDraining, "the store is closing") }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Wait blocks until the high watermark of p is above offset.
func (s *Store) Wait(ctx context.Context, p store.Partition, offset int64) error {
	var id string
	for {
		if err := s.enter(ctx); err != nil {
			return err
		}
		t, part, err := s.find(p)
		if err == nil && id != "" && t.ID != id {
			err = store.Errorf(store.CodeUnknownTopic, "topic %q has been deleted and created again", p.Topic)
		}
		if err != nil {
			s.leave()
			return err
		}
		id = t.ID
		above, changed := part.next > offset, s.changed
		s.leave()
		if above {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// AllocateProducer gives the ids 0, 1, 2, …
func (s *Store) AllocateProducer(ctx context.Context, owner string) (store.ProducerID, error) {
	if err := store.CheckOwner(owner); err != nil {
		return store.ProducerID{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.ProducerID{}, err
	}
	defer s.leave()
	id := s.nextPID
	s.nextPID++
	if owner != "" {
		s.owners[id] = owner
	}
	return store.ProducerID{ID: id}, nil
}

// Ready fails once the store is closed.
func (s *Store) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return draining()
	}
	return nil
}

// Stats gives the counters. Nothing is held, committed or on disk here.
func (s *Store) Stats() store.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.DiskFree = -1
	stats.Producers, stats.MaxProducers = s.live(), s.options.MaxProducers
	for _, p := range s.all() {
		stats.Tombstones += int64(len(p.producers) - p.live())
	}
	return stats
}

// Close takes the snapshots that are due and refuses all calls from then on.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.clock = max(s.clock, s.options.Now().UnixMilli())
	for _, t := range s.topics {
		for _, p := range t.partitions {
			if p.changedSinceSnapshot() {
				s.snapshot(t, p, store.SnapshotShutdown)
			}
		}
	}
	s.closed = true
	s.wake()
	return nil
}
