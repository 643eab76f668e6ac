package producer

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store/batch"
)

// Header is a named annotation of a record, both parts UTF-8. Names may repeat.
type Header = batch.Header

// Format says what a key or value is, which decides how a read in JSON gives it back.
type Format uint8

// The formats.
const (
	FormatAuto  Format = iota // FormatText when it is UTF-8, else FormatBytes
	FormatBytes               // read back as base64
	FormatText                // read back as a string
	FormatJSON                // read back as the JSON that it is; values only
)

// Record is what a [Producer] sends.
type Record struct {
	Topic string
	// Partition, when it is not nil, is where the record goes. Otherwise the
	// partitioner decides.
	Partition *int
	Key       []byte // nil: no key
	Value     []byte // nil: a tombstone
	Headers   []Header
	// Timestamp is kept to the millisecond; the zero value leaves it to the server,
	// which takes the time of arrival.
	Timestamp   time.Time
	KeyFormat   Format
	ValueFormat Format
}

// Limits that the server holds every record to, whatever the topic says. A record
// that breaks one is refused by Send, for it would take its whole batch with it.
const (
	maxRecordBytes = 1 << 20
	maxKeyBytes    = 32 << 10
	maxHeaders     = 64
	maxHeaderName  = 256
	maxHeaderValue = 8 << 10
	maxBatchBytes  = 8 << 20
	maxBatchCount  = 65_536
)

// frameBytes is at most what a record's framing adds to its payload in a batch, as
// far as the bounds of batch and buffer are concerned.
const frameBytes = 24

// encode checks r and gives what goes into a batch. Nothing is copied.
func (r *Record) encode() (batch.Record, *Error) {
	out := batch.Record{Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: batch.NoTimestamp}
	if r.Topic == "" {
		return out, invalid("the record names no topic")
	}
	if !r.Timestamp.IsZero() {
		out.Timestamp = r.Timestamp.UnixMilli()
		if out.Timestamp < 0 || out.Timestamp > batch.MaxTimestamp {
			return out, invalid("the timestamp %v is not in the years 1970 to 9999", r.Timestamp)
		}
	}
	if err := r.forms(&out); err != nil {
		return out, err
	}
	if len(r.Key) > maxKeyBytes {
		return out, tooLarge("the key has %d bytes, at most %d are allowed", len(r.Key), maxKeyBytes)
	}
	if err := checkHeaders(r.Headers); err != nil {
		return out, err
	}
	if n := out.PayloadBytes(); n > maxRecordBytes {
		return out, tooLarge("the record has %d bytes of key, value and headers, at most %d are allowed", n, maxRecordBytes)
	}
	return out, nil
}

// forms fills in the forms of key and value.
func (r *Record) forms(out *batch.Record) *Error {
	switch {
	case r.KeyFormat == FormatText || (r.KeyFormat == FormatAuto && utf8.Valid(r.Key)):
		out.KeyForm = batch.FormText
	case r.KeyFormat > FormatText:
		return invalid("a key is FormatAuto, FormatBytes or FormatText")
	}
	if out.KeyForm == batch.FormText && r.KeyFormat == FormatText && !utf8.Valid(r.Key) {
		return invalid("the key is FormatText but not UTF-8")
	}
	switch r.ValueFormat {
	case FormatAuto:
		if utf8.Valid(r.Value) {
			out.ValueForm = batch.FormText
		}
	case FormatText:
		if !utf8.Valid(r.Value) {
			return invalid("the value is FormatText but not UTF-8")
		}
		out.ValueForm = batch.FormText
	case FormatJSON:
		if r.Value != nil && !(utf8.Valid(r.Value) && json.Valid(r.Value)) {
			return invalid("the value is FormatJSON but not JSON")
		}
		out.ValueForm = batch.FormJSON
	case FormatBytes:
	default:
		return invalid("unknown value format %d", r.ValueFormat)
	}
	return nil
}

func checkHeaders(hs []Header) *Error {
	if len(hs) > maxHeaders {
		return invalid("the record has %d headers, at most %d are allowed", len(hs), maxHeaders)
	}
	for _, h := range hs {
		switch {
		case h.Name == "" || len(h.Name) > maxHeaderName:
			return invalid("a header's name has %d bytes, it must have 1 to %d", len(h.Name), maxHeaderName)
		case len(h.Value) > maxHeaderValue:
			return invalid("the header %q has %d bytes, at most %d are allowed", h.Name, len(h.Value), maxHeaderValue)
		case !utf8.ValidString(h.Name) || !utf8.ValidString(h.Value):
			return invalid("the header %q is not UTF-8", h.Name)
		}
	}
	return nil
}

// invalid is a record that Send refuses.
func invalid(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidArgument, Outcome: openapi.NotApplied, Detail: fmt.Sprintf(format, args...)}
}

func tooLarge(format string, args ...any) *Error {
	e := invalid(format, args...)
	e.Code = CodeTooLarge
	return e
}
