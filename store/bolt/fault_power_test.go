//go:build linux

package bolt_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
	"github.com/oncelog/oncelog/store/storetest/faultfs"
)

var (
	powerImages = flag.Int("power.images", 1000, "images of TestPowerLoss, at least")
	powerSeed   = flag.Uint64("power.seed", 0, "seed of TestPowerLoss; 0: one of the time")
)

// TestPowerLoss records what a busy store writes, and where it syncs. For every fsync it
// makes files that loss of power could leave after it: all that was synced, and of what
// was written since nothing, some writes, or parts of them, for a disk reorders and tears.
// From each the engine must start with everything that had been acknowledged by then.
func TestPowerLoss(t *testing.T) { testPowerLoss(t, *powerImages, 2, bolt.Options{}) }

// TestPowerLossInTail is TestPowerLoss with small batches going through the tail.
func TestPowerLossInTail(t *testing.T) {
	testPowerLoss(t, *powerImages/5, 0, bolt.WithTail(bolt.Options{}))
}

func testPowerLoss(t *testing.T, least, each int, opts bolt.Options) {
	t.Helper()
	seed := *powerSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-power.seed %d", seed)
	run := recordRun(t, seed, opts)
	images := newImages(run.events, rand.New(rand.NewPCG(seed, 1)))
	var work errgroup.Group
	work.SetLimit(2)
	var mu sync.Mutex
	count, missing, torn := 0, 0, 0
	for sync := 0; images.next(); sync++ {
		upto := least * (sync + 1) / images.syncs
		for n := range max(each, upto-count) {
			img := images.make(n > 0 || each == 0)
			count++
			missing += img.lostWrites
			torn += img.tornWrites
			work.Go(func() error {
				faults := run.examine(img)
				img.remove()
				mu.Lock()
				defer mu.Unlock()
				for _, f := range faults {
					t.Errorf("image %s: %s", img.name, f)
				}
				if t.Failed() {
					return errors.New("enough")
				}
				return nil
			})
		}
		if t.Failed() {
			break
		}
	}
	_ = work.Wait() // the faults have been told of
	if count < least {
		t.Errorf("%d images, want %d", count, least)
	}
	t.Logf("%d images at %d fsyncs of %d events, %d writes lost and %d torn; %d operations, all that had been acknowledged was there",
		count, images.syncs, len(run.events), missing, torn, len(run.ops))
}

// op is an operation of the recorded run, with the positions of the record when it was
// begun and when it had been acknowledged.
type op struct {
	kind    string // append, expire, trim, create, delete, pid
	p       store.Partition
	append  store.Append // append
	payload string       // append: the text of its first record
	base    int64        // append: where it was stored
	offset  int64        // trim
	pid     int64        // expire, pid
	begun   int
	acked   int // math.MaxInt: not at all
}

// powerRun is a recorded run.
type powerRun struct {
	opts   bolt.Options
	events []faultfs.Event
	clock  *ticker

	mu    sync.Mutex
	ops   []*op
	times []powerTime
}

// powerTime is when the clock was turned: the position of the record, and the time from then
// on.
type powerTime struct {
	at  int
	now time.Time
}

// pass turns the clock on.
func (run *powerRun) pass(r *faultRig, d time.Duration) {
	run.clock.add(d)
	run.mu.Lock()
	defer run.mu.Unlock()
	run.times = append(run.times, powerTime{at: r.fs.Position(), now: run.clock.Now()})
}

// then is the time at a position of the record. An image is looked at as of then: later, the
// time of producers would be up that were in the middle of their work.
func (run *powerRun) then(at int) time.Time {
	now := newTicker().Now()
	for _, t := range run.times {
		if t.at <= at {
			now = t.now
		}
	}
	return now
}

const (
	powerTopic      = "t"
	powerPartitions = 3
	powerWorkers    = 4
	powerExpiry     = time.Hour
)

// recordRun does a bit of everything to a store on a recorded disk.
func recordRun(t *testing.T, seed uint64, opts bolt.Options) *powerRun {
	t.Helper()
	clock := newTicker()
	opts.Now, opts.DiskReserve, opts.RetentionInterval = clock.Now, -1, time.Hour
	run := &powerRun{clock: clock, opts: opts}
	fs := faultfs.New(t)
	// An fsync takes its time, so that whoever does not wait for it is found out.
	fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Delay: 300 * time.Microsecond})
	fs.Record()
	r := &faultRig{rig: &rig{t: t, dir: filepath.Join(fs.Dir, "data"), opts: run.opts}, fs: fs}
	r.open()
	c := store.DefaultConfig()
	c.SegmentBytes, c.ProducerExpiryMs = 2<<10, powerExpiry.Milliseconds()
	_ = run.do(r, &op{kind: "create", p: store.Partition{Topic: powerTopic}}, func(*op) error {
		_, err := r.CreateTopic(context.Background(), powerTopic, powerPartitions, c)
		return err
	})
	for phase := range 3 {
		var all errgroup.Group
		for i := range powerWorkers {
			w := &powerWorker{run: run, r: r, rand: rand.New(rand.NewPCG(seed, uint64(100*phase+i))), next: map[int][2]int64{}}
			all.Go(func() error { return w.work(14) })
		}
		all.Go(func() error { return run.upkeep(r, rand.New(rand.NewPCG(seed, uint64(100*phase+99))), 8) })
		if err := all.Wait(); err != nil {
			t.Fatal(err)
		}
		switch phase {
		case 0:
			r.close()
			r.open()
		case 1:
			r.crash()
			r.open()
		}
	}
	r.close()
	fs.Inject()
	run.events = fs.Events()
	return run
}

