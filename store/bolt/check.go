package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

// Report is what [Check] found.
type Report struct {
	// Problems are sentences, one for each fault. None means that all of this holds:
	// the file's pages are consistent; each partition's batches follow each other
	// without a gap and pass their checksums; each producer's sequences do too, within
	// each epoch; rows, totals and snapshots agree with the log.
	Problems []string

	Topics, Partitions, Segments, Batches, Records, Snapshots int64
}

func (r *Report) problem(format string, args ...any) {
	const most = 1000
	if len(r.Problems) < most {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Check examines a data directory that no process has open, and changes nothing in it.
// progress, if not nil, is told of the bytes of batches examined and of their total. An
// error means that the directory could not be examined.
func Check(dir string, progress func(done, total int64)) (*Report, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("there is no oncelog store in %s: %w", dir, err)
	}
	if err := checkLength(path); err != nil {
		if cut, ok := errors.AsType[*cutOffError](err); ok {
			return &Report{Problems: []string{cut.Error()}}, nil
		}
		return nil, openError(dir, err)
	}
	db, file, err := openGuarded(path, boltOptions(Options{}, true))
	if err != nil {
		return nil, openError(dir, err)
	}
	c := checker{report: &Report{}, progress: progress, uids: map[uint64]bool{}}
	if c.pages(file) {
		err = db.View(c.run)
	}
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	return c.report, err
}

type checker struct {
	report   *Report
	progress func(done, total int64)
	done     int64
	total    int64
	uids     map[uint64]bool
	tail     map[uint64][]tailRow // by partition
}

// pages examines the pages of the file and reports whether what is in them can be looked
// at.
func (c *checker) pages(file io.ReaderAt) bool {
	w, ok := newPageWalk(file)
	if !ok {
		c.report.problem("there is no intact meta page")
		return false
	}
	w.whole()
	for _, p := range w.problems {
		c.report.problem("%s", p)
	}
	if w.loop != "" {
		c.report.problem("as pages are reached in two ways, what is in them was not examined")
	}
	return w.loop == ""
}

// guarded examines a part. bbolt panics on pages that make no sense.
func (c *checker) guarded(part string, examine func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			c.report.problem("%s: %v", part, misread(v))
		}
	}()
	examine()
}

func (c *checker) run(tx *bbolt.Tx) (err error) {
	c.guarded("the store", func() { err = c.contents(tx) })
	return err
}

func (c *checker) contents(tx *bbolt.Tx) error {
	if isNew(tx) {
		return nil // power went before the first start had come far
	}
	for _, name := range allBuckets {
		if tx.Bucket(name) == nil {
			return fmt.Errorf("bucket %q is missing: %w", name, errForeign)
		}
	}
	if err := checkFormat(tx.Bucket(bucketMeta)); err != nil {
		return err
	}
	c.total = tx.Size()
	c.guarded("the tail", func() { c.walkTail(tx) })
	err := tx.Bucket(bucketTopics).ForEach(func(name, v []byte) error {
		c.topic(tx, string(name), v)
		return nil
	})
	if n, err := readNumber(tx.Bucket(bucketMeta), keyNextUID); err != nil {
		c.report.problem("number of the next partition: %v", err)
	} else {
		for uid := range c.uids {
			if uid > n {
				c.report.problem("partition uid %d is above the highest that was given, %d", uid, n)
			}
		}
	}
	c.guarded("data of no topic", func() { c.strays(tx) })
	c.strayRows()
	c.guarded("owners", func() { c.owners(tx) })
	return err
}

func (c *checker) topic(tx *bbolt.Tx, name string, v []byte) {
	c.report.Topics++
	var row topicRow
	if err := readRow([]byte(name), v, &row); err != nil {
		c.report.problem("topic %q: %v", name, err)
		return
	}
	if err := store.CheckTopic(len(row.UIDs), store.Config(row.Config)); err != nil {
		c.report.problem("topic %q: %v", name, err)
	}
	for n, uid := range row.UIDs {
		c.uids[uid] = true
		pc := partitionCheck{checker: c, tx: tx, uid: uid, name: fmt.Sprintf("topic %q partition %d", name, n)}
		c.guarded(pc.name, pc.run)
	}
}

