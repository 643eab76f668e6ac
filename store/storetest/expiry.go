package storetest

import (
	"testing"
	"time"

	"github.com/oncelog/oncelog/store"
)

const second = 1000 // milliseconds

func testExpiry(t *testing.T, f Factory) {
	t.Run("by-hand", func(t *testing.T) { expiryByHand(newEnv(t, f)) })
	if f.Traits.RealTime {
		return
	}
	t.Run("by-time", func(t *testing.T) { expiryByTime(newEnv(t, f)) })
	t.Run("activity", func(t *testing.T) { expiryActivity(newEnv(t, f)) })
	t.Run("clock-set-back", func(t *testing.T) { expiryClockBack(newEnv(t, f)) })
	t.Run("config", func(t *testing.T) { expiryConfig(newEnv(t, f)) })
	t.Run("eviction", func(t *testing.T) {
		expiryEviction(newEnv(t, f))
	})
}

func (e *env) gone(p store.Partition, pid int64) {
	e.t.Helper()
	if i := e.partition(p); i.Producers != 0 { // the first to look since the expiry
		e.t.Fatalf("%d producers, want none", i.Producers)
	}
	_, err := e.PartitionProducer(e.ctx, p, pid)
	e.coded("state of an expired producer", err, store.CodeUnknownProducerID)
}

func expiryByHand(e *env) {
	p := e.topic()
	pid := e.pid()
	e.stored(seq(p, pid, 0, 0, 3), 0)
	e.expire(p, pid)
	e.gone(p, pid)
	e.coded("expire again", e.ExpireProducer(e.ctx, p, pid), store.CodeUnknownProducerID)
	at := e.expired(seq(p, pid, 0, 3, 1), 2, 0)
	e.clock.Add(time.Hour)
	if again := e.expired(seq(p, pid, 0, 0, 3), 2, 0); !sameTime(again, at) {
		e.t.Errorf("expired at %v, then at %v", at, again)
	}
	if states, err := e.Producer(e.ctx, pid); err != nil || len(states) != 0 {
		e.t.Errorf("producer: %+v, %v", states, err)
	}
	e.stored(seq(p, pid, 1, 0, 1), 3)
	if s := e.state(p, pid).State; s.Epoch() != 1 || s.NextSeq() != 1 {
		e.t.Errorf("state %+v", s)
	}
	e.expire(p, pid)
	e.expired(seq(p, pid, 1, 1, 1), 0, 1)
	e.expired(seq(p, pid, 0, 3, 1), 0, 1)
	e.stored(seq(p, pid, 2, 0, 1), 4)
}

func expiryByTime(e *env) {
	p := e.topic(func(c *store.Config) { c.ProducerExpiryMs = 10 * second })
	pid := e.pid()
	last := e.stored(seq(p, pid, 0, 0, 2), 0)
	e.clock.Add(10*time.Second - time.Millisecond)
	if s := e.state(p, pid); !sameTime(s.ExpiresAt, last.AppendedAt.Add(10*time.Second)) {
		e.t.Errorf("expires at %v", s.ExpiresAt)
	}
	e.duplicate(seq(p, pid, 0, 0, 2), 0)
	e.clock.Add(time.Millisecond)
	e.gone(p, pid)
	e.clock.Add(time.Hour)
	if at := e.expired(seq(p, pid, 0, 0, 2), 1, 0); !sameTime(at, last.AppendedAt.Add(10*time.Second)) {
		e.t.Errorf("expired at %v, the last batch came at %v", at, last.AppendedAt)
	}
	e.stored(seq(p, pid, 1, 0, 1), 2)

	// Nobody looks between the expiry and the next append.
	e.clock.Add(time.Hour)
	e.expired(seq(p, pid, 1, 1, 1), 0, 1)
	e.gone(p, pid)
}

