// Package openapi is the HTTP contract of oncelog: the bodies of requests and
// responses, and the closed list of problem codes. Server and clients share it. The
// OpenAPI document under spec is generated from these types and from the comments on
// the server's handlers; BATCH.md describes the binary batch.
//
// Integers on the wire are at most 2^53 − 1, so that JSON readers which know only
// doubles keep them exact. Times are RFC 3339 in UTC with milliseconds.
package openapi
