package faultfs

import (
	"syscall"
	"time"
)

// Kind is an operation of the file system.
type Kind string

// The operations that can fail and that are recorded. Reads are not recorded.
const (
	Read     Kind = "read"
	Write    Kind = "write"
	Sync     Kind = "sync"
	Truncate Kind = "truncate"
	Create   Kind = "create"
	SyncDir  Kind = "syncdir"
)

// Fault is what goes wrong. Of several that apply, the first one counts.
type Fault struct {
	Kind Kind
	// Path is that of the file below the directory; "": any.
	Path string
	// After is how many operations of the kind go well before. Times is how many go
	// wrong then; 0: all.
	After, Times int
	// From and To bound the place in the file, in bytes; To 0: no bounds.
	From, To int64
	// Delay is how long the operation takes longer, or until other faults are injected: a
	// test that looks at what is not done yet need not be faster than a clock.
	Delay time.Duration
	// Errno is the error. 0: there is none.
	Errno syscall.Errno
	// Short is how many bytes of a write are written, and reported to be; 0: all of them.
	Short int
}

// Event is an operation that took place, in the order of events. A Sync covers what was
// written to the file before it.
type Event struct {
	Kind   Kind
	Path   string
	Offset int64
	Data   []byte
	Size   int64 // Truncate
}

// fault finds what goes wrong with an operation, and waits for its delay.
func (s *state) fault(k Kind, path string, from, to int64) (f Fault, ok bool) {
	f, replaced, ok := s.find(k, path, from, to)
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-replaced:
		}
	}
	return f, ok
}

// find finds what goes wrong. replaced is closed when other faults are injected.
func (s *state) find(k Kind, path string, from, to int64) (f Fault, replaced <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.faults {
		p := &s.faults[i]
		if p.Kind != k || p.Path != "" && p.Path != path || p.To > 0 && (to <= p.From || from >= p.To) {
			continue
		}
		if p.After > 0 {
			p.After--
			continue
		}
		if p.Times > 0 {
			if p.Times--; p.Times == 0 {
				p.Times = -1
			}
		} else if p.Times < 0 {
			continue
		}
		s.struck++
		return *p, s.replaced, true
	}
	return Fault{}, nil, false
}