// do does an operation and notes it.
func (run *powerRun) do(r *faultRig, o *op, fn func(*op) error) error {
	o.begun, o.acked = r.fs.Position(), math.MaxInt
	run.mu.Lock()
	run.ops = append(run.ops, o)
	run.mu.Unlock()
	if err := fn(o); err != nil {
		return fmt.Errorf("%s %v: %w", o.kind, o.p, err)
	}
	o.acked = r.fs.Position()
	return nil
}

// powerWorker is a producer that does one thing after the other.
type powerWorker struct {
	run  *powerRun
	r    *faultRig
	rand *rand.Rand
	pid  int64
	next map[int][2]int64 // by partition: epoch and sequence
}

func (w *powerWorker) work(steps int) error {
	ctx := context.Background()
	err := w.run.do(w.r, &op{kind: "pid"}, func(o *op) error {
		id, err := w.r.AllocateProducer(ctx, "")
		w.pid, o.pid = id.ID, id.ID
		return err
	})
	for range steps {
		if err != nil {
			return err
		}
		n := w.rand.IntN(powerPartitions)
		p := store.Partition{Topic: powerTopic, Number: n}
		switch w.rand.IntN(12) {
		case 0: // a plain append
			a := store.Append{Partition: p, Batch: texts(fmt.Sprintf("plain-%d-%d", w.pid, w.rand.Uint64()), 1+w.rand.IntN(3))}
			err = w.store(a)
		case 1:
			if at, ok := w.next[n]; ok && at[1] > 0 {
				err = w.run.do(w.r, &op{kind: "expire", p: p, pid: w.pid}, func(*op) error { return w.r.ExpireProducer(ctx, p, w.pid) })
				w.next[n] = [2]int64{at[0] + 1, 0}
			}
		case 2:
			w.next[n] = [2]int64{w.next[n][0] + 1, 0}
			fallthrough
		default:
			at := w.next[n]
			count := 1 + w.rand.IntN(4)
			a := app(p, w.pid, at[0], at[1], count)
			if w.rand.IntN(10) == 0 {
				a.Batch = texts(fmt.Sprintf("%d/%d/%d-%s", w.pid, at[0], at[1], string(make([]byte, 9000))), count)
			}
			if err = w.store(a); err == nil {
				w.next[n] = [2]int64{at[0], at[1] + int64(count)}
			}
		}
	}
	return err
}

func (w *powerWorker) store(a store.Append) error {
	return w.run.do(w.r, &op{kind: "append", p: a.Partition, append: a, payload: firstText(a)}, func(o *op) error {
		ack, err := w.r.Append(context.Background(), a)
		o.base = ack.BaseOffset
		if err == nil && ack.Duplicate {
			return errors.New("taken for a duplicate")
		}
		return err
	})
}

// upkeep rolls, takes snapshots, trims, sweeps, lets time pass, and creates and deletes
// topics.
func (run *powerRun) upkeep(r *faultRig, rnd *rand.Rand, steps int) error {
	ctx := context.Background()
	var err error
	passed := time.Duration(0) // below powerExpiry, or the workers of this phase would expire
	for i := 0; i < steps && err == nil; i++ {
		p := store.Partition{Topic: powerTopic, Number: rnd.IntN(powerPartitions)}
		switch rnd.IntN(7) {
		case 0:
			_, err = r.Roll(ctx, p)
		case 1:
			_, err = r.TakeSnapshots(ctx, store.SnapshotFilter{})
		case 2, 3:
			b, errBounds := r.Bounds(ctx, p)
			before := b.Earliest + rnd.Int64N(b.HighWatermark-b.Earliest+1)
			err = errors.Join(errBounds, run.do(r, &op{kind: "trim", p: p, offset: before}, func(*op) error {
				_, err := r.Trim(ctx, p, before)
				return err
			}), r.Sweep(ctx))
		case 4:
			if d := 10 * time.Minute; passed+d < powerExpiry {
				passed += d
				run.pass(r, d)
			}
			err = r.Sweep(ctx)
		default:
			name := store.Partition{Topic: fmt.Sprintf("scratch-%d", rnd.Uint64())}
			err = run.do(r, &op{kind: "create", p: name}, func(*op) error {
				_, err := r.CreateTopic(ctx, name.Topic, 2, store.DefaultConfig())
				return err
			})
			if err == nil {
				_, err = r.Append(ctx, store.Append{Partition: name, Batch: texts("scratch", 3)})
			}
			if err == nil && rnd.IntN(2) == 0 {
				err = run.do(r, &op{kind: "delete", p: name}, func(*op) error { return r.DeleteTopic(ctx, name.Topic) })
				err = errors.Join(err, r.Sweep(ctx))
			}
		}
	}
	return err
}

