package bench

import (
	"bytes"
	"errors"
	"fmt"
)

// ack is what is checked of an answer to an append, and of one that allocates a
// producer. Numbers that are null or absent are −1.
type ack struct {
	base, last, nextSeq int64
	pid                 int64
	duplicate           bool
	at                  []byte // appendedAt; refers to the body
}

var errAck = errors.New("the answer is no flat JSON object")

// parseAck reads the members of a JSON object that has no nested ones.
func parseAck(body []byte, a *ack) error {
	*a = ack{base: -1, last: -1, nextSeq: -1, pid: -1}
	s := scanner{rest: body}
	if !s.take('{') {
		return fmt.Errorf("%w: %s", errAck, body)
	}
	for !s.take('}') {
		name, ok := s.quoted()
		if !ok || !s.take(':') {
			return fmt.Errorf("%w: %s", errAck, body)
		}
		value, ok := s.value()
		if !ok || !a.member(name, value) {
			return fmt.Errorf("%w: %s: %s", errAck, name, body)
		}
		s.take(',')
	}
	return nil
}

func (a *ack) member(name, value []byte) bool {
	number := func(to *int64) bool {
		if string(value) == "null" {
			return true
		}
		n, ok := parseInt(value)
		*to = n
		return ok
	}
	switch string(name) {
	case "baseOffset":
		return number(&a.base)
	case "lastOffset":
		return number(&a.last)
	case "nextSeq":
		return number(&a.nextSeq)
	case "pid":
		return number(&a.pid)
	case "duplicate":
		a.duplicate = string(value) == "true"
	case "appendedAt":
		a.at = value
	}
	return true
}

// scanner walks over JSON whose strings have no escapes.
type scanner struct{ rest []byte }

// spaces goes over spaces. bytes.TrimLeft would cost more than all the rest.
func (s *scanner) spaces() {
	for len(s.rest) > 0 && (s.rest[0] == ' ' || s.rest[0] == '\t' || s.rest[0] == '\r' || s.rest[0] == '\n') {
		s.rest = s.rest[1:]
	}
}

// take goes over a character, and spaces before it, if it is next.
func (s *scanner) take(c byte) bool {
	s.spaces()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) quoted() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 || bytes.IndexByte(s.rest[:end], '\\') >= 0 {
		return nil, false
	}
	text := s.rest[:end]
	s.rest = s.rest[end+1:]
	return text, true
}

// value gives a string's text, or a literal as it is.
func (s *scanner) value() ([]byte, bool) {
	s.spaces()
	if len(s.rest) > 0 && s.rest[0] == '"' {
		return s.quoted()
	}
	for end, c := range s.rest {
		switch c {
		case ',', '}', ' ', '\t', '\r', '\n':
			text := s.rest[:end]
			s.rest = s.rest[end:]
			return text, end > 0
		case '{', '[':
			return nil, false
		}
	}
	return nil, false
}