// strays finds keys of partitions that are neither in a topic nor in the trash.
func (c *checker) strays(tx *bbolt.Tx) {
	for _, name := range [][]byte{bucketParts, bucketSegments, bucketBatches, bucketHeaders, bucketMarks, bucketSnapshots, bucketChunks} {
		cur := tx.Bucket(name).Cursor()
		for k, _ := cur.First(); k != nil; {
			uid := uidOf(k)
			if !c.uids[uid] && tx.Bucket(bucketTrash).Get(uidKey(uid)) == nil {
				c.report.problem("bucket %q holds data of partition uid %d, which is in no topic", name, uid)
			}
			if uid == math.MaxUint64 {
				break
			}
			if k, _ = cur.Seek(uidKey(uid + 1)); k != nil && uidOf(k) <= uid {
				c.report.problem("bucket %q: its keys are out of order behind partition uid %d", name, uid)
				break // or the search would find the same key for ever
			}
		}
	}
}

// partitionCheck examines one partition.
type partitionCheck struct {
	*checker
	tx   *bbolt.Tx
	uid  uint64
	name string

	segments []segment
	earliest int64
	sums     map[int64]*segmentRow // by base offset: what the headers add up to
	next     int64
	known    *known
	rows     bodies // of the batches
	buf      []byte // the last one
}

func (c *partitionCheck) bad(format string, args ...any) {
	c.report.problem("%s: %s", c.name, fmt.Sprintf(format, args...))
}

func (c *partitionCheck) run() {
	c.report.Partitions++
	var row partitionRow
	if err := readRow(uidKey(c.uid), c.tx.Bucket(bucketParts).Get(uidKey(c.uid)), &row); err != nil {
		c.bad("row: %v", err)
		return
	}
	segments, err := readSegments(c.tx, c.uid)
	if err != nil {
		c.bad("%v", err)
		return
	}
	c.segments, c.earliest = segments, row.Earliest
	c.report.Segments += int64(len(segments))
	if c.earliest < segments[0].base {
		c.bad("the earliest offset %d is below the first segment %d", c.earliest, segments[0].base)
	}
	c.log()
	c.totals()
	c.snapshots()
}

// log walks the headers and the batches beside them.
func (c *partitionCheck) log() {
	c.sums = map[int64]*segmentRow{}
	start, err := rebuild(c.tx, c.uid, 0, 0)
	for _, l := range listSnapshots(c.tx, c.uid, kindBase) {
		start, err = rebuild(c.tx, c.uid, l.offset, l.Marks)
	}
	if err != nil {
		c.bad("%v", err)
		return
	}
	r := replayer{st: start, tail: c.tail[c.uid]}
	c.next, c.known = start.offset, &r.st.known
	err = r.run(c.tx, c.uid, start.offset, math.MaxInt64, math.MaxUint64, func(base int64, h *header) {
		c.header(base, h) // marks before it have been applied, the batch has not
	})
	if err != nil {
		c.bad("%v", err)
		return
	}
	c.bodies()
	if end := c.segments[len(c.segments)-1].base; c.next < end {
		c.bad("the log ends at %d, below its last segment %d", c.next, end)
	}
	if c.earliest > c.next {
		c.bad("the earliest offset %d is above the end %d", c.earliest, c.next)
	}
}

// bodies looks for batches without a header.
func (c *partitionCheck) bodies() {
	headers, cur := c.tx.Bucket(bucketHeaders), c.tx.Bucket(bucketBatches).Cursor()
	var last []byte // key of the batch whose pieces may follow
	for k, _ := cur.Seek(offsetKey(c.uid, c.segments[0].base)); hasUID(k, c.uid); k, _ = cur.Next() {
		switch {
		case isPiece(k) && bytes.Equal(k[:offsetKeyLen], last): // examined with its batch
		case len(k) != offsetKeyLen:
			c.bad("the row %x belongs to no batch", k)
		case headers.Get(k) == nil:
			c.bad("the batch at offset %d has no header", offsetOf(k))
		default:
			last = k
		}
	}
}

func (c *partitionCheck) header(base int64, h *header) {
	if base != c.next {
		c.bad("a batch begins at offset %d, the one before ends below %d", base, c.next)
	}
	c.next = h.lastOffset(base) + 1
	c.producer(base, h)
	if base < c.segments[0].base {
		return // its records have been deleted
	}
	c.report.Batches++
	c.report.Records += int64(h.count)
	seg := c.segmentOf(base)
	seg.Bytes += h.bytes
	seg.Batches++
	seg.Next = c.next
	c.body(base, h)
	c.done += h.bytes
	if c.progress != nil {
		c.progress(c.done, c.total)
	}
}

