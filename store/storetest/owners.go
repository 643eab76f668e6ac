package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

func testOwners(t *testing.T, f Factory) {
	if f.Traits.NoOwners {
		t.Skip("the way to the engine knows no owners")
	}
	t.Run("only-the-owner", func(t *testing.T) { onlyTheOwner(newEnv(t, f)) })
	t.Run("no-trace", func(t *testing.T) { strangersLeaveNoTrace(newEnv(t, f)) })
	t.Run("order-of-checks", func(t *testing.T) { ownerOrder(newEnv(t, f)) })
	t.Run("names", func(t *testing.T) { ownerNames(newEnv(t, f)) })
	t.Run("never-issued", func(t *testing.T) { ownersNeighbours(newEnv(t, f)) })
	t.Run("many-blocks", func(t *testing.T) { ownersManyBlocks(newEnv(t, f)) })
	t.Run("concurrent", func(t *testing.T) { ownersConcurrent(newEnv(t, f)) })
	if f.Reopen == nil {
		return
	}
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart-kill-%t", kill), func(t *testing.T) { ownersRestart(newEnv(t, f), kill) })
	}
}

// as makes the append somebody's.
func as(principal string, a store.Append) store.Append {
	a.Principal = principal
	return a
}

func (e *env) pidOf(owner string) int64 {
	e.t.Helper()
	p, err := e.AllocateProducer(e.ctx, owner)
	if err != nil {
		e.t.Fatalf("allocate a producer for %q: %v", owner, err)
	}
	return p.ID
}

func (e *env) owner(pid int64, want string) {
	e.t.Helper()
	if got, err := e.ProducerOwner(e.ctx, pid); err != nil || got != want {
		e.t.Fatalf("producer %d belongs to %q, %v; want %q", pid, got, err, want)
	}
}

// onlyTheOwner: nobody else can append, replay or fence, whatever the sequence.
func onlyTheOwner(e *env) {
	p := e.topic()
	owners := []string{"", "alice", "bob"}
	pids := map[string]int64{}
	for _, o := range owners {
		pids[o] = e.pidOf(o)
		e.owner(pids[o], o)
	}
	next := int64(0)
	for seqNo := range int64(2) { // with no state, and with some
		for _, o := range owners {
			for _, stranger := range owners {
				if stranger == o {
					continue
				}
				for _, a := range []store.Append{
					seq(p, pids[o], 0, seqNo, 1),   // the next batch
					seq(p, pids[o], 7, 0, 1),       // a newer epoch
					seq(p, pids[o], 0, 0, 1),       // the first batch again
					seq(p, pids[o], 0, seqNo+9, 1), // a gap
					seqOf(p, pids[o], 0, 0, Batch("other", 1)),
				} {
					e.refused(as(stranger, a), store.CodeForbidden)
				}
			}
		}
		for _, o := range owners {
			e.stored(as(o, seq(p, pids[o], 0, seqNo, 1)), next)
			e.duplicate(as(o, seq(p, pids[o], 0, seqNo, 1)), next)
			next++
		}
	}
	e.fenced(as("alice", seq(p, e.fencedPID(p, "alice", next), 0, 1, 1)), 1)
}

// fencedPID gives a producer whose owner has moved on to epoch 1.
func (e *env) fencedPID(p store.Partition, owner string, offset int64) int64 {
	e.t.Helper()
	pid := e.pidOf(owner)
	e.stored(as(owner, seq(p, pid, 0, 0, 1)), offset)
	e.stored(as(owner, seq(p, pid, 1, 0, 1)), offset+1)
	return pid
}

// strangersLeaveNoTrace: a refusal changes neither state nor counters.
func strangersLeaveNoTrace(e *env) {
	p := e.topic()
	pid := e.pidOf("alice")
	e.refused(as("bob", seq(p, pid, 0, 0, 1)), store.CodeForbidden)
	_, err := e.PartitionProducer(e.ctx, p, pid)
	e.coded("state", err, store.CodeUnknownProducerID)
	e.stored(as("alice", seq(p, pid, 0, 0, 1)), 0)
	before := e.state(p, pid)
	e.refused(as("bob", seq(p, pid, 1, 0, 1)), store.CodeForbidden)
	e.refused(as("bob", seq(p, pid, 0, 0, 1)), store.CodeForbidden)
	if after := e.state(p, pid); after != before {
		e.t.Errorf("before %+v, after %+v", before, after)
	}
	e.bounds(p, 0, 1)
	e.stored(as("bob", plain(p, "x")), 1) // without a producer id there is nothing to own
}

// ownerOrder: topic, partition, size and issue come before the owner, the rule after.
func ownerOrder(e *env) {
	p := e.topic(func(c *store.Config) { c.MaxBatchBytes = 64 })
	pid := e.pidOf("alice")
	e.refused(as("bob", seq(store.Partition{Topic: "nowhere"}, pid, 0, 0, 1)), store.CodeUnknownTopic)
	e.refused(as("bob", seq(store.Partition{Topic: p.Topic, Number: 1}, pid, 0, 0, 1)), store.CodeUnknownPartition)
	e.refused(as("bob", seq(p, pid, 0, 0, 64)), store.CodeTooLarge)
	e.refused(as("bob", seq(p, sequence.Max, 0, 0, 1)), store.CodeUnknownProducerID)
	e.stored(as("alice", seq(p, pid, 1, 0, 1)), 0)
	e.refused(as("bob", seq(p, pid, 0, 0, 1)), store.CodeForbidden) // would be fenced
	e.expire(p, pid)
	e.refused(as("bob", seq(p, pid, 1, 1, 1)), store.CodeForbidden) // would be expired
	e.refused(as("bob", seq(p, pid, 2, 0, 1)), store.CodeForbidden)
	e.stored(as("alice", seq(p, pid, 2, 0, 1)), 1)
}

