// Package memory is the executable model: the simplest thing that does what package
// store promises, except that it keeps nothing once the process ends. Read it to
// learn what an engine has to do; package storetest holds other engines against it.
//
// One lock, maps and slices. Nothing is cached, nothing runs in the background, and
// where a real engine takes care to be fast this one takes care to be obvious:
//
//   - A producer's expiry is worked out whenever a call looks, from the arrival time
//     of its last batch, so that it is exact to the millisecond.
//   - Retention is applied by [Store.Sweep] and at no other time.
//   - Each call that changes something wakes all that wait, and they look again.
//   - A batch that is ahead of its predecessors is refused at once, never held.
package memory
