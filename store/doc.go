// Package store is the vocabulary of oncelog: topics, partitions, batches, producers
// and snapshots, the errors that can befall them, and the interfaces that a storage
// engine implements. It holds no storage itself. store/bolt is the embedded engine,
// store/memory the executable model; store/storetest is the suite that both pass.
//
// # Words
//
// A topic has a fixed number of partitions that may only grow. A partition is a log:
// records with offsets 0, 1, 2, … that never change. Clients append records in
// batches; a batch is stored whole or not at all. The high watermark is the offset
// below which every record is durable and visible; an embedded engine shows nothing
// above it, so it is also the offset that the next record gets. The earliest offset is
// the first that retention and trimming have left.
//
// An idempotent append names a producer id, an epoch and the sequence of its first
// record. Per partition and producer the engine remembers the last batches and judges
// each attempt by package sequence. That state outlives the records: trimming a
// partition forgets no producer. A producer that is idle for the topic's
// ProducerExpiry is replaced by a tombstone, which only a higher epoch gets past.
//
// A segment is a stretch of a partition that is deleted as a whole. A snapshot is
// producer state at an offset; recovery loads the newest one that is intact and
// replays the batch headers after it.
//
// # What every engine promises
//
// An append is answered only when it would survive loss of power. Records, offsets,
// producer state and everything else that a client could notice become visible
// together, and only then. An append that is refused or fails changes nothing.
package store
