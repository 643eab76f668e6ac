package storetest

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

func testProducers(t *testing.T, f Factory) {
	t.Run("ids", func(t *testing.T) { producerIDs(newEnv(t, f)) })
	t.Run("list", func(t *testing.T) { producerLists(newEnv(t, f)) })
	t.Run("summary", func(t *testing.T) { producerSummary(newEnv(t, f)) })
	t.Run("newest", func(t *testing.T) { producerNewest(newEnv(t, f)) })
	t.Run("recent", func(t *testing.T) { producersRecent(newEnv(t, f)) })
	t.Run("visit", func(t *testing.T) { producersVisit(newEnv(t, f)) })
	t.Run("unknown", func(t *testing.T) { producerUnknown(newEnv(t, f)) })
	t.Run("counters", func(t *testing.T) { producerCounters(newEnv(t, f)) })
}

func unixMilli(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func producerIDs(e *env) {
	last := int64(-1)
	for range 2*store.ProducerBlockSize + 1 {
		p, err := e.AllocateProducer(e.ctx, "")
		if err != nil || p.ID <= last || p.Epoch != 0 {
			e.t.Fatalf("id %+v after %d, %v", p, last, err)
		}
		last = p.ID
	}
}

// producerLists: paging by id, live producers only, per partition and over all.
func producerLists(e *env) {
	p, q := e.topic(), e.topic()
	var pids []int64
	for i := range int64(7) {
		pids = append(pids, e.pid())
		e.stored(seq(p, pids[i], 0, 0, 1), i)
	}
	e.stored(seq(q, pids[2], 0, 0, 1), 0)
	e.expire(p, pids[3])
	pids = append(pids[:3], pids[4:]...)
	for limit := 1; limit <= 7; limit++ {
		var here, everywhere []int64
		for after := int64(-1); ; {
			page, err := e.PartitionProducers(e.ctx, p, after, limit)
			if err != nil || len(page) > limit {
				e.t.Fatalf("page of %d after %d: %+v, %v", limit, after, page, err)
			}
			if len(page) == 0 {
				break
			}
			for _, s := range page {
				here = append(here, s.ID)
				if got := e.state(p, s.ID); got.State != s.State || got.Partition != p || !sameTime(got.ExpiresAt, s.ExpiresAt) {
					e.t.Errorf("listed as %+v, alone %+v", s, got)
				}
			}
			after = page[len(page)-1].ID
		}
		for after := int64(-1); ; {
			page, err := e.Producers(e.ctx, after, limit)
			if err != nil || len(page) > limit {
				e.t.Fatalf("page of %d after %d: %+v, %v", limit, after, page, err)
			}
			if len(page) == 0 {
				break
			}
			for _, s := range page {
				everywhere = append(everywhere, s.ID)
			}
			after = page[len(page)-1].ID
		}
		if !sameIDs(here, pids) || !sameIDs(everywhere, pids) {
			e.t.Errorf("by pages of %d: %v and %v, want %v", limit, here, everywhere, pids)
		}
	}
}

func sameIDs(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// producerSummary: one producer over the partitions that know it.
func producerSummary(e *env) {
	e.named("b", 2)
	p, q := store.Partition{Topic: "b"}, store.Partition{Topic: "b", Number: 1}
	r := e.named("a", 1, func(c *store.Config) { c.ProducerExpiryMs = 24 * 60 * 60 * 1000 })
	pid := e.pid()
	e.stored(seq(q, pid, 7, 0, 1), 0)
	e.clock.Add(time.Minute)
	last := e.stored(seq(p, pid, 2, 0, 2), 0)
	e.duplicate(seq(p, pid, 2, 0, 2), 0)
	e.clock.Add(-time.Second)
	e.stored(seq(r, pid, 0, 0, 3), 0)

	states, err := e.Producer(e.ctx, pid)
	if err != nil || len(states) != 3 || states[0].Partition != r || states[1].Partition != p || states[2].Partition != q {
		e.t.Fatalf("producer: %+v, %v", states, err)
	}
	for _, s := range states {
		if want := e.state(s.Partition, pid); s.State != want.State || s.ID != pid {
			e.t.Errorf("state %+v, want %+v", s, want)
		}
	}
	all, err := e.Producers(e.ctx, -1, 10)
	if err != nil || len(all) != 1 {
		e.t.Fatalf("producers: %+v, %v", all, err)
	}
	s := all[0]
	if s.ID != pid || s.Epoch != 7 || s.Partitions != 3 || s.Counters.Accepted != 3 || s.Counters.Duplicate != 1 {
		e.t.Errorf("summary %+v", s)
	}
	if s.LastTimestamp.Before(last.AppendedAt) || !sameTime(s.ExpiresAt, last.AppendedAt.Add(7*24*time.Hour)) {
		e.t.Errorf("last at %v, expires at %v; the last batch came at %v", s.LastTimestamp, s.ExpiresAt, last.AppendedAt)
	}
	e.expire(q, pid)
	if all, err := e.Producers(e.ctx, -1, 10); err != nil || len(all) != 1 || all[0].Partitions != 2 || all[0].Epoch != 2 {
		e.t.Errorf("after an expiry: %+v, %v", all, err)
	}
}

// producerNewest: the summary tells where a producer's newest batch ends.
func producerNewest(e *env) {
	if e.f.Traits.Records {
		e.t.Skip("the list shows it only on request")
	}
	p, q := e.topic(), e.topic()
	pid := e.pid()
	for i, where := range []store.Partition{p, q, p, q, q, p} {
		e.clock.Add(time.Second)
		n := i + 1
		base, offset := int64(0), int64(0)
		if s, err := e.PartitionProducer(e.ctx, where, pid); err == nil {
			base, offset = s.State.NextSeq(), s.State.LastOffset()+1
		}
		last := e.stored(seq(where, pid, 0, base, n), offset)
		all, err := e.Producers(e.ctx, -1, 10)
		want := store.NewestBatch{Partition: where, Seq: last.NextSeq - 1, Offset: last.LastOffset}
		if err != nil || len(all) != 1 || all[0].Newest != want {
			e.t.Errorf("after batch %d: %+v, %v; want %+v", i, all, err, want)
		}
	}
}

// producersRecent: by their newest batches, live ones only.
func producersRecent(e *env) {
	p := e.topic()
	var want []int64 // newest first
	next := map[int64]int64{}
	append1 := func(pid int64, offset int64) {
		e.stored(seq(p, pid, 0, next[pid], 1), offset)
		next[pid]++
		want = slices.DeleteFunc(want, func(id int64) bool { return id == pid })
		want = slices.Insert(want, 0, pid)
	}
	for range 6 {
		next[e.pid()] = 0
	}
	pids := slices.Sorted(maps.Keys(next))
	for i, n := range []int{0, 1, 2, 3, 4, 5, 2, 0, 2, 4} {
		append1(pids[n], int64(i))
	}
	e.duplicate(seq(p, pids[1], 0, 0, 1), 1) // changes nothing
	e.expire(p, pids[3])
	want = slices.DeleteFunc(want, func(id int64) bool { return id == pids[3] })
	for limit := range 7 {
		got, err := e.RecentProducers(e.ctx, p, limit)
		if err != nil || len(got) != min(limit, len(want)) {
			e.t.Fatalf("%d of limit %d, %v", len(got), limit, err)
		}
		for i := range got {
			if alone := e.state(p, want[i]); got[i].ID != want[i] || got[i].State.LastOffset() != alone.State.LastOffset() || got[i].Counters != alone.Counters || got[i].Partition != p {
				e.t.Errorf("at %d of limit %d: %+v, want producer %d", i, limit, got[i], want[i])
			}
		}
	}
	_, err := e.RecentProducers(e.ctx, store.Partition{Topic: p.Topic, Number: 9}, 1)
	e.coded("recent producers", err, store.CodeUnknownPartition)
}

// producersVisit: each once, by id, in sum over what is looked at.
func producersVisit(e *env) {
	a, b := e.named("a", 2), e.named("b", 1)
	a1 := store.Partition{Topic: "a", Number: 1}
	next := map[store.Partition]int64{}
	where := map[int64][]store.Partition{}
	for i := range 300 { // more than an engine takes at a time
		pid := e.pid()
		for j, p := range []store.Partition{a, a1, b} {
			if i%7 == j || i%3 == 0 {
				e.stored(seq(p, pid, int64(i), 0, 1), next[p])
				next[p]++
				where[pid] = append(where[pid], p)
			}
		}
	}
	for _, topic := range []string{"", "a", "b"} {
		last, seen := int64(-1), 0
		err := e.VisitProducers(e.ctx, topic, func(s *store.ProducerSummary) error {
			in := slices.DeleteFunc(slices.Clone(where[s.ID]), func(p store.Partition) bool { return topic != "" && p.Topic != topic })
			if s.ID <= last || s.Partitions != len(in) || s.Counters.Accepted != int64(len(in)) || !slices.Contains(in, s.Newest.Partition) {
				e.t.Errorf("in topic %q after %d: %+v, want it in %v", topic, last, s, in)
			}
			last = s.ID
			seen++
			return nil
		})
		want := 0
		for _, in := range where {
			if slices.ContainsFunc(in, func(p store.Partition) bool { return topic == "" || p.Topic == topic }) {
				want++
			}
		}
		if err != nil || seen != want {
			e.t.Errorf("topic %q: %d producers, %v; want %d", topic, seen, err, want)
		}
	}
	stop, seen := errors.New("enough"), 0
	err := e.VisitProducers(e.ctx, "", func(*store.ProducerSummary) error {
		seen++
		return stop
	})
	if !errors.Is(err, stop) || seen != 1 {
		e.t.Errorf("visit went on: %d, %v", seen, err)
	}
	err = e.VisitProducers(e.ctx, "none", func(*store.ProducerSummary) error { return nil })
	e.coded("visit", err, store.CodeUnknownTopic)
}

func producerUnknown(e *env) {
	p := e.topic()
	const never = sequence.Max
	e.refused(seq(p, never, 0, 0, 1), store.CodeUnknownProducerID)
	_, err := e.Producer(e.ctx, never)
	e.coded("producer", err, store.CodeUnknownProducerID)
	_, err = e.PartitionProducer(e.ctx, p, never)
	e.coded("state", err, store.CodeUnknownProducerID)
	e.coded("expire", e.ExpireProducer(e.ctx, p, never), store.CodeUnknownProducerID)

	pid := e.pid() // issued, but not used here
	if states, err := e.Producer(e.ctx, pid); err != nil || len(states) != 0 {
		e.t.Errorf("an unused producer: %+v, %v", states, err)
	}
	_, err = e.PartitionProducer(e.ctx, p, pid)
	e.coded("state", err, store.CodeUnknownProducerID)
	e.coded("expire", e.ExpireProducer(e.ctx, p, pid), store.CodeUnknownProducerID)
	e.stored(seq(p, pid, 0, 0, 1), 0)
}

func producerCounters(e *env) {
	p := e.topic()
	pid := e.pid()
	e.stored(seq(p, pid, 1, 0, 2), 0)
	e.stored(seq(p, pid, 1, 2, 2), 2)
	e.duplicate(seq(p, pid, 1, 0, 2), 0)
	e.duplicate(seq(p, pid, 1, 2, 2), 2)
	e.duplicate(seq(p, pid, 1, 2, 2), 2)
	for range 4 {
		e.refused(seq(p, pid, 1, 9, 1), store.CodeOutOfOrderSequence)
	}
	for range 5 {
		e.refused(seq(p, pid, 0, 4, 1), store.CodeProducerFenced)
	}
	for range 6 {
		e.reused(seqOf(p, pid, 1, 0, Batch("other", 2)), 0)
	}
	e.overlap(seq(p, pid, 1, 0, 4), 4)
	want := store.Counters{Accepted: 2, Duplicate: 3, OutOfOrder: 4, Fenced: 5, Reused: 6}
	if got := e.state(p, pid).Counters; got != want {
		e.t.Errorf("counters %+v, want %+v", got, want)
	}
}
