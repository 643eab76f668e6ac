// Package bench measures an oncelog server from outside, by its HTTP interface, and
// checks every answer while it does: a rate at which wrong answers come is none.
//
// The generator shares the machine with the server more often than not, so it has to be
// lean: [Append] and [Read] write prepared bytes to sockets of their own and parse of
// the answers only what they check. In the steady state a request allocates nothing.
//
// Each connection has one request under way. Without a rate it sends the next one when
// the answer is there (a closed loop, which measures what the server can take); with a
// rate, latencies count from when a request was due, so that a stall of the server is
// seen by all the requests that it kept waiting.
package bench
