package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oncelog/oncelog/store"
)

type topic struct {
	store.Topic
	partitions []*partition
}

// find returns the topic and the partition that p names. Call it with the lock held.
func (s *Store) find(p store.Partition) (*topic, *partition, error) {
	t, ok := s.topics[p.Topic]
	if !ok {
		return nil, nil, unknownTopic(p.Topic)
	}
	if p.Number < 0 || p.Number >= len(t.partitions) {
		return nil, nil, store.Errorf(store.CodeUnknownPartition, "topic %q has no partition %d", p.Topic, p.Number)
	}
	return t, t.partitions[p.Number], nil
}

func unknownTopic(name string) error {
	return store.Errorf(store.CodeUnknownTopic, "there is no topic %q", name)
}

// grow adds partitions to t until it has n.
func (s *Store) grow(t *topic, n int) {
	for i := len(t.partitions); i < n; i++ {
		s.partitions++
		t.partitions = append(t.partitions, newPartition(store.Partition{Topic: t.Name, Number: i}, s.partitions, s.clock))
	}
	t.Partitions = n
}

// CreateTopic creates an empty topic.
func (s *Store) CreateTopic(ctx context.Context, name string, partitions int, c store.Config) (store.Topic, error) {
	if err := s.enter(ctx); err != nil {
		return store.Topic{}, err
	}
	defer s.leave()
	if !store.ValidTopicName(name) {
		return store.Topic{}, &store.Error{Code: store.CodeInvalidArgument, Detail: "not a topic name", Pointer: "/name"}
	}
	if err := store.CheckTopic(partitions, c); err != nil {
		return store.Topic{}, err
	}
	if _, ok := s.topics[name]; ok {
		return store.Topic{}, store.Errorf(store.CodeTopicExists, "there is a topic %q", name)
	}
	s.topicIDs++
	t := &topic{Topic: store.Topic{
		Name: name, ID: fmt.Sprintf("%016x", s.topicIDs), Config: c, Version: 1, CreatedAt: fromMillis(s.clock),
	}}
	s.grow(t, partitions)
	s.topics[name] = t
	return t.Topic, nil
}

// Topic describes one topic.
func (s *Store) Topic(ctx context.Context, name string) (store.Topic, error) {
	if err := s.enter(ctx); err != nil {
		return store.Topic{}, err
	}
	defer s.leave()
	t, ok := s.topics[name]
	if !ok {
		return store.Topic{}, unknownTopic(name)
	}
	return t.Topic, nil
}

// Topics describes the topics whose names are above after.
func (s *Store) Topics(ctx context.Context, after string, limit int) ([]store.Topic, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	var out []store.Topic
	for _, t := range s.byName() {
		if t.Name > after && len(out) < limit {
			out = append(out, t.Topic)
		}
	}
	return out, nil
}

// byName lists all topics by name.
func (s *Store) byName() []*topic {
	var all []*topic
	for _, t := range s.topics {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *topic) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// UpdateTopic changes partitions and config. A change to what is already there is
// none, and counts as none.
func (s *Store) UpdateTopic(ctx context.Context, name string, change func(store.Topic) (store.Topic, error)) (store.Topic, error) {
	if err := s.enter(ctx); err != nil {
		return store.Topic{}, err
	}
	defer s.leave()
	t, ok := s.topics[name]
	if !ok {
		return store.Topic{}, unknownTopic(name)
	}
	want, err := change(t.Topic)
	if err != nil {
		return store.Topic{}, err
	}
	if err := store.CheckTopic(want.Partitions, want.Config); err != nil {
		return store.Topic{}, err
	}
	if want.Partitions < t.Partitions {
		return store.Topic{}, &store.Error{
			Code: store.CodeInvalidArgument, Pointer: "/partitions",
			Detail: fmt.Sprintf("the topic has %d partitions, their number may only grow", t.Partitions),
		}
	}
	if want.Partitions == t.Partitions && want.Config == t.Config {
		return t.Topic, nil
	}
	for _, p := range t.partitions {
		s.expireIdle(p, t.Config) // by the old config: what has expired stays so
	}
	s.grow(t, want.Partitions)
	t.Config = want.Config
	t.Version++
	return t.Topic, nil
}

// DeleteTopic forgets a topic with all its partitions.
func (s *Store) DeleteTopic(ctx context.Context, name string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if _, ok := s.topics[name]; !ok {
		return unknownTopic(name)
	}
	delete(s.topics, name)
	s.wake()
	return nil
}

// all lists all partitions.
func (s *Store) all() []*partition {
	var all []*partition
	for _, t := range s.byName() {
		all = append(all, t.partitions...)
	}
	return all
}
