package bolt

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// pidAllocator hands out producer ids from blocks whose upper mark is durable before
// the first id of the block is given away (KIP-730). Each owner has a block of its own,
// which is durable together with its owner, so that an owner costs a row for a thousand
// ids and a commit for the first of them; blocks without an owner have no row. A crash
// loses the rest of the blocks in use; a clean shutdown keeps it.
//
// Whose an id is can be asked without a lock: blocks are only ever added, and the mark
// moves last.
type pidAllocator struct {
	mark  atomic.Int64                // the first id that is not reserved
	free  atomic.Pointer[pidBlock]    // what ids without an owner come from, nil: none yet
	owned atomic.Pointer[[]*pidBlock] // the blocks that have an owner, by id

	// mu guards what follows. Nobody waits while holding it.
	mu      sync.Mutex
	open    map[string]*pidBlock // by owner: what its next id comes from
	waiting *reservation         // that no transaction has taken up yet
	closed  bool                 // what is left of the blocks is being written down
}

// pidBlock is a stretch of ids of one owner.
type pidBlock struct {
	owner      string
	start, end int64
	next       atomic.Int64 // the first id that has not been given away
	// idle says that on disk the ids from next on are free: a clean shutdown has left
	// them. They must be reserved again before one is given away.
	idle bool
}

func newBlock(owner string, start, end int64) *pidBlock {
	b := &pidBlock{owner: owner, start: start, end: end}
	b.next.Store(start)
	return b
}

// reservation is a transaction to come that reserves blocks for all who wait for it.
type reservation struct {
	owners map[string]struct{}
	done   chan struct{} // closed when err is set, or nobody carries it out
	err    error
}

// recovered takes over what is on disk.
func (a *pidAllocator) recovered(mark int64, blocks []*pidBlock) {
	a.open = map[string]*pidBlock{}
	owned := make([]*pidBlock, 0, len(blocks))
	for _, b := range blocks {
		if b.idle {
			a.open[b.owner] = b
		}
		last := len(owned) - 1
		switch {
		case b.owner == "":
			a.free.Store(b)
		case last >= 0 && owned[last].joins(b):
			owned[last].end = b.end
			owned[last].next.Store(b.end)
		default:
			owned = append(owned, b)
		}
	}
	a.owned.Store(&owned)
	a.mark.Store(mark)
}

// joins reports whether c goes on where b ends, both of them given away.
func (b *pidBlock) joins(c *pidBlock) bool {
	return b.owner == c.owner && b.end == c.start && b.next.Load() == b.end && !c.idle
}

// owner says whose an id is. It fails for one that was never given away; after a crash
// the ids that the blocks in use lost count as given away: nobody can tell.
func (a *pidAllocator) owner(id int64) (string, error) {
	if id < 0 || id >= a.mark.Load() { // first: what the mark lets through, the rest knows of
		return "", neverIssued(id)
	}
	b := a.free.Load()
	if owned := *a.owned.Load(); len(owned) > 0 {
		i := sort.Search(len(owned), func(i int) bool { return owned[i].end > id })
		if i < len(owned) && owned[i].start <= id {
			b = owned[i]
		}
	}
	if b == nil || id < b.start || id >= b.end {
		return "", nil // of a block without an owner that is used up
	}
	if id >= b.next.Load() {
		return "", neverIssued(id)
	}
	return b.owner, nil
}

func neverIssued(id int64) error {
	return store.Errorf(store.CodeUnknownProducerID, "producer id %d was never issued; POST /producers issues one", id)
}

// issued fails for an id that was never given away.
func (a *pidAllocator) issued(id int64) error {
	_, err := a.owner(id)
	return err
}

// admit fails unless the id was given to the principal.
func (a *pidAllocator) admit(id int64, principal string) error {
	owner, err := a.owner(id)
	if err == nil && owner != principal {
		return store.NotOwner(id)
	}
	return err
}

