package bolt

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// Crash ends the engine as a kill would: nothing is written any more, and what waits is
// not answered. The lock on the directory is released.
func (s *Store) Crash() error {
	var err error
	s.closeOnce.Do(func() {
		s.gate.Lock()
		s.closed = true
		s.gate.Unlock()
		close(s.closing)
		s.committer.Wait()
		s.upkeep.Wait()
		err = s.db.Close()
		s.closeErr = err
	})
	return err
}

// Edit changes the file of a closed store.
func Edit(dir string, fn func(tx *bbolt.Tx) error) error {
	db, err := bbolt.Open(filepath.Join(dir, fileName), 0o644, boltOptions(Options{}, false))
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Update(fn)
}

// Sweep does one round of upkeep now.
func (s *Store) Sweep(ctx context.Context) error { return s.sweep(ctx) }

// Block stops the committer until the returned function is called.
func (s *Store) Block() (release func()) {
	entered, released := make(chan struct{}), make(chan struct{})
	s.controls <- func() {
		close(entered)
		<-released
	}
	<-entered
	return func() { close(released) }
}

// Break closes the file under the engine, so that the next write fails.
func (s *Store) Break() error { return s.db.Close() }

// Buckets and keys for tests that damage a file.
var (
	BucketMeta       = bucketMeta
	BucketTopics     = bucketTopics
	BucketPartitions = bucketParts
	BucketBatches    = bucketBatches
	BucketHeaders    = bucketHeaders
	BucketSegments   = bucketSegments
	BucketSnapshots  = bucketSnapshots
	BucketChunks     = bucketChunks
	BucketMarks      = bucketMarks
	BucketTrash      = bucketTrash
	BucketOwners     = bucketOwners
	KeyPIDMark       = keyPIDMark
	KeyNextUID       = keyNextUID
	KeyFormat        = keyFormat
)

// Reseal puts a changed row under a key with a checksum that says it was meant.
func Reseal(b *bbolt.Bucket, key, v []byte) error {
	key = append([]byte(nil), key...)
	return b.Put(key, seal(key, append([]byte(nil), v...)))
}

// SumLen is the length of the checksum behind a row.
const SumLen = sumLen

// QueueLen is the number of appends that wait for the committer.
func (s *Store) QueueLen() int { return len(s.appends) }

// SetDisk makes the engine believe in so much free space on the disk and in the file.
func (s *Store) SetDisk(disk, file int64) {
	s.stats.diskFree.Store(disk)
	s.stats.freeBytes.Store(file)
	s.judgeSpace()
}

// PIDsWaiting is the number of owners that wait for a block of producer ids.
func (s *Store) PIDsWaiting() int {
	s.pids.mu.Lock()
	defer s.pids.mu.Unlock()
	if s.pids.waiting == nil {
		return 0
	}
	return len(s.pids.waiting.owners)
}

// Admit is the check of whether a producer id may be used.
func (s *Store) Admit(id int64, principal string) error { return s.pids.admit(id, principal) }

// PutOwner writes a block of producer ids as if they had all been given away.
func PutOwner(tx *bbolt.Tx, owner string, start, end int64) error {
	b := newBlock(owner, start, end)
	return tx.Bucket(bucketOwners).Put(ownerKey(start), encodeOwner(b, end))
}

// CaptureFrom is from how many producers on a snapshot is taken in steps.
const CaptureFrom = captureFrom

// BeginCapture takes the first step of a snapshot and no further one.
func (s *Store) BeginCapture(p store.Partition) {
	done := make(chan struct{})
	s.controls <- func() {
		defer close(done)
		pt, err := s.partition(p)
		if err != nil {
			panic(err)
		}
		if _, err := s.capture(pt, store.SnapshotRequest); err != nil {
			panic(err)
		}
		s.stepCapture()
		s.captures = captures{}
	}
	<-done
}

