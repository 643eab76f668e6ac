// Package verify proves, through the API of a running server, that what is stored of a
// partition is whole: offsets without a gap, checksums right, each producer's sequences
// without a gap or a double, the producer state that the server tells the one that follows
// from the log, segments that add up, and snapshots that agree with the log.
//
// It does not take the server's word for it: it reads every batch as it is stored, computes
// its checksum and applies the append rule to it anew. Only snapshots are compared by the
// server. Appends go on meanwhile.
package verify
