// Package storetest holds what every storage engine must pass.
//
// [Run] is the conformance suite: it drives a store.Store through its interface only,
// so that the same tests hold for store/memory, for store/bolt and for an engine that
// is reached over HTTP. [Factory] says how to open and restart the engine, [Traits]
// what it cannot express.
//
// [Cases] plays scripted conversations about the append rule (testdata) against
// anything that answers like the HTTP contract; [StoreTarget] lets an engine do so
// directly.
package storetest
