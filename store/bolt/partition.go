package bolt

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/oncelog/oncelog/store"
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

	// mu guards what follows. Only the committer writes, so it alone may read
	// without the lock.
	mu        sync.RWMutex
	segments  []segment
	dedup     dedup
	lastAt    int64     // arrival of the newest batch or mark (ms)
	marks     uint64    // number of the next mark
	snapAt    int64     // offset of the newest snapshot, −1: none
	snapMarks uint64    // and its marks
	snapBytes int64     // and its size, 0: not known
	sinceSnap int64     // bytes appended since it was begun
	tail      []tailRow // of the batches that lie in the tail, in order

	waitMu sync.Mutex
	waitCh chan struct{} // closed when next moves or the topic goes; nil: nobody waits

	// staged and held belong to the committer.
	staged stagedPart
	held   map[int64][]*request // by producer id, in order of arrival; changed under heldMu
	heldMu sync.Mutex           // for those who look at held from outside
	parked atomic.Int64
	gaps   map[int64]struct{} // producers whose lasting gap has been logged

	// Of the committer: near MaxProducers; that it was reached has been logged; in the
	// queue of quiet partitions.
	near, crowded, queued bool

	orphans atomic.Bool // there may be chunks that belong to no snapshot

	outage *outage // why it is out of service, nil: it is not

	reaped, floor int64 // below the first nothing is left, the second is next; guarded by Store.sweeping
}

func newPartition(t *topic, number int, uid uint64, all *totals) *partition {
	return &partition{
		uid: uid, topic: t, name: store.Partition{Topic: t.name, Number: number},
		dedup: newDedup(all), snapAt: -1,
	}
}

func (p *partition) logTopic() slog.Attr  { return slog.String("topic", p.name.Topic) }
func (p *partition) logNumber() slog.Attr { return slog.Int("partition", p.name.Number) }

// bytes is the length of all batches; for the committer, or under mu.
func (p *partition) bytes() (n int64) {
	for i := range p.segments {
		n += p.segments[i].Bytes
	}
	return n
}

func (p *partition) active() *segment { return &p.segments[len(p.segments)-1] }

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
