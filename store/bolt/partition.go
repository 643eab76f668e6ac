package bolt

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// topic is a topic in memory. Its partitions are never replaced, only added to.
type topic struct {
	name string
	id   string
	// deleting is set as soon as a deletion is asked for; from then on requests are
	// refused until the name is free.
	deleting atomic.Bool
	info     atomic.Pointer[topicInfo]
}

// topicInfo is what an update of a topic replaces.
type topicInfo struct {
	row        topicRow
	config     store.Config
	partitions []*partition
}

func (t *topic) public() store.Topic {
	row := &t.info.Load().row
	return store.Topic{
		Name: t.name, ID: t.id, Partitions: len(row.UIDs), Config: store.Config(row.Config),
		Version: row.Version, CreatedAt: millis(row.CreatedAt),
	}
}

func (t *topic) config() *store.Config { return &t.info.Load().config }

// segment is a segment in memory; the last one of a partition is being appended to.
type segment struct {
	base int64
	segmentRow
}

// partition is a partition in memory.
type partition struct {
	uid   uint64
	topic *topic
	name  store.Partition

	// next is the high watermark and earliest the first offset kept. They are atomic
	// so that looking at the bounds takes no lock; the committer stores them last.
	next     atomic.Int64
	earliest atomic.Int64
	dead     atomic.Bool // its topic is gone
	// nextExpiry is a time (ms) before which no producer expires.
	nextExpiry atomic.Int64

	// mu guards what follows. Only the committer writes, so it alone may read
	// without the lock.
	mu        sync.RWMutex
	segments  []segment
	producers map[int64]*producer
	live      int    // producers that are not tombstones
	lastAt    int64  // arrival of the newest batch or mark (ms)
	marks     uint64 // number of the next mark
	snapAt    int64  // offset of the newest snapshot, −1: none
	snapMarks uint64 // and its marks

	waitMu sync.Mutex
	waitCh chan struct{} // closed when next moves or the topic goes; nil: nobody waits

	// staged and held belong to the committer.
	staged stagedPart
	held   map[int64][]*request // by producer id, in order of arrival
	parked atomic.Int64
	gaps   map[int64]struct{} // producers whose lasting gap has been logged

	crowded bool // that MaxProducers has been reached has been logged; the committer's

	reaped int64 // what lies below this offset has been deleted; guarded by Store.sweeping
}

// producer is a producer's state in a partition, with counters since start.
type producer struct {
	state    sequence.State
	counters counters
}

type counters struct {
	accepted, duplicate, outOfOrder, fenced, reused, held atomic.Int64
}

func (c *counters) public() store.Counters {
	return store.Counters{
		Accepted: c.accepted.Load(), Duplicate: c.duplicate.Load(), OutOfOrder: c.outOfOrder.Load(),
		Fenced: c.fenced.Load(), Reused: c.reused.Load(), Held: c.held.Load(),
	}
}

func newPartition(t *topic, number int, uid uint64) *partition {
	return &partition{
		uid: uid, topic: t, name: store.Partition{Topic: t.name, Number: number},
		producers: map[int64]*producer{}, snapAt: -1,
	}
}

func (p *partition) logTopic() slog.Attr  { return slog.String("topic", p.name.Topic) }
func (p *partition) logNumber() slog.Attr { return slog.Int("partition", p.name.Number) }

func (p *partition) active() *segment { return &p.segments[len(p.segments)-1] }

// replaceState publishes a producer's new state. The caller holds mu.
func (p *partition) replaceState(pid int64, st *sequence.State) {
	pr := p.producers[pid]
	if pr == nil {
		pr = &producer{}
		p.producers[pid] = pr
	}
	if pr.state.Live() {
		p.live--
	}
	pr.state = *st
	if st.Live() {
		p.live++
	}
}

// advance publishes a new high watermark and wakes who waits for it.
func (p *partition) advance(next int64) {
	p.next.Store(next)
	p.wake()
}

func (p *partition) wake() {
	p.waitMu.Lock()
	if p.waitCh != nil {
		close(p.waitCh)
		p.waitCh = nil
	}
	p.waitMu.Unlock()
}

// wait blocks until the high watermark is above offset.
func (p *partition) wait(ctx context.Context, offset int64, closing <-chan struct{}) error {
	for {
		p.waitMu.Lock()
		if p.dead.Load() {
			p.waitMu.Unlock()
			return unknownTopic(p.name.Topic)
		}
		if p.next.Load() > offset {
			p.waitMu.Unlock()
			return nil
		}
		if p.waitCh == nil {
			p.waitCh = make(chan struct{})
		}
		ch := p.waitCh
		p.waitMu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return ctx.Err()
		case <-closing:
			return errDraining()
		}
	}
}

func (p *partition) bounds() store.Bounds {
	// earliest is read first: it only grows and never passes next.
	return store.Bounds{Earliest: p.earliest.Load(), HighWatermark: p.next.Load(), TopicID: p.topic.id}
}