// expiryActivity: a batch puts the expiry off, a duplicate or a refusal does not.
func expiryActivity(e *env) {
	p := e.topic(func(c *store.Config) { c.ProducerExpiryMs = 10 * second })
	pid := e.pid()
	for i := range int64(3) {
		e.stored(seq(p, pid, 0, i, 1), i)
		e.clock.Add(9 * time.Second)
	}
	e.duplicate(seq(p, pid, 0, 2, 1), 2)
	e.refused(seq(p, pid, 0, 9, 1), store.CodeOutOfOrderSequence)
	e.clock.Add(time.Second)
	e.expired(seq(p, pid, 0, 3, 1), 2, 0)
}

// expiryClockBack: arrival times never go back, and what has expired stays so.
func expiryClockBack(e *env) {
	p := e.topic(func(c *store.Config) { c.ProducerExpiryMs = 10 * second })
	pid, other := e.pid(), e.pid()
	first := e.stored(seq(p, pid, 0, 0, 1), 0)
	e.clock.Add(-time.Hour)
	if next := e.stored(seq(p, pid, 0, 1, 1), 1); next.AppendedAt.Before(first.AppendedAt) {
		e.t.Errorf("appended at %v, after %v", next.AppendedAt, first.AppendedAt)
	}
	e.state(p, pid)
	e.clock.Add(time.Hour + 11*time.Second)
	e.gone(p, pid)
	e.clock.Add(-time.Hour)
	e.gone(p, pid)
	e.expired(seq(p, pid, 0, 2, 1), 1, 0)
	e.stored(seq(p, other, 0, 0, 1), 2)
	e.state(p, other)
}

// expiryConfig: a new expiry time counts from the last batch, and revives nobody.
func expiryConfig(e *env) {
	p := e.topic(func(c *store.Config) { c.ProducerExpiryMs = 10 * second })
	pid, other := e.pid(), e.pid()
	e.stored(seq(p, pid, 0, 0, 1), 0)
	e.clock.Add(10 * time.Second)
	e.gone(p, pid)
	last := e.stored(seq(p, other, 0, 0, 1), 1)
	set := func(ms int64) {
		e.t.Helper()
		_, err := e.UpdateTopic(e.ctx, p.Topic, func(t store.Topic) (store.Topic, error) {
			t.Config.ProducerExpiryMs = ms
			return t, nil
		})
		if err != nil {
			e.t.Fatal(err)
		}
	}
	set(100 * second)
	e.expired(seq(p, pid, 0, 1, 1), 0, 0)
	e.clock.Add(50 * time.Second)
	if s := e.state(p, other); !sameTime(s.ExpiresAt, last.AppendedAt.Add(100*time.Second)) {
		e.t.Errorf("expires at %v", s.ExpiresAt)
	}
	set(20 * second)
	e.gone(p, other)
	e.expired(seq(p, other, 0, 1, 1), 0, 0)
}

// expiryEviction: beyond MaxProducers the one that was quiet for longest goes.
func expiryEviction(e *env) {
	p := e.topic(func(c *store.Config) { c.MaxProducers = 2 })
	a, b, c := e.pid(), e.pid(), e.pid()
	e.stored(seq(p, a, 0, 0, 1), 0)
	e.clock.Add(time.Second)
	e.stored(seq(p, b, 0, 0, 1), 1)
	e.clock.Add(time.Second)
	e.stored(seq(p, a, 0, 1, 1), 2)
	e.clock.Add(time.Second)
	e.stored(seq(p, c, 0, 0, 1), 3)
	e.expired(seq(p, b, 0, 1, 1), 0, 0)
	e.stored(seq(p, a, 0, 2, 1), 4)
	e.stored(seq(p, c, 0, 1, 1), 5)
	if i := e.partition(p); i.Producers != 2 {
		e.t.Errorf("%d producers, want 2", i.Producers)
	}
	e.stored(seq(p, b, 1, 0, 1), 6)
	e.expired(seq(p, a, 0, 3, 1), 2, 0)
}
