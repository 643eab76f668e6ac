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
// was opened.
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
}
