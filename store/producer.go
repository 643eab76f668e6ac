package store

import (
	"time"

	"github.com/oncelog/oncelog/store/sequence"
)

// ProducerID is a newly allocated producer.
type ProducerID struct {
	ID    int64
	Epoch int64
}

// ProducerState is what a partition knows of a live producer.
type ProducerState struct {
	Partition Partition
	ID        int64
	State     sequence.State
	ExpiresAt time.Time
	Counters  Counters
}

// Counters count what became of a producer's appends to a partition since the engine
// was opened, or the producer's state there began anew after it had expired.
type Counters struct {
	Accepted   int64
	Duplicate  int64
	OutOfOrder int64
	Fenced     int64
	Reused     int64
	Held       int64 // held until their predecessors came, or in vain
}

// Add returns the sum of both.
func (c Counters) Add(d Counters) Counters {
	return Counters{
		Accepted:   c.Accepted + d.Accepted,
		Duplicate:  c.Duplicate + d.Duplicate,
		OutOfOrder: c.OutOfOrder + d.OutOfOrder,
		Fenced:     c.Fenced + d.Fenced,
		Reused:     c.Reused + d.Reused,
		Held:       c.Held + d.Held,
	}
}

// ProducerSummary is one producer over all partitions in which it has live state.
type ProducerSummary struct {
	ID            int64
	Epoch         int64 // the highest of its partitions
	Partitions    int
	LastTimestamp time.Time
	ExpiresAt     time.Time // of the partition that remembers it longest
	Counters      Counters
	Newest        NewestBatch
}

// Add takes the state of a further partition into the summary. Of a summary that is new,
// it also sets the id.
func (p *ProducerSummary) Add(s *ProducerState) {
	p.ID = s.ID
	p.Epoch = max(p.Epoch, s.State.Epoch())
	p.Partitions++
	p.Counters = p.Counters.Add(s.Counters)
	if at := time.UnixMilli(s.State.LastTimestamp()).UTC(); at.After(p.LastTimestamp) {
		p.LastTimestamp = at
		p.Newest = NewestBatch{Partition: s.Partition, Seq: s.State.LastSeq(), Offset: s.State.LastOffset()}
	}
	if s.ExpiresAt.After(p.ExpiresAt) {
		p.ExpiresAt = s.ExpiresAt
	}
}

// NewestBatch is the end of what a producer has stored last, over all partitions.
type NewestBatch struct {
	Partition Partition
	Seq       int64
	Offset    int64
}
