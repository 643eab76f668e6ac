// Package server is oncelog's HTTP gateway: it serves the contract of package openapi
// over any [store.Store].
//
// A request passes the middleware listed in routes.go and reaches a handler, which
// answers it or returns an error. Errors become problems (RFC 9457) in one place,
// problem.go, by the table in openapi; no other code writes one. What is refused has
// changed nothing, and a 2xx to an append is written only after the engine has said
// that the batch is durable.
//
// Shape comes first: a request is read and checked whole before the engine is asked
// anything. Bodies are read into memory, bounded by [Options.MaxBodyBytes] after
// decompression. Reads copy out of the engine before the first byte goes to the
// network, so that a slow client holds memory of its own, never a transaction.
//
// What bodies and answers hold at the same time is bounded by the budgets of budget.go, and
// with it the number of appends that wait for the engine. What there is no room for is
// refused before its body is read, and the answer goes out before what is left of the body
// is thrown away. A client that takes its time is cut off when others need the memory.
//
// A client that shuts down its sending side after a request counts as gone, for net/http
// cannot tell the two: it is not answered, and its append is stored or not, as when a
// connection breaks. To send the same again tells.
//
// Who may do what is decided before a handler runs, by the rule that the route has in
// rules.go; package access says who is calling.
package server

//	@title			oncelog
//	@version		1
//	@description	An HTTP gateway in front of an idempotent, partitioned log. A batch that is sent again with the same producer id, epoch and sequence is stored once and answered alike.
//	@description
//	@description	**Appending exactly once.** Take a producer id with `POST /producers`, and number your records in each partition from 0: a batch names the sequence of its first record, `baseSeq`, and the answer gives that of the next batch, `nextSeq`. Send a batch, wait for its answer, and only then number the next one.
//	@description
//	@description	**When no answer comes**, or one with `"retryable": true`, send exactly the same batch again, with the same `pid`, `epoch` and `baseSeq`, until it is answered. If it was stored the first time, the answer is a 200 with `"duplicate": true` and the offsets of that time. An answer with `"retryable": false` is final: the same request will be refused again.
//	@description
//	@description	**When a batch is missing before yours**, the answer is a 409 `out-of-order-sequence`. Send what is missing, from `expectedSeq` on, then the batch again.
//	@description
//	@description	**Epochs** are for a producer that starts again and no longer knows which batch it sent last. It goes on under the same id with an epoch one higher, and with sequences from 0. From then on batches of the old epoch are refused with `producer-fenced`, so that a process which was thought dead cannot write any more. A producer that takes a new id each time it starts needs no epochs.
//	@description
//	@description	Every error is a problem (RFC 9457) with a `code` from a closed list; each code has a page under `/problems`. A 2xx to an append means that the records are on disk. Integers are at most 2^53 − 1.
//	@BasePath		/
//	@tag.name		topics
//	@tag.description	Topics and their configuration
//	@tag.name		producers
//	@tag.description	Producer ids and what partitions know of producers
//	@tag.name		records
//	@tag.description	Appending and reading records
//	@tag.name		partitions
//	@tag.description	Partitions, their segments and batches
//	@tag.name		snapshots
//	@tag.description	Snapshots of producer state
//	@tag.name		service
//	@tag.description	The server itself
