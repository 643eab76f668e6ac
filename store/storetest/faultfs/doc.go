// Package faultfs is a file system for tests: it shows a directory, and does to it what
// disks do. Writes fail or come short, fsync fails or takes its time, reads fail, the disk
// is full; and everything that is written can be recorded, with the places where it was
// synced, so that a test can make out what loss of power would leave.
//
// It is a FUSE file system, so the program under test runs as it is. It is served by a
// process of its own, the test binary started again: a process that maps a file of a file
// system which it serves itself stops for ever when its garbage collector waits for the
// page fault, and the page fault for the server. So TestMain of a package that uses it
// must begin with [Serve].
//
// What is synced here is not synced below: only the record counts.
package faultfs
