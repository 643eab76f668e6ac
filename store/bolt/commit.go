package bolt

import (
	"runtime"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// group is what one transaction of the committer will hold. Its memory is used again.
type group struct {
	now     int64 // arrival time of what is being judged (ms)
	judged  int
	bytes   int64
	live    int // by how many the group changes the number of live producers
	batches []stagedBatch
	states  []stagedState // of the producers that batches and marks change
	marks   []stagedMark
	parts   []*partition   // those with something staged
	answers []answer       // that wait for the commit
	keys    []byte         // keys and headers of the staged batches
	known   sequence.State // what lookup found where no state lies ready
}

// stagedBatch is a batch with its place in the log.
type stagedBatch struct {
	r    *request
	pr   *producer // nil for a plain append
	base int64
	at   int64
}

// stagedState is what a producer's state will be.
type stagedState struct {
	p     *partition
	pr    *producer
	state sequence.State
}

// stagedMark is the expiry of a producer.
type stagedMark struct {
	p      *partition
	pr     *producer
	offset int64
	number uint64
	mark   mark
	// evicted: the time of the producer had not come.
	evicted bool
}

type answer struct {
	r   *request
	ack store.Ack
	err error
}

// stagedPart overlays a partition with what the group has staged for it.
type stagedPart struct {
	used    bool
	next    int64
	lastAt  int64
	marks   uint64
	bytes   int64
	batches int64
	live    int // by how many the group changes the number of live producers
	// quiet is where the search for the quietest producer has come to, once walking.
	quiet   *producer
	walking bool
}

// run is the committer.
func (s *Store) run() {
	defer s.committer.Done()
	for {
		select {
		case r := <-s.appends:
			s.commitGroup(r)
		case fn := <-s.controls:
			fn()
		case r := <-s.cancelled:
			s.unhold(r) // its caller has gone
		case <-s.holds.expired():
			s.expireHolds()
		case <-s.captures.due():
			s.stepCapture()
		case <-s.closing:
			s.finish()
			return
		}
	}
}

// finish serves what was queued before the gate closed.
func (s *Store) finish() {
	for {
		select {
		case r := <-s.appends:
			s.commitGroup(r)
		case fn := <-s.controls:
			fn()
		default:
			s.refuseHeld()
			s.endCaptures()
			return
		}
	}
}

// commitGroup judges first and whatever else waits, and writes what was staged.
func (s *Store) commitGroup(first *request) {
	g := s.group
	for r := first; r != nil; r = s.another(g) {
		g.now = s.clock.millis()
		s.queued.Add(-int64(len(r.batch.Bytes)))
		g.judged++
		s.judge(g, r)
	}
	s.flush(g)
	g.judged = 0
}

// another takes a further request, unless the group is full or nothing waits.
func (s *Store) another(g *group) *request {
	if g.judged >= groupBatches || g.bytes >= groupBytes {
		return nil
	}
	select {
	case r := <-s.appends:
		return r
	default:
	}
	// Nothing waits. Where the processors are busy, handlers that are about to enqueue
	// stand in line behind this goroutine: letting them run first fills the group and
	// saves commits. With nobody in line it costs nothing.
	runtime.Gosched()
	select {
	case r := <-s.appends:
		return r
	default:
		return nil
	}
}

// flush writes what is staged, publishes it, and gives the answers that waited.
func (s *Store) flush(g *group) {
	if len(g.parts) == 0 {
		return
	}
	err := s.writeGroup(g)
	if err == nil {
		s.publish(g)
	}
	for i := range g.answers {
		a := &g.answers[i]
		if err != nil {
			a.ack, a.err = store.Ack{}, err
		}
		a.r.answer(a.ack, a.err)
	}
	s.settled = append(s.settled[:0], g.parts...)
	g.reset()
	s.requeue(s.settled, err != nil)
	if err == nil {
		s.boundProducers(s.settled)
	}
}

func (g *group) reset() {
	for _, p := range g.parts {
		p.staged = stagedPart{}
	}
	for i := range g.states {
		g.states[i].pr.staged = 0
	}
	clear(g.batches)
	clear(g.answers)
	g.batches, g.states, g.marks = g.batches[:0], g.states[:0], g.marks[:0]
	g.parts, g.answers = g.parts[:0], g.answers[:0]
	g.bytes, g.live = 0, 0
}

// putGroup writes the staged batches and marks.
func putGroup(tx *bbolt.Tx, g *group) error {
	batches, headers := tx.Bucket(bucketBatches), tx.Bucket(bucketHeaders)
	batches.FillPercent, headers.FillPercent = fillPercent, fillPercent
	g.keys = g.keys[:0]
	for i := range g.batches {
		b := &g.batches[i]
		r := b.r
		h := b.header()
		// bbolt keeps values until the commit; if keys moves when it grows, they stay
		// where they were.
		at := len(g.keys)
		g.keys = appendOffsetKey(g.keys, r.p.uid, b.base)
		g.keys = appendHeader(g.keys, &h)
		key, value := g.keys[at:at+16:at+16], g.keys[at+16:len(g.keys):len(g.keys)]
		if err := headers.Put(key, value); err != nil {
			return err
		}
		if err := putBatch(batches, key, r.batch.Bytes); err != nil {
			return err
		}
	}
	return putMarks(tx, g)
}

// putMarks writes the staged marks.
func putMarks(tx *bbolt.Tx, g *group) error {
	if len(g.marks) == 0 {
		return nil
	}
	marks := tx.Bucket(bucketMarks)
	for i := range g.marks {
		m := &g.marks[i]
		key := markKey(m.p.uid, m.offset, m.number)
		if err := marks.Put(key, m.mark.encode(key)); err != nil {
			return err
		}
	}
	return nil
}

// publish makes the group visible. It is durable by now.
func (s *Store) publish(g *group) {
	for _, p := range g.parts {
		p.mu.Lock()
		st := &p.staged
		a := p.active()
		a.Bytes += st.bytes
		p.sinceSnap += st.bytes
		a.Batches += st.batches
		a.Next = st.next
		p.lastAt, p.marks = st.lastAt, st.marks
		if st.batches > 0 {
			a.LastAt = st.lastAt
		}
	}
	s.publishStates(g)
	for _, p := range g.parts {
		st := &p.staged
		p.mu.Unlock()
		if st.batches > 0 {
			p.advance(st.next)
		}
		s.stats.accepted.Add(st.batches)
		s.stats.bytes.Add(st.bytes)
	}
}

// publishStates replaces the states of producers, in the order of their newest batches,
// as [dedup] wants it. The caller holds mu of all partitions.
func (s *Store) publishStates(g *group) {
	for i := range g.marks {
		m := &g.marks[i]
		if m.evicted {
			s.stats.evictions.Add(1)
		} else {
			s.stats.expirations.Add(1)
		}
		if g.states[m.pr.staged-1].state.Live() { // expired, and begun anew
			m.pr.counters.reset()
		}
	}
	records := int64(0)
	for i := range g.batches {
		b := &g.batches[i]
		records += int64(b.r.batch.Count)
		if b.pr == nil {
			continue
		}
		b.pr.counters.accepted.Add(1)
		if !b.r.heldAt.IsZero() {
			b.pr.counters.held.Add(1)
			s.noteHeld(b.r, &g.states[b.pr.staged-1].state, b.base)
		}
		if st := &g.states[b.pr.staged-1]; st.state.LastOffset() == b.base+int64(b.r.batch.Count)-1 {
			st.p.dedup.publish(b.pr, &st.state)
		}
	}
	s.stats.records.Add(records)
	for i := range g.marks {
		m := &g.marks[i]
		if st := &g.states[m.pr.staged-1]; !st.state.Live() {
			m.p.dedup.publish(m.pr, &st.state)
		}
	}
}
