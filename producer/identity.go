package producer

import (
	"sync"

	"github.com/oncelog/oncelog/store/sequence"
)

// identity is a producer id and epoch.
type identity struct {
	pid   int64
	epoch int64
}

// identities holds what the producer's partitions send under. It only ever goes on
// to newer ones, so that an identity that differs from the current one is older.
// Partitions follow lazily, each when nothing of it is undecided.
type identities struct {
	mu   sync.Mutex
	cur  identity
	have bool
}

// current is what new sequences begin under; false: an id has to be allocated first.
func (s *identities) current() (identity, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur, s.have
}

// bump gives an identity newer than from: an epoch that is higher, and above the given
// one, by no more than the decision to use it (KIP-360), or a new id when the epochs are
// used up.
func (s *identities) bump(from identity, above int64) (identity, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.have:
		return identity{}, false
	case s.cur != from: // another partition was first
		return s.cur, true
	case max(s.cur.epoch, above) >= sequence.Max:
		s.have = false
		return identity{}, false
	}
	s.cur.epoch = max(s.cur.epoch, above) + 1
	return s.cur, true
}

// replace gives an identity with another id than from.
func (s *identities) replace(from identity) (identity, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.have && s.cur.pid == from.pid {
		s.have = false
	}
	return s.cur, s.have
}

// set makes a newly allocated id the current one.
func (s *identities) set(id identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cur, s.have = id, true
}