// take gives the owner's next id, or the reservation to wait for before asking again.
// first says that the caller has to have it carried out.
func (a *pidAllocator) take(owner string) (id int64, r *reservation, first bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, nil, false, errDraining()
	}
	if b := a.open[owner]; b != nil && !b.idle && b.next.Load() < b.end {
		return b.next.Add(1) - 1, nil, false, nil
	}
	if a.waiting == nil {
		a.waiting = &reservation{owners: map[string]struct{}{}, done: make(chan struct{})}
		first = true
	}
	a.waiting.owners[owner] = struct{}{}
	return 0, a.waiting, first, nil
}

// abandon gives up a reservation that nobody carries out. Who waits for it asks again.
func (a *pidAllocator) abandon(r *reservation) {
	a.mu.Lock()
	a.waiting = nil
	a.mu.Unlock()
	close(r.done)
}

// plan takes up the reservation that waits, and says which blocks it needs: none for an
// owner that the one before has served. The reservation fails when one needs a block and
// there is none for anybody.
func (a *pidAllocator) plan() (r *reservation, blocks []*pidBlock, mark int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, a.waiting = a.waiting, nil
	mark = a.mark.Load()
	short := false
	for owner := range r.owners {
		b := a.open[owner]
		switch {
		case b != nil && b.idle:
			blocks = append(blocks, b)
		case b != nil && b.next.Load() < b.end:
		case mark > sequence.Max:
			short = true
		default:
			end := min(mark+store.ProducerBlockSize, sequence.Max+1)
			blocks = append(blocks, newBlock(owner, mark, end))
			mark = end
		}
	}
	if short && len(blocks) == 0 {
		r.err = store.Errorf(store.CodeProducersExhausted, "all producer ids have been issued")
	}
	return r, blocks, mark
}

// install puts blocks into use that are on disk.
func (a *pidAllocator) install(blocks []*pidBlock, mark int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	owned := *a.owned.Load()
	for _, b := range blocks {
		a.open[b.owner] = b
		switch {
		case b.owner == "":
			a.free.Store(b)
		case !b.idle:
			// Readers of the shorter slice never look at what lies behind it.
			owned = append(owned, b)
		}
		b.idle = false
	}
	a.owned.Store(&owned)
	a.mark.Store(mark)
}

// AllocateProducer returns a fresh id; see [store.Engine].
func (s *Store) AllocateProducer(ctx context.Context, owner string) (store.ProducerID, error) {
	if err := store.CheckOwner(owner); err != nil {
		return store.ProducerID{}, err
	}
	if err := s.usable(); err != nil {
		return store.ProducerID{}, err
	}
	for {
		id, r, first, err := s.pids.take(owner)
		if err != nil {
			return store.ProducerID{}, err
		}
		if r == nil {
			return store.ProducerID{ID: id}, nil
		}
		if first {
			if err := s.enqueueControl(ctx, s.reserve); err != nil {
				s.pids.abandon(r)
				return store.ProducerID{}, err
			}
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return store.ProducerID{}, ctx.Err()
		}
		if r.err != nil {
			return store.ProducerID{}, r.err
		}
	}
}

// ProducerOwner says whom an id was given to; see [store.Producers].
func (s *Store) ProducerOwner(_ context.Context, id int64) (string, error) {
	if err := s.usable(); err != nil {
		return "", err
	}
	return s.pids.owner(id)
}

// reserve reserves blocks for all who wait, in one transaction on the committer.
func (s *Store) reserve() {
	a := &s.pids
	r, blocks, mark := a.plan()
	if len(blocks) > 0 {
		r.err = s.update(func(tx *bbolt.Tx) error { return putReserved(tx, blocks, mark) })
		if r.err == nil {
			a.install(blocks, mark)
		}
	}
	close(r.done)
}

// leave writes down what clean shutdown leaves of the blocks in use, so that the next
// start goes on with it.
func (a *pidAllocator) leave() (left []*pidBlock, mark int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	mark = a.mark.Load()
	for _, b := range a.open {
		next := b.next.Load()
		switch {
		case b.idle || next == b.end:
		case b.owner == "" && b.end == mark:
			mark = next
		default:
			left = append(left, b)
		}
	}
	slices.SortFunc(left, func(b, c *pidBlock) int { return cmp.Compare(b.start, c.start) })
	return left, mark
}
