package batch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// ErrMalformed means that bytes are not an encoded batch.
var ErrMalformed = errors.New("not a record batch")

// ErrChecksum means that an encoded batch has been damaged: its CRC32C does not match.
var ErrChecksum = errors.New("record batch fails its CRC32C")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Parse checks an encoded batch from an untrusted source, through and through: frame,
// checksum, every record and every form. It takes exactly what [Builder] can write, so
// records that are equal have equal bytes. The Batch refers to data, which must not
// change afterwards. Errors wrap [ErrMalformed] or [ErrChecksum].
func Parse(data []byte) (Batch, error) { return ParseEach(data, nil) }

// ParseEach is [Parse] that also shows every record to check, if that is not nil, so that
// a caller with limits of its own need not decode the batch again. The record is valid
// until check returns; its error ends the parsing and is returned as it is.
func ParseEach(data []byte, check func(i int, r *Record) error) (Batch, error) {
	forms, records, err := split(data)
	if err != nil {
		return Batch{}, err
	}
	if checksum(data) != CRC(data) {
		return Batch{}, ErrChecksum
	}
	b := Batch{Bytes: data, Count: int32(binary.BigEndian.Uint32(data[4:]))}
	d := decoder{forms: forms, records: records}
	var r Record
	for i := range b.Count {
		if err := d.next(&r); err != nil {
			return Batch{}, fmt.Errorf("record %d: %w", i, err)
		}
		if err := checkText(&r); err != nil {
			return Batch{}, fmt.Errorf("record %d: %w", i, err)
		}
		if check != nil {
			if err := check(int(i), &r); err != nil {
				return Batch{}, err
			}
		}
		n := r.PayloadBytes()
		b.PayloadBytes += n
		b.LargestRecord = max(b.LargestRecord, n)
	}
	if len(d.records) > 0 || len(d.forms) > 0 || d.run > 0 {
		return Batch{}, malformed("after the last record, %d bytes of records, %d of forms and a run of %d are left",
			len(d.records), len(d.forms), d.run)
	}
	b.Digest = digest(records)
	return b, nil
}

// Verify checks frame and checksum of stored bytes, and that they hold count records.
func Verify(data []byte, count int32) error {
	if _, _, err := split(data); err != nil {
		return err
	}
	if checksum(data) != CRC(data) {
		return ErrChecksum
	}
	if got := binary.BigEndian.Uint32(data[4:]); got != uint32(count) {
		return malformed("it holds %d records, not %d", got, count)
	}
	return nil
}

// CRC is the CRC32C in the frame of an encoded batch.
func CRC(data []byte) uint32 { return binary.BigEndian.Uint32(data[16:]) }

// split checks the frame, but for its checksum, and gives its two sections.
func split(data []byte) (forms, records []byte, err error) {
	if len(data) < HeaderLen || data[0] != magic0 || data[1] != magic1 {
		return nil, nil, malformed("no batch header")
	}
	if data[2] != version || data[3] != 0 {
		return nil, nil, malformed("version %d.%d, this program reads %d.0", data[2], data[3], version)
	}
	count := binary.BigEndian.Uint32(data[4:])
	formsLen := uint64(binary.BigEndian.Uint32(data[8:]))
	recordsLen := uint64(binary.BigEndian.Uint32(data[12:]))
	if HeaderLen+formsLen+recordsLen != uint64(len(data)) {
		return nil, nil, malformed("it is %d bytes, its header says %d", len(data), HeaderLen+formsLen+recordsLen)
	}
	if count == 0 || count > math.MaxInt32 || uint64(count) > recordsLen {
		return nil, nil, malformed("%d records in %d bytes", count, recordsLen)
	}
	return data[HeaderLen : HeaderLen+formsLen], data[HeaderLen+formsLen:], nil
}

// checkText holds text and JSON to what their forms promise, so that a read can
// always give them back.
func checkText(r *Record) error {
	if r.KeyForm == FormText && !utf8.Valid(r.Key) {
		return malformed("the text key is not UTF-8")
	}
	if r.ValueForm == FormText && !utf8.Valid(r.Value) {
		return malformed("the text value is not UTF-8")
	}
	if r.ValueForm == FormJSON && r.Value != nil {
		switch {
		case !utf8.Valid(r.Value) || !json.Valid(r.Value):
			return malformed("the JSON value is not JSON")
		case isNull(r.Value):
			return malformed("the JSON value null must be a tombstone")
		}
	}
	for _, h := range r.Headers {
		if !utf8.ValidString(h.Name) || !utf8.ValidString(h.Value) {
			return malformed("a header is not UTF-8")
		}
	}
	return nil
}

