package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

var (
	damageRounds = flag.Int("damage.rounds", 400, "rounds of TestRandomDamage")
	damageSeed   = flag.Uint64("damage.seed", 0, "seed of TestRandomDamage; 0: one of the time")
)

// TestDamagedPartition damages what a start needs of one partition: that one is out of
// service, and what is whole of it can be read; the other one goes on.
func TestDamagedPartition(t *testing.T) {
	cases := map[string]struct {
		spoil    func(*bbolt.Tx) error
		want     string
		readable bool
	}{
		"header":         {spoil(bolt.BucketHeaders, true, flip(3)), "batch at offset 7: damaged batch header", true},
		"header gone":    {spoil(bolt.BucketHeaders, true, gone), "the last batch header is at offset 5, the last batch at 7", true},
		"batch gone":     {spoil(bolt.BucketBatches, true, gone), "the last batch header is at offset 7, the last batch at 5", true},
		"mark":           {spoil(bolt.BucketMarks, true, flip(1)), "damaged mark", true},
		"partition row":  {spoil(bolt.BucketPartitions, true, flip(5)), "damaged row", false},
		"segment row":    {spoil(bolt.BucketSegments, true, flip(5)), "segment 4: damaged row", false},
		"segment gone":   {spoil(bolt.BucketSegments, true, gone), "segment 0 is marked closed: true", true},
		"partition gone": {spoil(bolt.BucketPartitions, true, gone), "its row is missing", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bolt.Options{})
			well, ill := r.topic("well", nil), r.topic("ill", nil)
			a, _ := history(r, well)
			history(r, ill)
			r.crash()
			r.check()
			if err := bolt.Edit(r.dir, c.spoil); err != nil {
				t.Fatal(err)
			}
			rep, err := bolt.Check(r.dir, nil)
			if err != nil || len(rep.Problems) == 0 || !strings.Contains(rep.Problems[0], `"ill" partition 0`) {
				t.Errorf("check: %q, %v", rep.Problems, err)
			}
			for range 2 { // it stays so
				r.open()
				r.outOfService(ill, c.want, c.readable)
				expectServing(r, well, a)
				r.crash()
			}
			r.open()
			if err := r.DeleteTopic(context.Background(), ill.Topic); err != nil {
				t.Errorf("delete topic: %v", err)
			}
			r.topic("ill", nil)
			r.must(app(ill, a, 0, 0, 1), 0)
			if err := r.Sweep(context.Background()); err != nil {
				t.Errorf("sweep: %v", err)
			}
			r.close()
		})
	}
}