// image is a data directory as loss of power could leave it.
type image struct {
	name                   string
	at                     int // events that had happened
	dir                    string
	missing                bool // the file has no name yet
	lostWrites, tornWrites int
}

func (img *image) remove() { os.RemoveAll(img.dir) }

// images makes them out of a record.
type images struct {
	events []faultfs.Event
	rand   *rand.Rand
	syncs  int

	at      int // events up to here are synced
	until   int // and from here on the next fsync has been reached
	base    *sparse
	created bool
	named   bool
	parent  string
}

const powerFile = "data/oncelog.db"

func newImages(events []faultfs.Event, rnd *rand.Rand) *images {
	im := &images{events: events, rand: rnd, base: &sparse{pages: map[int64][]byte{}}, parent: "/dev/shm"}
	if _, err := os.Stat(im.parent); err != nil {
		im.parent = os.TempDir()
	}
	for _, e := range events {
		if e.Kind == faultfs.Sync {
			im.syncs++
		}
	}
	return im
}

// next goes on behind the next fsync of the file, and reports whether there is one.
func (im *images) next() bool {
	for im.at < len(im.events) {
		e := &im.events[im.at]
		im.at++
		im.base.apply(e)
		switch {
		case e.Kind == faultfs.Create && e.Path == powerFile:
			im.created = true
		case e.Kind == faultfs.SyncDir && e.Path == "data":
			im.named = im.created
		case e.Kind == faultfs.Sync && e.Path == powerFile:
			im.until = im.at
			for im.until < len(im.events) && im.events[im.until].Kind != faultfs.Sync {
				im.until++
			}
			return true
		}
	}
	return false
}

// make makes an image: of what is synced, or also of some of what was written since.
func (im *images) make(more bool) *image {
	dir, err := os.MkdirTemp(im.parent, "oncelog-power-")
	if err != nil {
		panic(err)
	}
	img := &image{name: fmt.Sprintf("of %d events", im.at), at: im.at, dir: dir}
	file := im.base
	if more {
		file = im.base.clone()
		// Power fails somewhere before the next fsync returns.
		img.at = im.at + im.rand.IntN(im.until-im.at+1)
		img.name = fmt.Sprintf("of %d events, %d of them synced, variant %d", img.at, im.at, im.rand.Uint32())
		pending := slices.Clone(im.events[im.at:img.at])
		im.rand.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
		for i := range pending {
			im.strike(file, &pending[i], img)
		}
	}
	if !im.named && im.rand.IntN(2) == 0 {
		img.missing = true
		return img
	}
	if err := file.write(filepath.Join(dir, "oncelog.db")); err != nil {
		panic(err)
	}
	return img
}

// strike lets a write that was not synced reach the disk, or not, or in part.
func (im *images) strike(file *sparse, e *faultfs.Event, img *image) {
	const sector = 512
	whole := *e
	switch im.rand.IntN(4) {
	case 0:
		img.lostWrites++
		return
	case 1:
		if e.Kind != faultfs.Write || len(e.Data) <= sector {
			break
		}
		img.tornWrites++
		for at := 0; at < len(e.Data); at += sector {
			if im.rand.IntN(2) == 0 {
				whole.Offset, whole.Data = e.Offset+int64(at), e.Data[at:min(at+sector, len(e.Data))]
				file.apply(&whole)
			}
		}
		return
	case 2: // its beginning
		if e.Kind == faultfs.Write && len(e.Data) > sector {
			img.tornWrites++
			whole.Data = e.Data[:sector*(1+im.rand.IntN(len(e.Data)/sector))]
		}
	}
	file.apply(&whole)
}

// sparse is a file in memory.
type sparse struct {
	pages map[int64][]byte
	size  int64
}

const sparsePage = 4096

func (s *sparse) clone() *sparse {
	return &sparse{pages: maps.Clone(s.pages), size: s.size} // a page is never changed in place
}

func (s *sparse) apply(e *faultfs.Event) {
	if e.Path != powerFile {
		return
	}
	switch e.Kind {
	case faultfs.Truncate:
		s.size = e.Size // it only grows
	case faultfs.Write:
		for at := 0; at < len(e.Data); {
			n, off := (e.Offset+int64(at))/sparsePage, int((e.Offset+int64(at))%sparsePage)
			page := make([]byte, sparsePage)
			copy(page, s.pages[n])
			at += copy(page[off:], e.Data[at:])
			s.pages[n] = page
		}
		s.size = max(s.size, e.Offset+int64(len(e.Data)))
	}
}

func (s *sparse) write(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(s.size)
	for n, p := range s.pages {
		if err == nil {
			_, err = f.WriteAt(p[:min(sparsePage, s.size-n*sparsePage)], n*sparsePage)
		}
	}
	return errors.Join(err, f.Close())
}