// body examines the batch that a header describes.
func (c *partitionCheck) body(base int64, h *header) {
	err := c.find(base, h)
	switch {
	case errors.Is(err, errAbsent):
		c.bad("the batch at offset %d is missing", base)
	case errors.Is(err, errPair):
		c.bad("the batch at offset %d is not the one that its header describes", base)
	case err != nil:
		c.bad("the batch at offset %d: %v", base, err)
	default:
		if err := batch.Verify(c.buf, h.count); err != nil {
			c.bad("the batch at offset %d: %v", base, err)
		}
	}
}

// find puts the batch that a header describes into buf.
func (c *partitionCheck) find(base int64, h *header) (err error) {
	if found, err := c.inTail(base, h); found {
		return err
	}
	key := offsetKey(c.uid, base)
	if !bytes.Equal(c.rows.k, key) { // the first one, or after a fault
		c.rows = bodiesFrom(c.tx, key)
	}
	if !bytes.Equal(c.rows.k, key) {
		return errAbsent
	}
	c.buf, err = c.rows.next(c.buf[:0], key, h)
	return err
}

// producer checks that a batch goes on where its producer's last one ended.
func (c *partitionCheck) producer(base int64, h *header) {
	if !h.idempotent {
		return
	}
	state := c.known.state(h.producer.ID)
	if v := sequence.Check(&state, h.attempt()); v.Kind != sequence.Append {
		// A tombstone lets a higher epoch on, so Expired is a fault as well.
		c.bad("the batch at offset %d, producer %d epoch %d sequence %d, does not follow what that producer sent before (%v)",
			base, h.producer.ID, h.producer.Epoch, h.producer.BaseSeq, v.Kind)
	}
}

func (c *partitionCheck) segmentOf(offset int64) *segmentRow {
	base := c.segments[0].base
	for i := range c.segments {
		if c.segments[i].base <= offset {
			base = c.segments[i].base
		}
	}
	if c.sums[base] == nil {
		c.sums[base] = &segmentRow{}
	}
	return c.sums[base]
}

// totals compares the rows of closed segments with what their headers add up to.
func (c *partitionCheck) totals() {
	for i := range c.segments {
		seg := &c.segments[i]
		last := i == len(c.segments)-1
		if seg.Closed == last {
			c.bad("segment %d is marked closed: %v", seg.base, seg.Closed)
		}
		if last {
			continue
		}
		sum := c.sums[seg.base]
		if sum == nil || sum.Bytes != seg.Bytes || sum.Batches != seg.Batches || sum.Next != seg.Next {
			c.bad("the totals of segment %d do not match its batches", seg.base)
		}
		if seg.Next != c.segments[i+1].base {
			c.bad("segment %d ends at %d, the next one begins at %d", seg.base, seg.Next, c.segments[i+1].base)
		}
	}
}

// snapshots rebuilds the state at each snapshot and compares.
func (c *partitionCheck) snapshots() {
	for _, kind := range []byte{kindBase, kindListed} {
		for _, l := range listSnapshots(c.tx, c.uid, kind) {
			c.report.Snapshots++
			c.snapshot(kind, l)
		}
	}
}

func (c *partitionCheck) snapshot(kind byte, l listedSnapshot) {
	if l.err != nil {
		c.bad("snapshot at %d: %v", l.offset, l.err)
		return
	}
	if l.offset > c.next {
		c.bad("snapshot at %d is above the end of the log %d", l.offset, c.next)
	}
	found, err := readSnapshot(c.tx, c.uid, kind, l.offset, l.snapshotRow)
	if err != nil {
		c.bad("snapshot at %d: %v", l.offset, err)
		return
	}
	rebuilt, err := rebuild(c.tx, c.uid, l.offset, l.Marks)
	if err != nil {
		c.bad("snapshot at %d: %v", l.offset, err)
		return
	}
	for _, d := range compareStates(&found, &rebuilt.known) {
		c.bad("snapshot at %d: %s", l.offset, d)
	}
}