func ownerNames(e *env) {
	long := string(make([]byte, store.MaxOwner+1))
	for _, bad := range []string{long, "\x00", "a\nb", "\xff", "\u202e"} {
		_, err := e.AllocateProducer(e.ctx, bad)
		e.coded(fmt.Sprintf("owner %q", bad), err, store.CodeInvalidArgument)
	}
	var name [store.MaxOwner]byte
	for i := range name {
		name[i] = 'x'
	}
	for _, good := range []string{string(name[:]), "CN=a b,O=ü", "spiffe://x/y"} {
		e.owner(e.pidOf(good), good)
	}
	_, err := e.ProducerOwner(e.ctx, sequence.Max)
	e.coded("owner", err, store.CodeUnknownProducerID)
	_, err = e.ProducerOwner(e.ctx, -1)
	e.coded("owner", err, store.CodeUnknownProducerID)
}

// ownersNeighbours: ids that lie between those of several owners, and were given to
// nobody, are nobody's.
func ownersNeighbours(e *env) {
	p := e.topic()
	issued := map[int64]string{}
	highest := int64(0)
	for range 3 {
		for _, o := range []string{"alice", "", "bob"} {
			pid := e.pidOf(o)
			if _, twice := issued[pid]; twice {
				e.t.Fatalf("id %d was given away twice", pid)
			}
			issued[pid] = o
			highest = max(highest, pid)
		}
	}
	for pid := range highest + store.ProducerBlockSize + 2 {
		o, ok := issued[pid]
		if ok {
			e.owner(pid, o)
			continue
		}
		_, err := e.ProducerOwner(e.ctx, pid)
		e.coded(fmt.Sprintf("owner of %d", pid), err, store.CodeUnknownProducerID)
		if pid%100 == 99 {
			for _, o := range []string{"alice", "", "bob"} {
				e.refused(as(o, seq(p, pid, 0, 0, 1)), store.CodeUnknownProducerID)
			}
		}
	}
}

func ownersManyBlocks(e *env) {
	owners := []string{"alice", "", "bob"}
	issued := map[int64]string{}
	last := map[string]int64{"alice": -1, "": -1, "bob": -1}
	for i := range 3*store.ProducerBlockSize + 5 {
		o := owners[i%len(owners)]
		pid := e.pidOf(o)
		if _, twice := issued[pid]; twice || pid <= last[o] {
			e.t.Fatalf("%q got id %d after %d, twice: %t", o, pid, last[o], twice)
		}
		issued[pid], last[o] = o, pid
	}
	for pid, o := range issued {
		e.owner(pid, o)
	}
}

// ownersConcurrent: many owners at once, each of them many times.
func ownersConcurrent(e *env) {
	var mu sync.Mutex
	issued := map[int64]string{}
	var wg sync.WaitGroup
	for i := range 32 {
		o := fmt.Sprintf("owner %d", i%16)
		wg.Go(func() {
			for range 20 {
				p, err := e.AllocateProducer(e.ctx, o)
				mu.Lock()
				if _, twice := issued[p.ID]; twice || err != nil {
					e.t.Errorf("id %d, given before: %v, %v", p.ID, twice, err)
				}
				issued[p.ID] = o
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for pid, o := range issued {
		e.owner(pid, o)
	}
}

// ownersRestart: whose an id is outlives every restart, and none is given away again.
func ownersRestart(e *env, kill bool) {
	p := e.topic()
	owners := []string{"alice", "", "bob", "carol"}
	issued := map[int64]string{}
	check := func() {
		for pid, o := range issued {
			e.owner(pid, o)
		}
	}
	next := int64(0)
	for round := range 5 {
		for i, o := range owners {
			if (round+i)%3 == 0 {
				continue // so that some leave their block as the start before left it
			}
			for range 3 {
				pid := e.pidOf(o)
				if _, twice := issued[pid]; twice {
					e.t.Fatalf("id %d was given away twice", pid)
				}
				issued[pid] = o
				e.refused(as("mallory", seq(p, pid, 0, 0, 1)), store.CodeForbidden)
				e.stored(as(o, seq(p, pid, 0, 0, 1)), next)
				next++
			}
		}
		check()
		e.restart(kill)
		check()
		for pid, o := range issued {
			e.refused(as("mallory", seq(p, pid, 1, 0, 1)), store.CodeForbidden)
			e.duplicateOf(as(o, seq(p, pid, 0, 0, 1)))
		}
	}
}

// duplicateOf appends and expects to hear that the batch is stored, wherever.
func (e *env) duplicateOf(a store.Append) {
	e.t.Helper()
	if ack, err := e.Append(e.ctx, a); err != nil || !ack.Duplicate {
		e.t.Fatalf("append %s: %+v, %v; want a duplicate", show(a), ack, err)
	}
}
