package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
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
		group: &group{}, freelist: freelist{longest: listedPages}, garbage: newGarbage(), tail: tail{from: o.tailFrom},
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
	if err := checkTrees(path); err != nil {
		return nil, openError(dir, err)
	}
	db, err := openLocked(path, boltOptions(o, false))
	if err != nil {
		return nil, openError(dir, err)
	}
	db.AllocSize = allocSize
	if err := dropLeftovers(dir); err != nil { // which only takes up space
		o.Logger.Warn("what an unfinished backup, restore or compaction has left cannot be removed", slog.Any("error", err))
	}
	if err := guard(func() error { return prepare(db, dir, o.Logger) }); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return db, nil
}

// openGuarded is bbolt.Open that gives an error for a damaged list of free pages, where
// bbolt panics. The file is the open one.
func openGuarded(path string, b *bbolt.Options) (db *bbolt.DB, file *os.File, err error) {
	b.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w; oncelog check tells more", misread(v))
			unlock(file) // what bbolt has mapped keeps the file, and with it the lock
			err = errors.Join(err, file.Close())
		}
	}()
	db, err = bbolt.Open(path, 0o600, b)
	return db, file, err
}

// checkTrees refuses a file whose pages would not only fail where they are damaged but end
// the process: see [pageWalk].
func checkTrees(path string) (err error) {
	if info, err := os.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil // a new store
	}
	db, file, err := openGuarded(path, boltOptions(Options{}, true))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	w, ok := newPageWalk(file)
	switch {
	case !ok:
		return nil // bbolt says it better
	case w.freelist == noFreelist:
		// bbolt will look for the free pages in a goroutine of its own, where no panic can
		// be caught.
		if w.whole(); len(w.problems) > 0 {
			return fmt.Errorf("%w: %s; oncelog check tells more", errUnreadable, w.problems[0])
		}
	default:
		if w.upper(startPages); w.loop != "" {
			return fmt.Errorf("%w: %s; oncelog check tells more", errUnreadable, w.loop)
		}
		// bbolt makes room for as many pages as the list says that it has, and writes to
		// those that it names.
		w.problems = nil // those of the trees show where they are read
		if w.free(); len(w.problems) > 0 {
			return fmt.Errorf("%w: %s; oncelog check tells more", errUnreadable, w.problems[0])
		}
	}
	return nil
}

// prepare checks the format of a file, brings an older one to the present format, or gives
// a new one its buckets. It writes only then: a store on a full disk must still open, to
// be read and trimmed.
func prepare(db *bbolt.DB, dir string, log *slog.Logger) error {
	fresh, whole := false, false
	err := db.View(func(tx *bbolt.Tx) error {
		if isNew(tx) {
			fresh = true
			return nil
		}
		err := recognise(tx)
		whole = err == nil && formatOf(tx.Bucket(bucketMeta)) == formatWhole
		return err
	})
	switch {
	case errors.Is(err, errOldFormat):
		return upgrade(db, log)
	case err == nil && whole:
		return db.Update(putFormat)
	case err != nil || !fresh:
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range allBuckets {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return putFormat(tx)
	})
	return errors.Join(err, syncDir(dir), syncDir(filepath.Dir(filepath.Clean(dir))))
}

func boltOptions(o Options, readOnly bool) *bbolt.Options {
	b := &bbolt.Options{
		Timeout: lockTimeout,
		// The array type searches free pages linearly. The file is the same.
		FreelistType: bbolt.FreelistMapType,
		ReadOnly:     readOnly,
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

// isNew reports that nothing has ever been committed to a file. That it has no buckets is
// not enough: a damaged page may look like that.
func isNew(tx *bbolt.Tx) bool {
	k, _ := tx.Cursor().First()
	return k == nil && tx.ID() <= firstTx
}

// firstTx is the transaction with which bbolt makes a file.
const firstTx = 1

// putFormat says that the file has the present format.
func putFormat(tx *bbolt.Tx) error {
	return tx.Bucket(bucketMeta).Put(keyFormat, binary.BigEndian.AppendUint64(nil, format))
}

// formatOf is the number of a file's format, 0 if there is none.
func formatOf(meta *bbolt.Bucket) uint64 {
	if v := meta.Get(keyFormat); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// checkFormat compares the file's format with the program's.
func checkFormat(meta *bbolt.Bucket) error {
	switch got := formatOf(meta); got {
	case 0:
		return errForeign
	case format, formatWhole:
		return nil
	case formatBare:
		return errOldFormat
	default:
		return fmt.Errorf("the data has format %d and this version of oncelog reads format %d; use a newer version", got, format)
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
