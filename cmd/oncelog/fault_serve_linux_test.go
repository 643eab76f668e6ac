package main

import "github.com/oncelog/oncelog/store/storetest/faultfs"

// serveFaults is what a process that was started to serve a disk with faults does.
func serveFaults() { faultfs.Serve() }
