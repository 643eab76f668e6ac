package bolt

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

// CreateTopic makes a topic; see [store.Topics].
func (s *Store) CreateTopic(ctx context.Context, name string, partitions int, c store.Config) (store.Topic, error) {
	if !store.ValidTopicName(name) {
		return store.Topic{}, &store.Error{
			Code: store.CodeInvalidArgument, Pointer: "/name",
			Detail: "a topic name is 1 to 249 of A–Z, a–z, 0–9, '.', '_' and '-', and neither '.' nor '..'",
		}
	}
	if err := store.CheckTopic(partitions, c); err != nil {
		return store.Topic{}, err
	}
	if err := s.mayCreate(); err != nil {
		return store.Topic{}, err
	}
	return ask(ctx, s, func() (store.Topic, error) {
		if t := s.topics[name]; t != nil {
			if t.deleting.Load() {
				return store.Topic{}, errDeleting(name)
			}
			return store.Topic{}, store.Errorf(store.CodeTopicExists, "topic %q exists already", name)
		}
		row := topicRow{ID: newTopicID(), Config: configRow(c), Version: 1, CreatedAt: s.clock.millis()}
		if err := s.update(func(tx *bbolt.Tx) error { return putTopic(tx, name, &row, partitions, row.CreatedAt) }); err != nil {
			return store.Topic{}, err
		}
		s.topicsMu.Lock()
		defer s.topicsMu.Unlock()
		return s.addTopic(name, row).public(), nil
	})
}

func newTopicID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// putTopic writes a topic's row, and the rows of partitions that it did not have yet.
func putTopic(tx *bbolt.Tx, name string, row *topicRow, partitions int, now int64) error {
	meta := tx.Bucket(bucketMeta)
	next, err := readNumber(meta, keyNextUID)
	if err != nil {
		return store.Errorf(store.CodeRecordsDamaged, "the number of the next partition cannot be read, no partition can be made")
	}
	for len(row.UIDs) < partitions {
		next++
		if err := putRow(tx.Bucket(bucketParts), uidKey(next), partitionRow{}); err != nil {
			return err
		}
		if err := putRow(tx.Bucket(bucketSegments), offsetKey(next, 0), segmentRow{CreatedAt: now}); err != nil {
			return err
		}
		row.UIDs = append(row.UIDs, next)
	}
	if err := putNumber(meta, keyNextUID, next); err != nil {
		return err
	}
	return putRow(tx.Bucket(bucketTopics), []byte(name), row)
}

// Topic describes a topic.
func (s *Store) Topic(_ context.Context, name string) (store.Topic, error) {
	t, err := s.topic(name)
	if err != nil {
		return store.Topic{}, err
	}
	return t.public(), nil
}

// Topics lists topics by name.
func (s *Store) Topics(_ context.Context, after string, limit int) ([]store.Topic, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	var out []store.Topic
	for _, t := range s.sortedTopics() {
		if len(out) == limit {
			break
		}
		if t.name > after && !t.deleting.Load() {
			out = append(out, t.public())
		}
	}
	return out, nil
}

func (s *Store) sortedTopics() []*topic {
	s.topicsMu.RLock()
	all := make([]*topic, 0, len(s.topics))
	for _, t := range s.topics {
		all = append(all, t)
	}
	s.topicsMu.RUnlock()
	slices.SortFunc(all, func(a, b *topic) int { return strings.Compare(a.name, b.name) })
	return all
}

// UpdateTopic changes partitions and config; see [store.Topics].
func (s *Store) UpdateTopic(ctx context.Context, name string, change func(store.Topic) (store.Topic, error)) (store.Topic, error) {
	return ask(ctx, s, func() (store.Topic, error) { return s.updateTopic(name, change) })
}

func (s *Store) updateTopic(name string, change func(store.Topic) (store.Topic, error)) (store.Topic, error) {
	t, err := s.find(name)
	if err != nil {
		return store.Topic{}, err
	}
	old := t.public()
	want, err := change(old)
	if err != nil {
		return store.Topic{}, err
	}
	if err := store.CheckTopic(want.Partitions, want.Config); err != nil {
		return store.Topic{}, err
	}
	if want.Partitions < old.Partitions {
		return store.Topic{}, &store.Error{
			Code: store.CodeInvalidArgument, Pointer: "/partitions",
			Detail: "the number of partitions can only grow",
		}
	}
	if want.Partitions > old.Partitions && s.tail.damage != nil {
		return store.Topic{}, s.mayCreate()
	}
	if want.Partitions == old.Partitions && want.Config == old.Config {
		return old, nil
	}
	for _, p := range t.info.Load().partitions {
		// What was due under the old expiry must not come back under a longer one.
		if err := s.expireAllDue(p); err != nil {
			return store.Topic{}, err
		}
	}
	row := t.info.Load().row
	row.UIDs, row.Config, row.Version = slices.Clone(row.UIDs), configRow(want.Config), row.Version+1
	now := s.clock.millis()
	if err := s.update(func(tx *bbolt.Tx) error { return putTopic(tx, name, &row, want.Partitions, now) }); err != nil {
		return store.Topic{}, err
	}
	s.topicsMu.Lock()
	s.setTopic(t, row, now)
	s.topicsMu.Unlock()
	s.watchCrowds(t.info.Load().partitions)
	return t.public(), nil
}

// DeleteTopic removes a topic; see [store.Topics]. Its rows go at once, what lies in
// the log is left to the reaper.
func (s *Store) DeleteTopic(ctx context.Context, name string) error {
	t, err := s.topic(name)
	if err != nil {
		return err
	}
	for _, p := range t.info.Load().partitions {
		if p.outage != nil && !p.outage.deletable {
			return p.outage.err
		}
	}
	if !t.deleting.CompareAndSwap(false, true) {
		return errDeleting(name)
	}
	err = s.control(context.WithoutCancel(ctx), func() error { return s.deleteTopic(t) })
	if err != nil {
		t.deleting.Store(false)
	}
	return err
}

func (s *Store) deleteTopic(t *topic) error {
	partitions := t.info.Load().partitions
	err := s.update(func(tx *bbolt.Tx) error {
		for _, p := range partitions {
			if err := tx.Bucket(bucketParts).Delete(uidKey(p.uid)); err != nil {
				return err
			}
			if err := putNumber(tx.Bucket(bucketTrash), uidKey(p.uid), uint64(s.garbage.bytes[p.uid]+p.bytes())); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketTopics).Delete([]byte(t.name))
	})
	if err != nil {
		return err
	}
	s.topicsMu.Lock()
	delete(s.topics, t.name)
	s.topicsMu.Unlock()
	for _, p := range partitions {
		s.garbage.add(p.uid, p.bytes())
		p.waitMu.Lock()
		p.dead.Store(true)
		p.waitMu.Unlock()
		p.wake()
		s.stats.producers.live.Add(-int64(p.dedup.live))
		s.stats.producers.tombs.Add(-int64(p.dedup.tombs.Len()))
		for pid := range p.held {
			for _, r := range slices.Clone(p.held[pid]) {
				s.endHold(r, true)
			}
		}
	}
	s.watchCrowds(partitions)
	return nil
}
