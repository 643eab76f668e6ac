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
// Access control is not built yet: the codes unauthenticated, forbidden and
// rate-limited are in the table and are never sent.
package server

//	@title			oncelog
//	@version		1
//	@description	An HTTP gateway in front of an idempotent, partitioned log. A batch that is sent again with the same producer id, epoch and sequence is stored once and answered alike.
//	@BasePath		/
//	@tag.name		records
//	@tag.description	Appending and reading records
//	@tag.name		producers
//	@tag.description	Producer ids and what partitions know of producers
//	@tag.name		topics
//	@tag.description	Topics and their configuration
//	@tag.name		partitions
//	@tag.description	Partitions, their segments and batches
//	@tag.name		snapshots
//	@tag.description	Snapshots of producer state
//	@tag.name		service
//	@tag.description	The server itself