// FilledSeq is the sequence with which the producers of FillProducers go on.
const FilledSeq = 10 * sequence.Window

// FillProducers makes a partition know producers 0 to n−1 with full windows.
// Nothing of it is on disk before a snapshot is taken.
func (s *Store) FillProducers(p store.Partition, n int) {
	done := make(chan struct{})
	s.controls <- func() {
		defer close(done)
		pt, err := s.partition(p)
		if err != nil {
			panic(err)
		}
		pt.mu.Lock()
		defer pt.mu.Unlock()
		now := s.clock.millis()
		for pid := range int64(n) {
			var st sequence.State
			for i := range int64(sequence.Window) {
				a := sequence.Attempt{BaseSeq: i * 10, Count: 10, Digest: sequence.Digest{byte(pid), byte(pid >> 8), byte(i)}}
				st = st.Apply(a, pid*100+i*10, now)
			}
			pr := &producer{id: pid}
			pt.dedup.byID[pid] = pr
			pt.dedup.publish(pr, &st)
		}
	}
	<-done
}

// SetListedPages sets how long a list of free pages a commit writes.
func (s *Store) SetListedPages(n int64) { s.freelist.longest = n }

// FreelistOnDisk reports whether the newest commit has written the list.
func (s *Store) FreelistOnDisk() bool { return !s.freelist.missing }

// SaveFreelist is what upkeep does about the list.
func (s *Store) SaveFreelist(ctx context.Context) error { return s.saveFreelist(ctx) }

// UpgradePart does the beginning of an upgrade: so many rows of each bucket.
func UpgradePart(dir string, rows int) error {
	return Edit(dir, func(tx *bbolt.Tx) error {
		for _, b := range bareBuckets() {
			if _, _, err := upgradeSlice(tx.Bucket(b.bucket), nil, rows, b.seal); err != nil {
				return err
			}
		}
		return nil
	})
}

// OpenTx is the number of read transactions that are open.
func (s *Store) OpenTx() int { return s.db.Stats().OpenTxN }

// OpenLocked opens a store file as the engine does.
func OpenLocked(path string) (*bbolt.DB, error) {
	return openLocked(path, boltOptions(Options{}, false))
}

// PagesInUse is how many pages a file has in use, by its newest meta page.
func PagesInUse(f *os.File) (int64, error) {
	w, ok := newPageWalk(f)
	if !ok {
		return 0, errUnreadable
	}
	return int64(w.pages), nil
}

// RecodeOwner decodes the row of an owner and encodes it again. It reports whether it
// could be read.
func RecodeOwner(key, row []byte) (again []byte, ok bool) {
	b, err := decodeOwner(key, row)
	if err != nil {
		return nil, false
	}
	return encodeOwner(b, b.next.Load()), true
}

// EncodeOwner is the row of a block of producer ids.
func EncodeOwner(owner string, start, end, next int64) (key, row []byte) {
	return ownerKey(start), encodeOwner(newBlock(owner, start, end), next)
}

// PieceLen is the longest row of a batch; FormatWhole the format that had rows of any
// length; EnoughFree the number of free pages at which the reaper stops [WithEnoughFree].
const (
	PieceLen    = pieceLen
	EnoughFree  = 2 << 10
	Format      = format
	FormatWhole = formatWhole
)

// FreePages is how many pages are free, and whether the last commit wrote the list of them.
func (s *Store) FreePages() (n int64, listed bool) { return s.freePages(), !s.freelist.missing }

// Garbage is how many bytes wait for the reaper.
func (s *Store) Garbage() int64 { return s.garbage.total.Load() }

// RefuseSpace has the engine believe that the disk had no room for a transaction.
func (s *Store) RefuseSpace() {
	now := time.Now()
	s.refused.Store(&now)
}

// WithEnoughFree has the reaper stop early, so that tests need not write much.
func WithEnoughFree(o Options) Options {
	o.enoughFree = EnoughFree
	return o
}
