package bolt

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/oncelog/oncelog/store"
)

// Open opens the data directory dir, making it if need be, and recovers from whatever
// ended the last use of it. It fails when another process has it open and when it was
// written by a newer version.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	start := time.Now()
	db, err := openFile(dir, o)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts: o, log: o.Logger, db: db, path: dir,
		topics:  map[string]*topic{},
		appends: make(chan *request, o.QueueLength), controls: make(chan func(), 64),
		cancelled: make(chan *request, 1024), closing: make(chan struct{}),
		group: &group{},
	}
	s.clock.now = o.Now
	s.stats.diskFree.Store(diskFree(dir))
	rec, err := s.recover()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.judgeSpace()
	s.committer.Add(1)
	go s.run()
	s.upkeep.Add(1)
	go s.maintain()
	s.log.Info("recovered", slog.Int("partitions", rec.partitions), slog.Int64("replayed.headers", rec.headers),
		slog.Int64("replayed.bytes", rec.bytes), slog.Int("snapshots.damaged", rec.damaged), slog.Duration("duration", time.Since(start)))
	return s, nil
}

// openFile opens or creates the bbolt file. A new file, its name in the directory
// included, is on disk before anything is built on it.
func openFile(dir string, o Options) (*bbolt.DB, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, fileName)
	if err := checkLength(path); err != nil {
		return nil, openError(dir, err)
	}
	db, err := bbolt.Open(path, 0o600, boltOptions(o, false))
	if err != nil {
		return nil, openError(dir, err)
	}
	db.AllocSize = allocSize
	if err := prepare(db, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return db, nil
}

// prepare checks the format of a file, or gives a new one its buckets. It writes only
// then: a store on a full disk must still open, to be read and trimmed.
func prepare(db *bbolt.DB, dir string) error {
	fresh := false
	err := db.View(func(tx *bbolt.Tx) error {
		if k, _ := tx.Cursor().First(); k == nil {
			fresh = true
			return nil
		}
		for _, name := range allBuckets {
			if tx.Bucket(name) == nil {
				return errForeign
			}
		}
		return checkFormat(tx.Bucket(bucketMeta))
	})
	if err != nil || !fresh {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range allBuckets {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(keyFormat, binary.BigEndian.AppendUint64(nil, format))
	})
	return errors.Join(err, syncDir(dir), syncDir(filepath.Dir(filepath.Clean(dir))))
}

func boltOptions(o Options, readOnly bool) *bbolt.Options {
	b := &bbolt.Options{
		Timeout: lockTimeout,
		// The array type searches free pages linearly. The file is the same.
		FreelistType: bbolt.FreelistMapType,
		// Writing the freelist costs 8 bytes a free page with each commit, little but
		// after a large deletion; not writing it costs a read of the whole tree at
		// each start.
		NoFreelistSync: false,
		ReadOnly:       readOnly,
	}
	if !readOnly && math.MaxInt > math.MaxInt32 && runtime.GOOS != "windows" { // which sizes the file like the map
		b.InitialMmapSize = int(min(initialMmap, math.MaxInt))
	}
	if o.MaxBytes > 0 {
		b.MaxSize = int(o.MaxBytes + hardSlack)
	}
	return b
}

func openError(dir string, err error) error {
	if errors.Is(err, berrors.ErrTimeout) {
		return fmt.Errorf("data directory %s: %w", dir, ErrInUse)
	}
	return fmt.Errorf("open data directory %s: %w", dir, err)
}

// ErrInUse is why a data directory cannot be opened or checked while a process has it
// open.
var ErrInUse = errors.New("in use by another oncelog process")

var errForeign = errors.New("this is not an oncelog data file")

// checkFormat compares the file's format with the program's.
func checkFormat(meta *bbolt.Bucket) error {
	v := meta.Get(keyFormat)
	if len(v) != 8 {
		return errForeign
	}
	if got := binary.BigEndian.Uint64(v); got != format {
		return fmt.Errorf("the data has format %d and this version of oncelog reads format %d; use a newer version", got, format)
	}
	return nil
}

// recovery tells what a start had to read.
type recovery struct {
	partitions int
	headers    int64 // batch headers replayed
	bytes      int64 // their bytes
	damaged    int   // snapshots that had to be passed over
	replays    []*partition
}

