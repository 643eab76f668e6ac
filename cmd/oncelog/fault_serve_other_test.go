//go:build !linux

package main

// serveFaults does nothing: disks with faults are for Linux.
func serveFaults() {}
