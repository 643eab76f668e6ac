package server

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

// limiter collects what is well formed but not allowed. Decoding goes on meanwhile,
// for a request that is malformed further on is malformed.
type limiter struct{ errs []openapi.MemberError }

func (l *limiter) refuse(pointer, detail string) {
	const most = 10
	if len(l.errs) < most {
		l.errs = append(l.errs, openapi.MemberError{Pointer: pointer, Detail: detail})
	}
}

func (l *limiter) err() error {
	if len(l.errs) == 0 {
		return nil
	}
	return memberProblem(string(store.CodeInvalidArgument), l.errs)
}

// maxDepth is how deep a JSON value may be nested. A page of records nests it some
// levels deeper, and readers have limits of their own.
const maxDepth = 1000

func (l *limiter) json(value []byte, at func(string) string) {
	// Few values have so many brackets at all, and counting those is cheap.
	if bytes.Count(value, []byte{'['})+bytes.Count(value, []byte{'{'}) <= maxDepth {
		return
	}
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			if depth++; depth > maxDepth {
				l.refuse(at("/value"), "must not be nested more than "+strconv.Itoa(maxDepth)+" deep")
				return
			}
		case c == ']', c == '}':
			depth--
		}
	}
}

func (l *limiter) key(key []byte, at func(string) string) {
	if len(key) > store.MaxKeyBytes {
		l.refuse(at("/key"), "must be at most "+strconv.Itoa(store.MaxKeyBytes)+" bytes")
	}
}

func (l *limiter) headers(n int, at func(string) string) {
	if n > store.MaxHeaders {
		l.refuse(at("/headers"), "must be at most "+strconv.Itoa(store.MaxHeaders)+" headers")
	}
}

func (l *limiter) header(name, value int, at func(string) string) {
	if name < 1 || name > store.MaxHeaderName {
		l.refuse(at("/name"), "must be 1 to "+strconv.Itoa(store.MaxHeaderName)+" bytes")
	}
	if value > store.MaxHeaderValue {
		l.refuse(at("/value"), "must be at most "+strconv.Itoa(store.MaxHeaderValue)+" bytes")
	}
}

// recordKey checks a Record-Key header.
func recordKey(v []string) ([]byte, error) {
	switch {
	case len(v) > 1:
		return nil, malformed(headerRecordKey, "is given more than once")
	case !utf8.ValidString(v[0]):
		return nil, malformed(headerRecordKey, "is not UTF-8")
	case len(v[0]) > store.MaxKeyBytes:
		return nil, invalid(headerRecordKey, "must be at most "+strconv.Itoa(store.MaxKeyBytes)+" bytes")
	}
	return []byte(v[0]), nil
}

// parseTime reads RFC 3339. The time package alone is too kind: it takes an hour of one
// digit, a comma before the fraction, and zones of 99 hours.
func parseTime(text []byte) (t time.Time, ok bool) {
	const shape, digit = "0000-00-00T00:00:00", '0'
	if len(text) <= len(shape) {
		return t, false
	}
	zone := text[len(shape):]
	if zone[0] == '.' {
		zone = bytes.TrimLeft(zone[1:], "0123456789")
	}
	if len(zone) > 1 { // +hh:mm; the time package checks its signs and digits
		if len(zone) != len("+00:00") || string(zone[1:3]) > "23" || string(zone[4:]) > "59" {
			return t, false
		}
	}
	for i := range len(shape) {
		if isDigit := text[i] >= '0' && text[i] <= '9'; isDigit != (shape[i] == digit) {
			return t, false
		}
	}
	return t, t.UnmarshalText(text) == nil
}

// timestamp reads RFC 3339, of which milliseconds are kept, or integer milliseconds.
func (d *appendDecoder) timestamp() error {
	v, err := d.raw()
	if err != nil {
		return err
	}
	var ms int64
	if v[0] == '"' {
		t, ok := parseTime(d.unquote(v))
		if !ok {
			return d.fault("is neither a time as in RFC 3339 nor milliseconds since 1970")
		}
		ms = t.UnixMilli()
	} else {
		n, ok := parseInteger(v)
		if !ok {
			return d.fault("is neither a time as in RFC 3339 nor milliseconds since 1970")
		}
		ms = n
	}
	if ms < 0 || ms > batch.MaxTimestamp {
		d.limiter.refuse(d.at(""), "must lie in the years 1970 to 9999")
		ms = 0
	}
	d.rec.Timestamp = ms
	return nil
}
