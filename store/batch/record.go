package batch

import "bytes"

// Form says how a key or value was given, so that a read can give it back that way.
type Form uint8

// The forms. A key is FormText or FormBytes; a value may take any of them.
const (
	FormBytes Form = iota // base64 in JSON
	FormText              // a JSON string holding UTF-8
	FormJSON              // any JSON value, its bytes kept as sent
	FormRaw               // the body of a raw append, with its media type
	formCount
)

// Record is one record. A nil Value is a tombstone, and so is the JSON value null; an
// empty Value is a value.
type Record struct {
	Key       []byte // nil: no key
	Value     []byte // nil: a tombstone
	Headers   []Header
	Timestamp int64 // milliseconds since 1970 as the client gave it, −1: none given

	KeyForm     Form
	ValueForm   Form
	ContentType string // media type of a FormRaw value
}

// Header is a named annotation of a record. Names may repeat.
type Header struct {
	Name  string
	Value string
}

// NoTimestamp is the Timestamp of a record whose client gave none.
const NoTimestamp = -1

// MaxTimestamp is the last millisecond that RFC 3339 can write: the end of year 9999.
const MaxTimestamp = 253402300799999

// PayloadBytes is the size that limits speak of: the bytes of key, value and headers,
// without any framing.
func (r *Record) PayloadBytes() int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return n
}

// isNull reports whether a JSON value is null. Trim looks at the ends only, so a long
// value costs no more than a short one.
func isNull(value []byte) bool {
	return string(bytes.Trim(value, " \t\r\n")) == "null"
}