// recover loads topics and ids, and each partition's state.
func (s *Store) recover() (*recovery, error) {
	rec := &recovery{}
	err := s.view(func(tx *bbolt.Tx) error {
		s.stats.storeBytes.Store(tx.Size())
		s.recoverPIDs(tx)
		return tx.Bucket(bucketTopics).ForEach(func(name, v []byte) error {
			var row topicRow
			if err := json.Unmarshal(v, &row); err != nil {
				return fmt.Errorf("topic %q: %w", name, err)
			}
			t := s.addTopic(string(name), row)
			for _, p := range t.info.Load().partitions {
				if err := s.recoverPartition(tx, p, rec); err != nil {
					return fmt.Errorf("topic %q partition %d: %w", name, p.name.Number, err)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	s.measure()
	for _, p := range rec.replays {
		// A start that had to replay saves the next one from it.
		if err := s.snapshotAtStart(p); err != nil {
			s.log.Warn("no snapshot could be taken at start", p.logTopic(), p.logNumber(), slog.Any("error", err))
		}
	}
	return rec, nil
}

func (s *Store) snapshotAtStart(p *partition) error {
	if p.large() {
		_, err := s.capture(p, store.SnapshotStartup)
		return err
	}
	_, err := s.takeSnapshot(p, store.SnapshotStartup)
	return err
}

// measure notes how large the store is and how much of it is free.
func (s *Store) measure() {
	st := s.db.Stats()
	s.stats.freeBytes.Store(int64(st.FreePageN+st.PendingPageN) * int64(s.db.Info().PageSize))
}

// addTopic puts a topic that is on disk into memory.
func (s *Store) addTopic(name string, row topicRow) *topic {
	t := &topic{name: name, id: row.ID}
	s.setTopic(t, row, row.CreatedAt)
	s.topics[name] = t
	return t
}

// setTopic gives t the row and makes the partitions that are new in it, as of now (ms).
func (s *Store) setTopic(t *topic, row topicRow, now int64) {
	info := &topicInfo{row: row, config: store.Config(row.Config)}
	if old := t.info.Load(); old != nil {
		info.partitions = append(info.partitions, old.partitions...)
	}
	for n := len(info.partitions); n < len(row.UIDs); n++ {
		p := newPartition(t, n, row.UIDs[n])
		p.segments = []segment{{segmentRow: segmentRow{CreatedAt: now}}}
		info.partitions = append(info.partitions, p)
	}
	t.info.Store(info)
}

// recoverPartition rebuilds a partition: bounds and segments from their rows, producer
// state from the newest intact snapshot and the headers after it.
func (s *Store) recoverPartition(tx *bbolt.Tx, p *partition, rec *recovery) error {
	rec.partitions++
	var row partitionRow
	v := tx.Bucket(bucketParts).Get(uidKey(p.uid))
	if v == nil {
		return errors.New("its row is missing")
	}
	if err := json.Unmarshal(v, &row); err != nil {
		return err
	}
	p.earliest.Store(row.Earliest)
	segments, err := readSegments(tx, p.uid)
	if err != nil {
		return err
	}
	p.segments = segments
	from, damaged := s.loadNewest(tx, p, logEnd(tx, p))
	rec.damaged += damaged
	p.snapAt, p.snapMarks = from.listedAt, from.marks
	active := p.active()
	active.Next = active.base
	rp := replayer{st: from}
	err = rp.run(tx, p.uid, min(from.offset, active.base), math.MaxInt64, math.MaxUint64, func(base int64, h *header) {
		if base < active.base {
			return
		}
		active.Bytes += h.bytes
		active.Batches++
		active.Next = h.lastOffset(base) + 1
		active.LastAt = h.appendedAt
	})
	if err != nil {
		return err
	}
	rec.headers += rp.headers
	rec.bytes += rp.bytes
	if rp.headers > 0 && (from.offset < active.Next || from.marks < rp.st.marks) {
		rec.replays = append(rec.replays, p)
	}
	p.marks, p.lastAt = rp.st.marks, max(rp.st.lastAt, p.lastSegmentAt())
	for _, pr := range rp.st.states {
		// Of a trimmed log the states may know the latest time.
		at, _ := pr.state.Expired()
		s.clock.floor(max(at, pr.state.LastTimestamp()))
	}
	p.dedup.fill(rp.st.states)
	p.orphans.Store(true) // a crash may have left some
	p.next.Store(active.Next)
	s.clock.floor(p.lastAt)
	return nil
}

// logEnd is the offset after the last batch.
func logEnd(tx *bbolt.Tx, p *partition) int64 {
	if k, v := seekBatch(tx.Bucket(bucketHeaders).Cursor(), p.uid, math.MaxInt64); k != nil {
		if h, err := decodeHeader(v); err == nil {
			base := offsetOf(k)
			return h.lastOffset(base) + 1
		}
	}
	return p.active().base
}

func readSegments(tx *bbolt.Tx, uid uint64) ([]segment, error) {
	var out []segment
	c := tx.Bucket(bucketSegments).Cursor()
	for k, v := c.Seek(uidKey(uid)); hasUID(k, uid); k, v = c.Next() {
		base := offsetOf(k)
		seg := segment{base: base}
		if err := json.Unmarshal(v, &seg.segmentRow); err != nil {
			return nil, fmt.Errorf("segment %d: %w", base, err)
		}
		out = append(out, seg)
	}
	if len(out) == 0 {
		return nil, errors.New("it has no segment")
	}
	return out, nil
}

// lastSegmentAt is the arrival of the newest batch as the segments know it.
func (p *partition) lastSegmentAt() int64 {
	var at int64
	for i := range p.segments {
		at = max(at, p.segments[i].LastAt)
	}
	return at
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