// outOfService expects a partition to take nothing and to say why.
func (r *rig) outOfService(p store.Partition, want string, readable bool) {
	r.t.Helper()
	ctx := context.Background()
	refused := func(what string, err error) {
		r.t.Helper()
		if store.CodeOf(err) != store.CodeRecordsDamaged || !strings.Contains(err.Error(), want) {
			r.t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	refused("append", r.refused(app(p, 2, 0, 6, 1), store.CodeRecordsDamaged))
	refused("plain append", r.refused(store.Append{Partition: p, Batch: texts("x", 1)}, store.CodeRecordsDamaged))
	_, err := r.Roll(ctx, p)
	refused("roll", err)
	_, err = r.Trim(ctx, p, 1)
	refused("trim", err)
	_, err = r.TakeSnapshots(ctx, store.SnapshotFilter{Topic: p.Topic, Partition: &p.Number})
	refused("snapshot", err)
	_, err = r.PartitionProducer(ctx, p, 2)
	refused("producer", err)
	_, err = r.PartitionProducers(ctx, p, -1, 10)
	refused("producers", err)
	refused("expire", r.ExpireProducer(ctx, p, 2))
	refused("wait", r.Wait(ctx, p, 1000))
	_, err = r.Read(ctx, store.Read{Partition: p, Offset: 1000, MaxRecords: 1, MaxBytes: 1})
	refused("read at the end", err)
	got, err := r.Read(ctx, store.Read{Partition: p, Offset: 0, MaxRecords: 1, MaxBytes: 1})
	if readable && (err != nil || len(got.Batches) != 1) {
		r.t.Errorf("what is whole cannot be read: %v", err)
	}
	if !readable {
		refused("read", err)
	}
	info, err := r.Partition(ctx, p)
	if err != nil || !strings.Contains(info.Damage, want) {
		r.t.Errorf("partition: %+v, %v", info, err)
	}
	if n := r.Stats().OutOfService; n != 1 {
		r.t.Errorf("%d partitions out of service", n)
	}
	if err := r.Ready(); err != nil {
		r.t.Errorf("ready: %v", err)
	}
	if !strings.Contains(r.log.String(), "a partition is out of service") {
		r.t.Error("the log says nothing")
	}
}

// expectServing expects a partition with history to go on, and its producer a too.
func expectServing(r *rig, p store.Partition, a int64) {
	r.t.Helper()
	ctx := context.Background()
	b := bounds(r, p)
	st, err := r.PartitionProducer(ctx, p, a)
	if err != nil {
		r.t.Fatal(err)
	}
	r.must(app(p, a, 0, st.State.NextSeq(), 1), b.HighWatermark)
	if _, err := readTexts(r.Store, p); err != nil {
		r.t.Errorf("read: %v", err)
	}
	if _, err := r.Roll(ctx, p); err != nil {
		r.t.Errorf("roll: %v", err)
	}
	if _, err := r.TakeSnapshots(ctx, store.SnapshotFilter{}); err != nil {
		r.t.Errorf("snapshots: %v", err)
	}
	if list, err := r.Producers(ctx, -1, 10); err != nil || len(list) == 0 {
		r.t.Errorf("producers: %v", err)
	}
	if _, err := r.Producer(ctx, a); err != nil {
		r.t.Errorf("producer: %v", err)
	}
	if err := r.Sweep(ctx); err != nil {
		r.t.Errorf("sweep: %v", err)
	}
}

// TestDamagedTopic expects a topic whose row is damaged to be out of service, the others
// to go on, and no topic to be made that might be the lost one.
func TestDamagedTopic(t *testing.T) {
	for name, spoil := range map[string]func(*bbolt.Tx) error{
		"flipped": spoil(bolt.BucketTopics, false, flip(11)),
		"gone":    spoil(bolt.BucketTopics, false, gone),
		"renamed": move(bolt.BucketTopics),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bolt.Options{})
			ill, well := r.topic("ill", nil), r.topic("well", nil)
			if name == "renamed" {
				ill, well = well, ill
			}
			a, _ := history(r, well)
			history(r, ill)
			r.crash()
			if err := bolt.Edit(r.dir, spoil); err != nil {
				t.Fatal(err)
			}
			if rep, err := bolt.Check(r.dir, nil); err != nil || len(rep.Problems) == 0 {
				t.Errorf("check: %q, %v", rep.Problems, err)
			}
			r.open()
			expectServing(r, well, a)
			want := store.CodeUnknownTopic
			if name == "flipped" {
				want = store.CodeRecordsDamaged
			}
			r.refused(app(ill, a, 0, 0, 1), want)
			for _, name := range []string{ill.Topic, "another"} {
				if _, err := r.CreateTopic(context.Background(), name, 1, store.DefaultConfig()); store.CodeOf(err) != store.CodeRecordsDamaged {
					t.Errorf("create topic %s: %v", name, err)
				}
			}
			if n := r.Stats().OutOfService; n != 1 {
				t.Errorf("%d out of service", n)
			}
			r.close()
		})
	}
}

