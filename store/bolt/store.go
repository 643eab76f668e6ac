package bolt

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/incident"
)

var _ store.Store = (*Store)(nil)

// Store is an open data directory. Make one with [Open].
type Store struct {
	opts  Options
	log   *slog.Logger
	db    *bbolt.DB
	path  string
	clock clock

	// topicsMu guards topics; the committer writes it.
	topicsMu sync.RWMutex
	topics   map[string]*topic
	damaged  map[string]*store.Error // topics whose rows cannot be read; never changed

	pids pidAllocator

	// gate is held for reading while a request is put into a queue, and for writing
	// to close: what was queued before is served, nothing comes after.
	gate   sync.RWMutex
	closed bool

	appends   chan *request
	controls  chan func()
	cancelled chan *request
	queued    atomic.Int64 // bytes of the appends that wait
	closing   chan struct{}
	committer sync.WaitGroup
	upkeep    sync.WaitGroup
	sweeping  sync.Mutex // held during a round of upkeep
	backup    sync.Mutex // held while a copy of the file is there
	closeOnce sync.Once
	closeErr  error

	// near the limit of producers; that it was reached has been logged. The committer's.
	near, crowded bool

	failure atomic.Pointer[store.Error] // why no more writes are taken
	noSpace atomic.Bool                 // below the reserve or above MaxBytes
	refused atomic.Pointer[time.Time]   // when the disk had no room for a transaction; nil since one fitted

	group    *group
	holds    holds
	captures captures
	quiet    quietQueue
	settled  []*partition // of the group before
	freelist freelist
	garbage  garbage
	tail     tail
	stats    stats

	incidents incident.Log
}

type stats struct {
	accepted, records, bytes, duplicates    atomic.Int64
	held, passingGaps, lastingGaps          atomic.Int64
	fenced, expired, reused, overlaps       atomic.Int64
	commits, commitNanos                    atomic.Int64
	commitTimes                             [len(store.Durations{})]atomic.Int64
	parked, storeBytes, freeBytes, diskFree atomic.Int64
	outages                                 atomic.Int64
	expirations, evictions, cutOff          atomic.Int64 // producers
	near                                    atomic.Int64 // partitions near MaxProducers
	producers                               totals
}

// Stats returns counters and sizes.
func (s *Store) Stats() store.Stats {
	c := &s.stats
	out := store.Stats{
		Accepted: c.accepted.Load(), Records: c.records.Load(), Bytes: c.bytes.Load(),
		Duplicates: c.duplicates.Load(), Held: c.held.Load(),
		PassingGaps: c.passingGaps.Load(), LastingGaps: c.lastingGaps.Load(),
		Fenced: c.fenced.Load(), Expired: c.expired.Load(), Reused: c.reused.Load(), Overlaps: c.overlaps.Load(),
		Commits: c.commits.Load(), CommitNanos: c.commitNanos.Load(), Parked: c.parked.Load(),
		StoreBytes: c.storeBytes.Load(), FreeBytes: s.free(), DiskFree: c.diskFree.Load(),
		ProducerIDMark: s.pids.mark.Load(),
		Producers:      c.producers.live.Load(), Tombstones: c.producers.tombs.Load(), NearMaxProducers: c.near.Load(), MaxProducers: s.opts.MaxProducers,
		ExpiredProducers: c.expirations.Load(), EvictedProducers: c.evictions.Load(), CutOffProducers: c.cutOff.Load(),
		OutOfService: c.outages.Load(),
	}
	for i := range c.commitTimes {
		out.CommitTimes[i] = c.commitTimes[i].Load()
	}
	return out
}

// tellRefused is how long Ready tells that the disk had no room, if nobody tries again. A
// quota, or a disk whose free space cannot be known, shows only by that.
const tellRefused = 10 * time.Second

// Ready returns nil while appends are taken.
func (s *Store) Ready() error {
	s.gate.RLock()
	closed := s.closed
	s.gate.RUnlock()
	if closed {
		return errDraining()
	}
	if at := s.refused.Load(); at != nil && time.Since(*at) < tellRefused && !s.failed() {
		return store.Errorf(store.CodeStorageFull, "the disk has no room for records; delete or trim topics, or make room on the disk")
	}
	return s.writable()
}

// failed reports that no more writes are taken.
func (s *Store) failed() bool { return s.failure.Load() != nil }

// writable returns why no append can be taken, or nil.
func (s *Store) writable() error {
	if f := s.failure.Load(); f != nil {
		return f
	}
	if s.noSpace.Load() {
		return store.Errorf(store.CodeStorageFull, "the space for records is used up; delete or trim topics, or make room on the disk")
	}
	return nil
}

// control is ask for a function that has nothing to say but an error.
func (s *Store) control(ctx context.Context, fn func() error) error {
	_, err := ask(ctx, s, func() (struct{}, error) { return struct{}{}, fn() })
	return err
}

// ask runs fn on the committer, between two groups of appends, and returns what it
// returns. It does not wait when ctx ends, but fn may still run then: it must not write
// to variables of its caller.
func ask[T any](ctx context.Context, s *Store, fn func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	run := func() {
		value, err := fn()
		done <- outcome{value, err}
	}
	if err := s.enqueueControl(ctx, run); err != nil {
		return outcome{}.value, err
	}
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return outcome{}.value, ctx.Err()
	}
}

