package server_test

import (
	"context"

	"github.com/oncelog/oncelog/store"
)

// spyStore remembers the last append.
type spyStore struct {
	store.Store
	last store.Append
}

func (s *spyStore) Append(ctx context.Context, a store.Append) (store.Ack, error) {
	s.last = a
	return s.Store.Append(ctx, a)
}

// failingStore fails where a real engine does only when the disk does.
type failingStore struct {
	store.Store
	append   func(context.Context, store.Append) (store.Ack, error)
	allocate func() (store.ProducerID, error)
	read     func() (store.Records, error)
	remove   func() error
	ready    func() error
}

func (s *failingStore) Append(ctx context.Context, a store.Append) (store.Ack, error) {
	if s.append != nil {
		return s.append(ctx, a)
	}
	return s.Store.Append(ctx, a)
}

func (s *failingStore) AllocateProducer(ctx context.Context, owner string) (store.ProducerID, error) {
	if s.allocate != nil {
		return s.allocate()
	}
	return s.Store.AllocateProducer(ctx, owner)
}

func (s *failingStore) Read(ctx context.Context, r store.Read) (store.Records, error) {
	if s.read != nil {
		return s.read()
	}
	return s.Store.Read(ctx, r)
}

func (s *failingStore) DeleteTopic(ctx context.Context, name string) error {
	if s.remove != nil {
		return s.remove()
	}
	return s.Store.DeleteTopic(ctx, name)
}

func (s *failingStore) Ready() error {
	if s.ready != nil {
		return s.ready()
	}
	return s.Store.Ready()
}

// waitSpy tells when somebody begins to wait for records.
type waitSpy struct {
	store.Store
	called chan struct{}
}

func (s *waitSpy) Wait(ctx context.Context, p store.Partition, offset int64) error {
	s.called <- struct{}{}
	return s.Store.Wait(ctx, p, offset)
}
