package bolt_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

func (r *rig) pidOf(owner string) int64 {
	r.t.Helper()
	p, err := r.AllocateProducer(context.Background(), owner)
	if err != nil {
		r.t.Fatal(err)
	}
	return p.ID
}

// owners reads the rows of the closed directory, by key and value; nil when there is no
// such bucket.
func (r *rig) owners() (rows map[string]string) {
	r.t.Helper()
	err := bolt.Edit(r.dir, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bolt.BucketOwners)
		if b == nil {
			return nil
		}
		rows = map[string]string{}
		return b.ForEach(func(k, v []byte) error {
			rows[string(k)] = string(v)
			return nil
		})
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

// TestWithoutOwnersNothingChanges: ids without an owner leave no trace in the file, over
// as many restarts and blocks as may be.
func TestWithoutOwnersNothingChanges(t *testing.T) {
	r := newRig(t, bolt.Options{})
	for i := range 4 {
		for range store.ProducerBlockSize + 1 {
			r.pid()
		}
		if i%2 == 0 {
			r.crash()
		} else {
			r.close()
		}
		if rows := r.owners(); rows != nil {
			t.Fatalf("round %d left %q", i, rows)
		}
		r.check()
		r.open()
	}
	r.close()
}

// TestOwnersAreCompact: a thousand ids cost one row and one commit, and a clean restart
// goes on within the block.
func TestOwnersAreCompact(t *testing.T) {
	r := newRig(t, bolt.Options{})
	r.pid()
	before := r.Stats().Commits
	first := r.pidOf("alice")
	for i := range int64(store.ProducerBlockSize - 2) {
		if got := r.pidOf("alice"); got != first+i+1 {
			t.Fatalf("id %d after %d", got, first+i)
		}
	}
	if n := r.Stats().Commits - before; n != 1 {
		t.Errorf("%d commits for %d ids", n, store.ProducerBlockSize-1)
	}
	for round := range 3 {
		r.close()
		want := 2 // the block of alice, and what is left of the one without an owner
		if rows := r.owners(); len(rows) != want {
			t.Fatalf("round %d: %d rows, want %d: %q", round, len(rows), want, rows)
		}
		r.check()
		r.open()
		if got := r.pid(); got != int64(round+1) {
			t.Fatalf("round %d: id %d without an owner, want %d", round, got, round+1)
		}
	}
	if got, want := r.pidOf("alice"), first+store.ProducerBlockSize-1; got != want {
		t.Errorf("after restarts alice gets %d, want %d", got, want)
	}
	r.crash()
	r.check()
	r.open()
	// What the blocks in use lost counts as given away, to their owners.
	for id, want := range map[int64]string{4: "", first + 5: "alice"} {
		if got, err := r.ProducerOwner(t.Context(), id); err != nil || got != want {
			t.Errorf("after a crash producer %d belongs to %q, %v; want %q", id, got, err, want)
		}
	}
	if got := r.pid(); got <= first {
		t.Errorf("after a crash the id %d was given away again", got)
	}
	r.close()
	r.check()
}

// TestLeftoverIsReservedAgain: what a clean shutdown left is used by the next start, and
// by that one only. It must not be there for a third one when the second was killed.
func TestLeftoverIsReservedAgain(t *testing.T) {
	r := newRig(t, bolt.Options{})
	seen := map[int64]bool{}
	for round := range 6 {
		for _, owner := range []string{"", "alice"} {
			id := r.pidOf(owner)
			if seen[id] {
				t.Fatalf("round %d: id %d was given away twice", round, id)
			}
			seen[id] = true
		}
		if round%2 == 0 {
			r.close()
		} else {
			r.crash()
		}
		r.check()
		r.open()
	}
	r.close()
}

// TestOwnersShareACommit: those who wait at the same time wait for one transaction.
func TestOwnersShareACommit(t *testing.T) {
	r := newRig(t, bolt.Options{})
	release := r.Block()
	before := r.Stats().Commits
	const owners = 200
	var wg sync.WaitGroup
	for i := range owners {
		wg.Go(func() {
			if _, err := r.AllocateProducer(context.Background(), fmt.Sprintf("owner %d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	for r.PIDsWaiting() < owners { // no signal tells of the last one
		if t.Context().Err() != nil {
			t.Fatal("they do not come")
		}
	}
	release()
	wg.Wait()
	if n := r.Stats().Commits - before; n != 1 {
		t.Errorf("%d commits for %d owners", n, owners)
	}
	r.close()
	r.check()
}

// TestAllocationGivenUp: a caller who gives up does not hold up those who wait with it.
func TestAllocationGivenUp(t *testing.T) {
	r := newRig(t, bolt.Options{})
	gone, cancel := context.WithCancel(t.Context())
	release := r.Block()
	given := make(chan error, 1)
	go func() {
		_, err := r.AllocateProducer(gone, "alice")
		given <- err
	}()
	for r.PIDsWaiting() < 1 {
		if t.Context().Err() != nil {
			t.Fatal("it does not come")
		}
	}
	cancel()
	if err := <-given; err == nil {
		t.Fatal("it did not give up")
	}
	release()
	if id := r.pidOf("alice"); id != 0 {
		t.Errorf("id %d, want the first of the block that was reserved", id)
	}
	r.close()
	r.check()
}

// TestDamagedOwner: ids whose owner cannot be read are kept from everybody, others go on,
// and check says so.
func TestDamagedOwner(t *testing.T) {
	r := newRig(t, bolt.Options{})
	p := r.topic("t", nil)
	alice, bob, none := r.pidOf("alice"), r.pidOf("bob"), r.pid()
	r.crash()
	if err := bolt.Edit(r.dir, spoil(bolt.BucketOwners, false, flip(-6))); err != nil {
		t.Fatal(err)
	}
	rep, err := bolt.Check(r.dir, nil)
	if err != nil || !strings.Contains(strings.Join(rep.Problems, "\n"), "damaged row of an owner") {
		t.Fatalf("check: %+v, %v", rep, err)
	}
	r.open()
	if !strings.Contains(r.log.String(), "nobody may use them") {
		t.Errorf("the log says nothing: %s", r.log)
	}
	for pid, principals := range map[int64][]string{alice: {"", "alice", "bob", "alicd"}, bob: {"", "alice"}, none: {"alice", "bob"}} {
		for _, who := range principals {
			a := app(p, pid, 0, 0, 1)
			a.Principal = who
			r.refused(a, store.CodeForbidden)
		}
	}
	a := app(p, bob, 0, 0, 1)
	a.Principal = "bob"
	if _, err := r.Append(t.Context(), a); err != nil {
		t.Error(err)
	}
	if _, err := r.Append(t.Context(), app(p, none, 0, 0, 1)); err != nil {
		t.Error(err)
	}
	if got := r.pidOf("alice"); got < store.ProducerBlockSize {
		t.Errorf("alice gets id %d of the damaged block", got)
	}
	r.close()
}

// TestCheckOwners: blocks that overlap or go beyond the mark are found.
func TestCheckOwners(t *testing.T) {
	cases := map[string]struct {
		edit func(tx *bbolt.Tx) error
		want string
	}{
		"mark": {func(tx *bbolt.Tx) error {
			return bolt.Reseal(tx.Bucket(bolt.BucketMeta), bolt.KeyPIDMark, []byte{0, 0, 0, 0, 0, 0, 3, 232})
		}, "beyond the mark 1000"},
		"overlap": {func(tx *bbolt.Tx) error {
			return bolt.PutOwner(tx, "mallory", 500, 1500)
		}, "begins within the one before"},
		"moved": {func(tx *bbolt.Tx) error {
			b := tx.Bucket(bolt.BucketOwners)
			k, v := b.Cursor().Last()
			v = append([]byte(nil), v...)
			if err := b.Delete(k); err != nil {
				return err
			}
			return b.Put([]byte{0, 0, 0, 0, 0, 0, 3, 233}, v)
		}, "damaged row of an owner"},
		"no owner": {func(tx *bbolt.Tx) error {
			return bolt.PutOwner(tx, "", 1000, 2000)
		}, "needs no row"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bolt.Options{})
			r.pidOf("alice")
			r.pidOf("bob")
			r.crash()
			r.check()
			if err := bolt.Edit(r.dir, c.edit); err != nil {
				t.Fatal(err)
			}
			rep, err := bolt.Check(r.dir, nil)
			if err != nil || !strings.Contains(strings.Join(rep.Problems, "\n"), c.want) {
				t.Errorf("problems %q, %v; want one with %q", rep.Problems, err, c.want)
			}
		})
	}
}

// TestAdmitIsFree: the check of an append's owner allocates nothing, with however many
// blocks there are.
func TestAdmitIsFree(t *testing.T) {
	r := newRig(t, bolt.Options{RetentionInterval: time.Hour}) // nobody else allocates
	none := r.pid()
	var last int64
	for i := range 50 {
		last = r.pidOf(fmt.Sprintf("owner %d", i))
	}
	for pid, who := range map[int64]string{none: "", last: "owner 49"} {
		if n := testing.AllocsPerRun(100, func() {
			if err := r.Admit(pid, who); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("producer %d: %v allocations", pid, n)
		}
	}
	r.close()
}

// FuzzOwner: a row is refused or understood in full, and no byte of it is idle.
func FuzzOwner(f *testing.F) {
	for _, owner := range []string{"", "alice", "spiffe://x/y"} {
		key, row := bolt.EncodeOwner(owner, 1000, 2000, 1500)
		f.Add(key, row)
	}
	f.Fuzz(func(t *testing.T, key, row []byte) {
		again, ok := bolt.RecodeOwner(key, row)
		if !ok {
			return
		}
		if string(again) != string(row) {
			t.Fatalf("%x becomes %x", row, again)
		}
		for i := range row {
			row[i] ^= 1
			if _, ok := bolt.RecodeOwner(key, row); ok {
				t.Errorf("a flipped bit in byte %d goes unnoticed", i)
			}
			row[i] ^= 1
		}
	})
}