// TestDamagedNumbers expects no producer id and no partition number to be given twice
// because the mark that says which ones have been was damaged.
func TestDamagedNumbers(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	a, _ := history(r, p)
	r.crash()
	for _, key := range [][]byte{bolt.KeyPIDMark, bolt.KeyNextUID} {
		err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
			v := tx.Bucket(bolt.BucketMeta).Get(key)
			return tx.Bucket(bolt.BucketMeta).Put(key, flip(6)(append([]byte(nil), v...)))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	rep, err := bolt.Check(r.dir, nil)
	if got := strings.Join(rep.Problems, "\n"); err != nil || !strings.Contains(got, "mark of producer ids") || !strings.Contains(got, "number of the next partition") {
		t.Errorf("check: %q, %v", got, err)
	}
	for range 2 {
		r.open()
		expectServing(r, p, a)
		if _, err := r.AllocateProducer(context.Background(), ""); store.CodeOf(err) != store.CodeProducersExhausted {
			t.Errorf("allocate: %v", err)
		}
		if _, err := r.CreateTopic(context.Background(), "u", 1, store.DefaultConfig()); store.CodeOf(err) != store.CodeRecordsDamaged {
			t.Errorf("create topic: %v", err)
		}
		r.close()
	}
}

// TestKeysOutOfOrder: a search that goes from partition to partition ends, though a damaged
// page leads it back to where it was.
func TestKeysOutOfOrder(t *testing.T) {
	r := newRig(t, bolt.Options{})
	if _, err := r.CreateTopic(context.Background(), "t", 300, store.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	r.close()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		var err error
		for uid := range uint64(300) { // so that a search for the next one ends between two pages
			if uid%3 > 0 {
				err = errors.Join(err, tx.Bucket(bolt.BucketPartitions).Delete(binary.BigEndian.AppendUint64(nil, uid)))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.dir, "oncelog.db")
	file := inUse(t, path)
	changed := 0
	for at := 2 * damagePage; at < len(file); at += damagePage {
		page := file[at : at+damagePage]
		const leaf, header, element = 2, 16, 16
		if binary.NativeEndian.Uint16(page[8:]) != leaf || binary.NativeEndian.Uint16(page[10:]) < 2 {
			continue
		}
		first := page[header : header+element]
		pos, size := binary.NativeEndian.Uint32(first[4:]), binary.NativeEndian.Uint32(first[8:])
		if size != 8 { // not the key of a partition
			continue
		}
		key := page[header+pos:][:8]
		if uid := binary.BigEndian.Uint64(key); uid > 3 && uid <= 300 {
			binary.BigEndian.PutUint64(key, 1)
			changed++
		}
	}
	if changed == 0 {
		t.Fatal("no page begins with a partition behind the first ones")
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	rep, err := bolt.Check(r.dir, nil)
	if err != nil || !strings.Contains(strings.Join(rep.Problems, "\n"), "out of order") {
		t.Errorf("%v, problems %q", err, rep.Problems)
	}
}

// TestRandomDamage damages a store in a random place and way: flipped bits, torn pages,
// zeroed ones, pages that have changed places, pages as they were before, a lost end.
// Check must find whatever makes a difference. The engine must not start or must start;
// what it then gives of a record is what was stored or an error, and partitions that it
// holds to be well go on.
func TestRandomDamage(t *testing.T) { testRandomDamage(t, *damageRounds, false) }

// TestRandomDamageInTail is TestRandomDamage with the newest batches in the tail.
func TestRandomDamageInTail(t *testing.T) { testRandomDamage(t, *damageRounds/4, true) }

func testRandomDamage(t *testing.T, rounds int, tail bool) {
	t.Helper()
	seed := *damageSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-damage.seed %d", seed)
	d := newDamageStore(t, tail)
	rnd := rand.New(rand.NewPCG(seed, 0))
	counts := map[string]int{}
	for round := range rounds {
		kind, file := d.damage(rnd)
		if strings.HasPrefix(kind, "nothing") {
			continue
		}
		counts["damages"]++
		d.examine(t, fmt.Sprintf("round %d, %s", round, kind), file, counts)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d damages: %d found by check, %d where nothing is stored; the engine refused %d, started with %d partitions and topics out of service, and took no writes any more after %d; %d batches read as they were, %d reads refused",
		counts["damages"], counts["found"], counts["harmless"], counts["refused"], counts["out"], counts["failed"], counts["whole"], counts["unread"])
}

// damageStore is a store to be damaged, as it is and as it was at an earlier time.
type damageStore struct {
	dir        string
	opts       bolt.Options
	file, old  []byte
	partitions map[store.Partition]*damagePartition
}

// damagePartition is what lies in a partition.
type damagePartition struct {
	store.Bounds
	batches map[int64]string // by offset
	pid     int64
	next    int64
}

const damagePage = 4096

func newDamageStore(t *testing.T, tail bool) *damageStore {
	t.Helper()
	opts := bolt.Options{DiskReserve: -1, RetentionInterval: time.Hour}
	if tail {
		opts = bolt.WithTail(opts)
	}
	r := newRig(t, opts)
	d := &damageStore{dir: shm(t), opts: opts, partitions: map[store.Partition]*damagePartition{}}
	ctx := context.Background()
	for _, name := range []string{"alpha", "beta"} {
		c := store.DefaultConfig()
		c.SegmentBytes = 16 << 10
		if _, err := r.CreateTopic(ctx, name, 2, c); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(upto int64) {
		for _, name := range []string{"alpha", "beta"} {
			for n := range 2 {
				d.fill(r, store.Partition{Topic: name, Number: n}, upto)
			}
		}
	}
	path := filepath.Join(r.dir, "oncelog.db")
	fill(40)
	r.crash()
	d.old = inUse(t, path)
	r.open()
	fill(60)
	if _, err := r.Trim(ctx, store.Partition{Topic: "beta"}, 20); err != nil {
		t.Fatal(err)
	}
	if err := r.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	d.partitions[store.Partition{Topic: "beta"}].Earliest = 20
	if tail {
		scratch := r.topic("scratch", nil)
		fill(80)
		for range 10 { // the expiry at the end has settled the others
			for p, dp := range d.partitions {
				d.put(r, p, app(p, dp.pid, 0, dp.next, 1))
				dp.next++
			}
		}
		r.must(app(scratch, 0, 0, 0, 1), 0) // or a damaged meta page would lose a batch of ours
		r.crash()
	} else {
		r.close()
	}
	r.check()
	d.file = inUse(t, path)
	return d
}

// inUse reads the part of a file that is in use.
func inUse(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := bolt.PagesInUse(f)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n*damagePage]
}

// shm is a directory in memory, where there is one.
func shm(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "oncelog-damage-") //nolint:usetesting // a temporary directory of the test lies on the disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// fill appends to a partition up to a sequence, and lets a producer expire.
func (d *damageStore) fill(r *rig, p store.Partition, upto int64) {
	r.t.Helper()
	dp := d.partitions[p]
	if dp == nil {
		dp = &damagePartition{batches: map[int64]string{}, pid: r.pid()}
		d.partitions[p] = dp
	}
	for ; dp.next < upto; dp.next += 2 {
		d.put(r, p, app(p, dp.pid, 0, dp.next, 2))
	}
	other := r.pid()
	d.put(r, p, app(p, other, 0, 0, 1))
	if err := r.ExpireProducer(context.Background(), p, other); err != nil {
		r.t.Fatal(err)
	}
	d.put(r, p, app(p, dp.pid, 0, dp.next, 1))
	dp.next++
}

// put appends a batch and notes it.
func (d *damageStore) put(r *rig, p store.Partition, a store.Append) {
	r.t.Helper()
	dp := d.partitions[p]
	if p.Number == 0 && dp.HighWatermark%7 == 0 {
		a.Batch = texts(strings.Repeat(fmt.Sprintf("long %d ", dp.HighWatermark), 900), int(a.Batch.Count))
	}
	r.must(a, dp.HighWatermark)
	dp.batches[dp.HighWatermark] = string(a.Batch.Bytes)
	dp.HighWatermark += int64(a.Batch.Count)
}

// damage makes a damaged file. That it is not damaged after all is told.
func (d *damageStore) damage(rnd *rand.Rand) (kind string, file []byte) {
	file = append([]byte(nil), d.file...)
	pages := len(file) / damagePage
	page := func(n int) []byte { return file[n*damagePage : (n+1)*damagePage] }
	n := rnd.IntN(pages)
	switch rnd.IntN(8) {
	default:
		bit := rnd.IntN(8 * len(file))
		kind = fmt.Sprintf("bit %d flipped", bit)
		file[bit/8] ^= 1 << (bit % 8)
	case 1: // in the head of a page, where it hurts most
		bit := rnd.IntN(8 * 64)
		kind = fmt.Sprintf("bit %d of page %d flipped", bit, n)
		page(n)[bit/8] ^= 1 << (bit % 8)
	case 2:
		from, to := rnd.IntN(damagePage), rnd.IntN(damagePage)
		kind = fmt.Sprintf("bytes %d to %d of page %d made 0", min(from, to), max(from, to), n)
		clear(page(n)[min(from, to):max(from, to)])
	case 3:
		m := rnd.IntN(pages)
		kind = fmt.Sprintf("pages %d and %d swapped", n, m)
		was := append([]byte(nil), page(n)...)
		copy(page(n), page(m))
		copy(page(m), was)
	case 4:
		if n *= damagePage; n+damagePage <= len(d.old) {
			copy(file[n:n+damagePage], d.old[n:])
		}
		kind = fmt.Sprintf("page %d as it was before", n/damagePage)
	case 5:
		cut := 512 * (1 + rnd.IntN(7))
		kind = fmt.Sprintf("page %d torn at byte %d", n, cut)
		if at := n*damagePage + cut; n*damagePage+damagePage <= len(d.old) {
			copy(file[at:(n+1)*damagePage], d.old[at:])
		}
	case 6:
		size := rnd.IntN(len(file))
		kind = fmt.Sprintf("cut off at byte %d", size)
		return kind, file[:size]
	}
	if string(file) == string(d.file) {
		kind = "nothing: " + kind
	}
	return kind, file
}

// examine checks, opens and reads a damaged file.
func (d *damageStore) examine(t *testing.T, what string, file []byte, counts map[string]int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "oncelog.db"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	rep, err := bolt.Check(d.dir, nil)
	found := err != nil || len(rep.Problems) > 0
	if found {
		counts["found"]++
	} else {
		counts["harmless"]++
	}
	s, err := bolt.Open(d.dir, d.opts)
	if err != nil {
		counts["refused"]++
		if !found {
			t.Errorf("%s: check finds nothing and the engine says %v", what, err)
		}
		return
	}
	defer s.Close()
	out := s.Stats().OutOfService
	counts["out"] += int(out)
	wrong := int(out)
	for p, dp := range d.partitions {
		wrong += d.read(t, what, s, p, dp, counts)
	}
	for p, dp := range d.partitions {
		wrong += d.goOn(t, what, s, p, dp, counts)
	}
	if wrong > 0 && !found {
		t.Errorf("%s: check finds nothing, the engine %d faults", what, wrong)
	}
}

// read reads every batch of a partition and returns how many it does not get. What it
// gets must be what was stored.
func (d *damageStore) read(t *testing.T, what string, s *bolt.Store, p store.Partition, dp *damagePartition, counts map[string]int) (faults int) {
	t.Helper()
	ctx := context.Background()
	for offset := dp.Earliest; offset < dp.HighWatermark; offset++ {
		got, err := s.Read(ctx, store.Read{Partition: p, Offset: offset, MaxRecords: 1, MaxBytes: 1})
		switch code := store.CodeOf(err); {
		case code == store.CodeRecordsDamaged, code == store.CodeStorageFailed, code == store.CodeUnknownTopic && s.Stats().OutOfService > 0:
			counts["unread"]++
			faults++
			continue
		case err != nil || len(got.Batches) == 0:
			t.Errorf("%s: %v: read at %d: %d batches, %v", what, p, offset, len(got.Batches), err)
			return faults
		}
		sb := got.Batches[0]
		if want := dp.batches[sb.BaseOffset]; string(sb.Bytes) != want || sb.LastOffset < offset || sb.BaseOffset > offset {
			t.Errorf("%s: %v: read at %d gives a batch of %d to %d that is not what was stored", what, p, offset, sb.BaseOffset, sb.LastOffset)
		}
		counts["whole"]++
		offset = sb.LastOffset
	}
	return faults
}

// goOn expects a partition that is in service to know its producer and to take what comes
// next.
func (d *damageStore) goOn(t *testing.T, what string, s *bolt.Store, p store.Partition, dp *damagePartition, counts map[string]int) (faults int) {
	t.Helper()
	ctx := context.Background()
	info, err := s.Partition(ctx, p)
	if store.CodeOf(err) == store.CodeRecordsDamaged || store.CodeOf(err) == store.CodeUnknownTopic && s.Stats().OutOfService > 0 || info.Damage != "" {
		return 1
	}
	if err != nil || info.Earliest != dp.Earliest || info.HighWatermark != dp.HighWatermark {
		t.Errorf("%s: %v: %+v, %v; want %+v", what, p, info.Bounds, err, dp.Bounds)
		return 0
	}
	if ack, err := s.Append(ctx, app(p, dp.pid, 0, dp.next, 1)); err == nil {
		if ack.BaseOffset != dp.HighWatermark || ack.Duplicate {
			t.Errorf("%s: %v: stored at %d, not %d", what, p, ack.BaseOffset, dp.HighWatermark)
		}
		return 0
	} else if store.CodeOf(err) != store.CodeStorageFailed {
		t.Errorf("%s: %v: append: %v", what, p, err)
		return 0
	}
	counts["failed"]++ // a page that the append has to change makes no sense
	return 1
}

// TestEmptyPages: pages that say they are empty are damage, that of the list of buckets too,
// which is empty in a new file; and so is an empty key, which no read would notice.
func TestEmptyPages(t *testing.T) {
	r := newRig(t, bolt.Options{})
	if _, err := r.CreateTopic(context.Background(), "t", 300, store.DefaultConfig()); err != nil { // so that there are branches
		t.Fatal(err)
	}
	r.close()
	path := filepath.Join(r.dir, "oncelog.db")
	whole := inUse(t, path)
	for _, c := range []struct {
		name string
		flag uint16
		keys int // of the page, at least
		at   int // what is made 0: where, and how long
		size int
	}{
		{"leaf", 2, 2, 10, 2},
		{"key of a branch", 1, 2, 16 + 4, 4},
	} {
		file, changed := bytes.Clone(whole), false
		for at := 2 * damagePage; at < len(file); at += damagePage {
			page := file[at : at+damagePage]
			if binary.NativeEndian.Uint16(page[8:]) == c.flag && int(binary.NativeEndian.Uint16(page[10:])) >= c.keys {
				clear(page[c.at : c.at+c.size])
				changed = true
			}
		}
		if !changed {
			t.Fatalf("%s: there is no such page", c.name)
		}
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		if rep, err := bolt.Check(r.dir, nil); err == nil && len(rep.Problems) == 0 {
			t.Errorf("%s: check finds nothing", c.name)
		}
		if s, err := bolt.Open(r.dir, r.opts); err == nil {
			if _, err := s.Topic(context.Background(), "t"); err != nil {
				t.Errorf("%s: the store begins anew: %v", c.name, err)
			}
			s.Close()
		}
	}
}