func (s *Store) enqueueControl(ctx context.Context, run func()) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed {
		return errDraining()
	}
	select {
	case s.controls <- run:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commit runs a write transaction for [Store.update] and those beside it. It may be told to
// write the list of free pages in any case.
func (s *Store) commit(fn func(tx *bbolt.Tx) error, listFree bool) (err error) {
	if f := s.failure.Load(); f != nil {
		return f
	}
	start := time.Now()
	var size int64
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the file is mapped
	defer func() {
		// A page that makes no sense, or cannot be read. Nothing is known of the file then.
		if v := recover(); v != nil {
			err = s.txError(misread(v))
		}
	}()
	s.plan(listFree)
	err = s.db.Update(func(tx *bbolt.Tx) error {
		err := fn(tx)
		size = tx.Size()
		return err
	})
	if err != nil {
		return s.txError(err)
	}
	s.committed(start, size)
	return nil
}

// committed counts a transaction and looks at the space that is left.
func (s *Store) committed(start time.Time, size int64) {
	s.refused.Store(nil)
	s.stats.commits.Add(1)
	took := time.Since(start)
	s.stats.commitNanos.Add(int64(took))
	s.stats.commitTimes[store.DurationBucket(took)].Add(1)
	s.stats.storeBytes.Store(size)
	s.measure()
	s.wakeReaper()
	s.lookAtDisk()
}

// lookAtDisk notes what is free on the disk, and judges whether that is enough.
func (s *Store) lookAtDisk() {
	s.stats.diskFree.Store(diskFree(s.path))
	s.judgeSpace()
}

func (s *Store) judgeSpace() {
	free := s.free()
	full := s.opts.MaxBytes > 0 && s.stats.storeBytes.Load()-free >= s.opts.MaxBytes
	// The file never shrinks: what trimming has freed in it counts like free disk.
	if disk := s.stats.diskFree.Load(); disk >= 0 && disk+free < s.opts.DiskReserve {
		full = true
	}
	if s.noSpace.CompareAndSwap(!full, full) {
		if full {
			s.log.Warn("no space left for records, appends are refused",
				slog.Int64("store.bytes", s.stats.storeBytes.Load()), slog.Int64("disk.free", s.stats.diskFree.Load()))
		} else {
			s.log.Info("there is space for records again")
		}
	}
}

// free is how many bytes of the file new data may have: free pages, and what the reaper
// will make free.
func (s *Store) free() int64 { return s.stats.freeBytes.Load() + s.garbage.total.Load() }

// usable fails once the engine is closing.
func (s *Store) usable() error {
	select {
	case <-s.closing:
		return errDraining()
	default:
		return nil
	}
}

// topic looks a topic up by name.
func (s *Store) topic(name string) (*topic, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return s.find(name)
}

// find is topic for the committer, which serves what was queued before it closes.
func (s *Store) find(name string) (*topic, error) {
	s.topicsMu.RLock()
	t := s.topics[name]
	s.topicsMu.RUnlock()
	if t == nil {
		if err := s.damaged[name]; err != nil {
			return nil, err
		}
		return nil, unknownTopic(name)
	}
	if t.deleting.Load() {
		return nil, errDeleting(name)
	}
	return t, nil
}

// partition looks a partition up.
func (s *Store) partition(p store.Partition) (*partition, error) {
	t, err := s.topic(p.Topic)
	if err != nil {
		return nil, err
	}
	parts := t.info.Load().partitions
	if p.Number < 0 || p.Number >= len(parts) {
		return nil, store.Errorf(store.CodeUnknownPartition, "topic %q has partitions 0 to %d, not %d", p.Topic, len(parts)-1, p.Number)
	}
	return parts[p.Number], nil
}

// Bounds returns the ends of a partition.
func (s *Store) Bounds(_ context.Context, p store.Partition) (store.Bounds, error) {
	pt, err := s.partition(p)
	if err != nil {
		return store.Bounds{}, err
	}
	return pt.bounds(), nil
}

// Wait returns when the high watermark of p is above offset.
func (s *Store) Wait(ctx context.Context, p store.Partition, offset int64) error {
	pt, err := s.partition(p)
	if err != nil {
		return err
	}
	if err := pt.unreadableAt(offset); err != nil {
		return err
	}
	return pt.wait(ctx, offset, s.closing)
}

// clock gives arrival times: they never go back, not even over a restart.
type clock struct {
	now  func() time.Time
	last atomic.Int64
}

func (c *clock) millis() int64 {
	now := c.now().UnixMilli()
	for {
		last := c.last.Load()
		if now <= last {
			return last
		}
		if c.last.CompareAndSwap(last, now) {
			return now
		}
	}
}

// floor makes sure that no later time is below ms.
func (c *clock) floor(ms int64) {
	for {
		last := c.last.Load()
		if ms <= last || c.last.CompareAndSwap(last, ms) {
			return
		}
	}
}
