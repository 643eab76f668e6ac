//go:build !linux

package bolt_test

// serveFaults does nothing: disks with faults are for Linux.
func serveFaults() {}
