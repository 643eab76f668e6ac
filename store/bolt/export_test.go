package bolt

import (
	"context"
	"path/filepath"

	"go.etcd.io/bbolt"
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
	BucketMeta      = bucketMeta
	BucketBatches   = bucketBatches
	BucketHeaders   = bucketHeaders
	BucketSegments  = bucketSegments
	BucketSnapshots = bucketSnapshots
	BucketChunks    = bucketChunks
	BucketMarks     = bucketMarks
	BucketTrash     = bucketTrash
	KeyPIDMark      = keyPIDMark
	KeyFormat       = keyFormat
)

// QueueLen is the number of appends that wait for the committer.
func (s *Store) QueueLen() int { return len(s.appends) }

// SetDisk makes the engine believe in so much free space on the disk and in the file.
func (s *Store) SetDisk(disk, file int64) {
	s.stats.diskFree.Store(disk)
	s.stats.freeBytes.Store(file)
	s.judgeSpace()
}
