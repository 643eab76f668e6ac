package bolt

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// pidAllocator hands out producer ids from blocks whose upper mark is durable before
// the first id of the block is given away (KIP-730). A crash loses the rest of a block;
// a clean shutdown sets the mark back to what was given away.
type pidAllocator struct {
	turn chan struct{} // holds one token; who has it may allocate
	mark int64         // the first id that is not reserved
	next atomic.Int64  // the next one to give away
}

func (a *pidAllocator) recovered(mark int64) {
	a.mark = mark
	a.next.Store(mark)
}

// issued fails for an id that was never given away. After a crash the ids that its
// block lost count as issued: nobody can tell.
func (a *pidAllocator) issued(id int64) error {
	if id < a.next.Load() {
		return nil
	}
	return store.Errorf(store.CodeUnknownProducerID, "producer id %d was never issued; POST /producers issues one", id)
}

// AllocateProducer returns a fresh id; see [store.Engine].
func (s *Store) AllocateProducer(ctx context.Context) (store.ProducerID, error) {
	a := &s.pids
	select {
	case <-a.turn:
		defer func() { a.turn <- struct{}{} }()
	case <-ctx.Done():
		return store.ProducerID{}, ctx.Err()
	}
	if a.next.Load() == a.mark {
		if a.mark > sequence.Max {
			return store.ProducerID{}, store.Errorf(store.CodeProducersExhausted, "all producer ids have been issued")
		}
		mark := min(a.mark+store.ProducerBlockSize, sequence.Max+1)
		// If ctx ends meanwhile, the same mark is written again next time: controls run
		// in the order in which they were asked for.
		err := s.control(ctx, func() error { return s.putPIDMark(mark) })
		if err != nil {
			return store.ProducerID{}, err
		}
		a.mark = mark
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed { // the mark is about to be set back
		return store.ProducerID{}, errDraining()
	}
	id := a.next.Load()
	a.next.Store(id + 1)
	return store.ProducerID{ID: id}, nil
}

func (s *Store) putPIDMark(mark int64) error {
	return s.update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(keyPIDMark, binary.BigEndian.AppendUint64(nil, uint64(mark)))
	})
}
