// Package bolt is the embedded storage engine: one bbolt file, one committer.
//
// # How an append becomes durable
//
// Aim: as many appends as possible share one transaction, whose two fsyncs cost far
// more than anything else; nobody learns anything of an append before they are done;
// and an append that is refused neither costs a write nor disturbs its neighbours.
//
// [Store.Append] checks what needs no order (topic, size, issued id), puts a request
// into a bounded queue and waits. A single goroutine, the committer, takes whatever
// waits in the queue as one group and judges each request in turn against the state
// that the group has come to so far: committed state, overlaid by what the group has
// staged. What the rule accepts is staged, what it refuses is answered. Then it writes
// the staged batches in one transaction, and only when that is durable publishes
// offsets and producer states under the partition's lock, wakes readers, and answers.
//
// Invariants:
//
//   - only the committer changes partitions, producers and topics, so judging needs
//     no lock and replay order is commit order;
//   - an answer that depends on something staged in the group, be it a duplicate of a
//     staged batch or a refusal, waits for the commit like the batch itself. All other
//     answers go out at once;
//   - if the transaction fails, the overlay is dropped and everybody whose answer
//     depended on it gets the failure. Unless the failure is known to have left the
//     file as it was (no space), the engine takes no more writes: after a failed fsync
//     nobody can say what is on disk (PostgreSQL's "fsyncgate").
//
// bbolt's own DB.Batch was rejected: it runs functions again when a neighbour fails,
// waits 10 ms for company, and knows no answers without a write.
//
// Where a group touches many partitions, its batches go to one place at first, in order of
// arrival, and a thousand of them later to where they belong (tail.go).
//
// Everything else that changes the store (topics, trims, snapshots, id blocks,
// retention) runs as a control function on the committer between two groups, each in
// a transaction of its own.
//
// # A million producers
//
// Nothing that happens all the time walks over all producers of a partition (dedup.go);
// a snapshot of many is taken in steps between the groups (capture.go). SPEED.md has
// figures, and what was tried.
//
// # What is in memory
//
// Bounds, segment sizes and the producer states of each partition. Records are not:
// reads go to the file, copy what they need within a short read transaction, and
// decode after it. Of batches in the tail each partition knows where they are. FORMAT.md
// describes the file.
package bolt
