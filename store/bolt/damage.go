package bolt

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
)

// A partition whose state cannot be told from the file is put out of service: appends
// would be judged by a state that is not the true one, and so lost or stored twice.
// Records that are whole can still be read, and all other partitions go on. Nothing is
// written for such a partition, so that what is left can be examined and saved.

// outage is why a partition is out of service. It is set before the engine starts and
// never changed.
type outage struct {
	err *store.Error
	// readable says that the bounds are known, so that what is whole can be read.
	readable bool
	// deletable says that its rows can at least be found.
	deletable bool
}

// errUnreadable is the cause of a failure that is none of contents: the pages of the file
// make no sense, or the disk does not give them.
var errUnreadable = errors.New("the store file cannot be read")

// unreadable is what a panic in a read transaction means. A fault at an address that is
// backed by the file comes from the disk, and may pass.
func (s *Store) unreadable(v any) error {
	fault, ok := v.(interface{ Addr() uintptr })
	if !ok {
		return misread(v)
	}
	info, err := os.Stat(filepath.Join(s.path, fileName))
	if at := fault.Addr() - s.db.Info().Data; err == nil && int64(at) >= 0 && int64(at) < info.Size() {
		return &store.Error{
			Code:   store.CodeStorageFailed,
			Detail: "the disk does not give what is stored",
			Err:    fmt.Errorf("read error at byte %d of %s", at, fileName),
		}
	}
	return misread(v)
}

// misread is the error for a panic while the file was read.
func misread(v any) error {
	if _, fault := v.(interface{ Addr() uintptr }); fault { // whose text is about pointers
		return fmt.Errorf("%w: a page is not to be had, or leads outside the file", errUnreadable)
	}
	return fmt.Errorf("%w: %v", errUnreadable, v)
}

// guard runs fn, which reads the file without the engine, and gives an error where bbolt
// panics.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w; oncelog check tells more", misread(v))
		}
	}()
	return fn()
}

// describe tells an error without its code.
func describe(err error) string {
	if e, ok := errors.AsType[*store.Error](err); ok {
		return e.Detail
	}
	return err.Error()
}

// takeOutOfService stops the service of a partition that could not be recovered.
func (s *Store) takeOutOfService(p *partition, cause error) {
	p.dedup, p.marks, p.snapAt = newDedup(&s.stats.producers), 0, -1
	out := &outage{
		err: &store.Error{
			Code:   store.CodeRecordsDamaged,
			Detail: fmt.Sprintf("topic %q partition %d is out of service, for what is stored of it is damaged: %s", p.name.Topic, p.name.Number, describe(cause)),
		},
		deletable: !errors.Is(cause, errUnreadable) && store.CodeOf(cause) == store.CodeInternal,
	}
	if err := s.view(func(tx *bbolt.Tx) error { return salvageBounds(tx, p) }); err == nil {
		out.readable = true
		s.clock.floor(p.lastSegmentAt())
	} else {
		p.segments = []segment{{}}
	}
	p.outage = out
	s.stats.outages.Add(1)
	s.log.Error("a partition is out of service, for what is stored of it is damaged",
		p.logTopic(), p.logNumber(), slog.Any("error", cause), slog.Bool("readable", out.readable))
}

// salvageBounds finds the bounds of a partition whose producer state is lost.
func salvageBounds(tx *bbolt.Tx, p *partition) error {
	var row partitionRow
	if err := readRow(uidKey(p.uid), tx.Bucket(bucketParts).Get(uidKey(p.uid)), &row); err != nil {
		return err
	}
	segments, err := readSegments(tx, p.uid)
	if err != nil {
		return err
	}
	p.segments = segments
	end := p.active().base
	c := newLogCursor(tx, p.uid, p.tail)
	if k, v := c.seek(math.MaxInt64); k != nil {
		end = offsetOf(k) + 1 // of a batch that nothing is known of, at least that
		if h, err := decodeHeader(k, v); err == nil {
			end = h.lastOffset(offsetOf(k)) + 1
		} else if n, err := c.count(k); err == nil {
			end = offsetOf(k) + int64(n)
		}
	}
	p.active().Next = end
	p.earliest.Store(row.Earliest)
	p.next.Store(end)
	return nil
}

// unreadableAt is why nothing can be read from an offset, if the partition is out of
// service: its records are unknown, or the offset is one that no record will ever get.
func (p *partition) unreadableAt(offset int64) error {
	if o := p.outage; o != nil && (!o.readable || offset >= p.next.Load()) {
		return o.err
	}
	return nil
}

// inService looks up a partition for whatever needs its producer state.
func (s *Store) inService(p store.Partition) (*partition, error) {
	pt, err := s.partition(p)
	if err == nil && pt.outage != nil {
		return nil, pt.outage.err
	}
	return pt, err
}

// serving gives every partition that is in service, by topic and number.
func (s *Store) serving() []*partition {
	all := s.allPartitions()
	out := all[:0]
	for _, p := range all {
		if p.outage == nil {
			out = append(out, p)
		}
	}
	return out
}

// loseTopic notes that the row of a topic cannot be read, or is missing: then its name is
// not known.
func (s *Store) loseTopic(name string, cause error) {
	if s.damaged == nil {
		s.damaged = map[string]*store.Error{}
	}
	s.damaged[name] = &store.Error{
		Code:   store.CodeRecordsDamaged,
		Detail: fmt.Sprintf("topic %q is out of service, for what is stored of it is damaged: %v", name, cause),
	}
	s.stats.outages.Add(1)
	s.log.Error("a topic is out of service, for what is stored of it is damaged",
		slog.String("topic", name), slog.Any("error", cause))
}

// mayCreate refuses new topics while one is lost: its name may be what is damaged, and a
// topic made anew in its place would pass for it. No partition may be made either while the
// tail is damaged: after the next start it would count among those that may have lost
// something.
func (s *Store) mayCreate() error {
	if len(s.damaged) == 0 && s.tail.damage == nil {
		return nil
	}
	return store.Errorf(store.CodeRecordsDamaged, "no topic or partition can be made while what is stored of others is damaged; oncelog check tells more")
}