// decoder walks the two sections side by side.
type decoder struct {
	forms   []byte
	records []byte
	run     uint64 // records that are left of the current run
	form    formRun
	begun   bool   // form is that of a run
	media   string // the last media type: the next one is mostly the same
}

// next decodes one record into r. Key and value refer to the batch's bytes.
func (d *decoder) next(r *Record) error {
	if err := d.nextForm(); err != nil {
		return err
	}
	if len(d.records) == 0 {
		return malformed("it ends early")
	}
	flags := d.records[0]
	d.records = d.records[1:]
	if flags&^recordFlags != 0 {
		return malformed("unknown record flags %#x", flags)
	}
	*r = Record{
		Headers: r.Headers[:0], Timestamp: NoTimestamp,
		KeyForm: d.form.key, ValueForm: d.form.value, ContentType: d.form.contentType,
	}
	if err := d.fields(r, flags); err != nil {
		return err
	}
	if (r.Key == nil && r.KeyForm != FormBytes) || (r.Value == nil && r.ValueForm != FormJSON) {
		return malformed("a missing key or value has the wrong form")
	}
	return nil
}

func (d *decoder) fields(r *Record, flags byte) (err error) {
	if flags&recordHasTimestamp != 0 {
		ts, err := d.uvarint(&d.records, MaxTimestamp)
		if err != nil {
			return err
		}
		r.Timestamp = int64(ts)
	}
	if flags&recordHasKey != 0 {
		if r.Key, err = d.bytes(&d.records); err != nil {
			return err
		}
	}
	if flags&recordTombstone == 0 {
		if r.Value, err = d.bytes(&d.records); err != nil {
			return err
		}
	}
	if flags&recordHasHeaders == 0 {
		return nil
	}
	n, err := d.uvarint(&d.records, uint64(len(d.records)/2))
	if err != nil {
		return err
	}
	if n == 0 {
		return malformed("an empty list of headers")
	}
	for range n {
		name, err := d.bytes(&d.records)
		if err != nil {
			return err
		}
		value, err := d.bytes(&d.records)
		if err != nil {
			return err
		}
		r.Headers = append(r.Headers, Header{Name: string(name), Value: string(value)})
	}
	return nil
}

// nextForm takes one record off the current run of forms, reading the next run first
// when it is used up.
func (d *decoder) nextForm() error {
	if d.run > 0 {
		d.run--
		return nil
	}
	n, err := d.uvarint(&d.forms, 1<<32)
	if err != nil {
		return err
	}
	if n == 0 || len(d.forms) < 2 {
		return malformed("the forms end early")
	}
	f := formRun{value: Form(d.forms[0]), key: Form(d.forms[1])}
	d.forms = d.forms[2:]
	if f.value >= formCount || f.key > FormText {
		return malformed("unknown form %d, %d", f.value, f.key)
	}
	if f.value == FormRaw {
		ct, err := d.bytes(&d.forms)
		if err != nil {
			return err
		}
		if !utf8.Valid(ct) {
			return malformed("the media type is not UTF-8")
		}
		if string(ct) != d.media {
			d.media = string(ct)
		}
		f.contentType = d.media
	}
	if d.begun && f == d.form {
		return malformed("two runs in a row have the same form")
	}
	d.run, d.form, d.begun = n-1, f, true
	return nil
}

func (d *decoder) uvarint(from *[]byte, limit uint64) (uint64, error) {
	v, n := binary.Uvarint(*from)
	if n <= 0 || v > limit || (n > 1 && (*from)[n-1] == 0) {
		return 0, malformed("a bad or too large number")
	}
	*from = (*from)[n:]
	return v, nil
}

func (d *decoder) bytes(from *[]byte) ([]byte, error) {
	n, err := d.uvarint(from, uint64(len(*from)))
	if err != nil {
		return nil, err
	}
	if n > uint64(len(*from)) {
		return nil, malformed("it ends early")
	}
	b := (*from)[:n:n]
	*from = (*from)[n:]
	return b, nil
}
