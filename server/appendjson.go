package server

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

// keptMemory is up to where the memory of a decoder is kept for the next request.
const keptMemory = 1 << 20

// decoderPool keeps append decoders and their memory.
type decoderPool struct{ pool sync.Pool }

func (p *decoderPool) get() *appendDecoder {
	if d, ok := p.pool.Get().(*appendDecoder); ok {
		return d
	}
	return &appendDecoder{dec: jsontext.NewDecoder(new(bytes.Buffer)), names: map[string]string{}}
}

func (p *decoderPool) put(d *appendDecoder) {
	if cap(d.body) > keptMemory || cap(d.scratch) > keptMemory || d.builder.EncodedLen() > keptMemory {
		return
	}
	d.builder.Reset()
	d.body, d.scratch, d.rec, d.limiter = d.body[:0], d.scratch[:0], batch.Record{Headers: d.rec.Headers[:0]}, limiter{}
	d.prefix, d.line = d.prefix[:0], 0
	p.pool.Put(d)
}

// appendDecoder turns the JSON of an append into an encoded batch, token by token.
// Strings without escapes and JSON values are not copied on their way to the builder,
// so a record costs no allocation unless it has headers or escapes.
type appendDecoder struct {
	body    []byte
	dec     *jsontext.Decoder
	src     bytes.Buffer // reads text; dec parses it where it lies
	text    []byte       // what dec is reading: body, or a line of it
	scratch []byte       // unquoted and decoded strings of one record
	rec     batch.Record
	builder batch.Builder
	names   map[string]string // header names seen, to make each string once
	limiter limiter

	// prefix leads from the body to text when that is a line of NDJSON.
	prefix []byte
	line   int
}

// open starts on a text.
func (d *appendDecoder) open(text []byte) {
	d.text = text
	d.src = *bytes.NewBuffer(text)
	d.dec.Reset(&d.src)
}

// fault is a malformed-request problem about what was read last.
func (d *appendDecoder) fault(detail string) error {
	return malformed(d.at(""), detail)
}

// at is the pointer to a member of what was read last, "" for itself.
func (d *appendDecoder) at(member string) string {
	return string(d.prefix) + string(d.dec.StackPointer()) + member
}

// syntax is the problem that the text is not JSON.
func (d *appendDecoder) syntax(err error) error { return jsonProblem(string(d.prefix), err) }

// jsonBatch decodes a JSON batch into the builder.
func (d *appendDecoder) jsonBatch() (*store.ProducerSeq, error) {
	d.open(d.body)
	id := identity{-1, -1, -1}
	records := false
	err := d.object(func(name []byte) (err error) {
		switch string(name) {
		case "pid":
			id[0], err = d.integer()
		case "epoch":
			id[1], err = d.integer()
		case "baseSeq":
			id[2], err = d.integer()
		case "records":
			records = true
			err = d.array(d.record)
		default:
			err = d.unknown()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := atEnd(d.dec); err != nil {
		return nil, err
	}
	if !records {
		return nil, malformed("/records", "is missing")
	}
	producer, err := id.producer(int64(max(d.builder.Len(), 1)), memberNames)
	if err != nil {
		return nil, err
	}
	if d.builder.Len() == 0 {
		return nil, invalid("/records", "must hold at least one record")
	}
	return producer, d.limiter.err()
}

// lines decodes NDJSON: a record object on each line, the last of which may lack its
// newline.
func (d *appendDecoder) lines() error {
	rest := d.body
	for d.line = 0; len(rest) > 0; d.line++ {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line, rest = rest[:i], rest[i+1:]
		} else {
			rest = nil
		}
		if len(rest) == 0 && len(bytes.TrimSpace(line)) == 0 {
			break // a blank last line
		}
		d.prefix = strconv.AppendInt(append(d.prefix[:0], "/records/"...), int64(d.line), 10)
		d.open(line)
		if err := d.record(); err != nil {
			return err
		}
		if _, err := d.dec.ReadToken(); !errors.Is(err, io.EOF) {
			return malformed(string(d.prefix), "something follows the record on its line")
		}
	}
	if d.builder.Len() == 0 {
		return invalid("/records", "must hold at least one record")
	}
	return d.limiter.err()
}

// object reads an object, calling member with each name before its value is read.
func (d *appendDecoder) object(member func(name []byte) error) error {
	if d.dec.PeekKind() != '{' {
		return d.wrongType("must be an object")
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return d.syntax(err)
	}
	for d.dec.PeekKind() != '}' {
		raw, err := d.dec.ReadValue()
		if err != nil {
			return d.syntax(err)
		}
		if err := member(d.unquote(raw)); err != nil {
			return err
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return d.syntax(err)
	}
	return nil
}

// array reads an array, calling element for each of its values.
func (d *appendDecoder) array(element func() error) error {
	if d.dec.PeekKind() != '[' {
		return d.wrongType("must be an array")
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return d.syntax(err)
	}
	for d.dec.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return d.syntax(err)
	}
	return nil
}

// wrongType reads the value that is not what it must be, to point at it.
func (d *appendDecoder) wrongType(detail string) error {
	if _, err := d.dec.ReadValue(); err != nil {
		return d.syntax(err)
	}
	return d.fault(detail)
}

func (d *appendDecoder) unknown() error {
	return d.wrongType("is not a member that is known here")
}

// raw reads any value and returns its bytes, which stay valid as long as the body.
func (d *appendDecoder) raw() ([]byte, error) {
	v, err := d.dec.ReadValue()
	if err != nil {
		return nil, d.syntax(err)
	}
	end := d.dec.InputOffset()
	return d.text[end-int64(len(v)) : end], nil
}

// string reads a string. The result is valid until the next record.
func (d *appendDecoder) string() ([]byte, error) {
	v, err := d.raw()
	if err != nil {
		return nil, err
	}
	if v[0] != '"' {
		return nil, d.fault("must be a string")
	}
	return d.unquote(v), nil
}

// unquote returns what a JSON string stands for; the decoder has checked it.
func (d *appendDecoder) unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1 : len(quoted)-1]
	}
	start := len(d.scratch)
	d.scratch, _ = jsontext.AppendUnquote(d.scratch, quoted)
	return d.scratch[start:len(d.scratch):len(d.scratch)]
}

// base64 reads a string of base64 with padding (RFC 4648 section 4), nothing else.
func (d *appendDecoder) base64() ([]byte, error) {
	text, err := d.string()
	if err != nil {
		return nil, err
	}
	start := len(d.scratch)
	d.scratch, err = base64.StdEncoding.Strict().AppendDecode(d.scratch, text)
	if err != nil || bytes.ContainsAny(text, "\r\n") { // the decoder would skip line ends
		return nil, d.fault("is not base64 with padding")
	}
	return d.scratch[start:len(d.scratch):len(d.scratch)], nil
}

func (d *appendDecoder) integer() (int64, error) {
	v, err := d.raw()
	if err != nil {
		return 0, err
	}
	n, ok := parseInteger(v)
	if !ok {
		return 0, d.fault("must be an integer from 0 to 9007199254740991")
	}
	return n, nil
}

// record reads one record and adds it to the batch.
func (d *appendDecoder) record() error {
	d.scratch = d.scratch[:0]
	d.rec = batch.Record{Headers: d.rec.Headers[:0], Timestamp: batch.NoTimestamp}
	keys, values := 0, 0
	err := d.object(func(name []byte) error {
		switch string(name) {
		case "key", "keyBase64":
			keys++
			return d.key(len(name) != len("key"))
		case "value":
			values++
			return d.value(batch.FormJSON)
		case "valueText":
			values++
			return d.value(batch.FormText)
		case "valueBase64":
			values++
			return d.value(batch.FormBytes)
		case "headers":
			return d.array(d.header)
		case "timestamp":
			return d.timestamp()
		}
		return d.unknown()
	})
	switch {
	case err != nil:
		return err
	case values != 1:
		return d.fault("must have exactly one of value, valueText and valueBase64")
	case keys > 1:
		return d.fault("must have at most one of key and keyBase64")
	}
	d.limiter.headers(len(d.rec.Headers), d.at)
	d.builder.Add(&d.rec)
	return nil
}

func (d *appendDecoder) key(coded bool) (err error) {
	if coded {
		d.rec.KeyForm = batch.FormBytes
		d.rec.Key, err = d.base64()
	} else {
		d.rec.KeyForm = batch.FormText
		d.rec.Key, err = d.string()
	}
	if err == nil {
		d.limiter.key(d.rec.Key, func(string) string { return d.at("") })
	}
	return err
}

// value reads a value that is given in the form.
func (d *appendDecoder) value(form batch.Form) (err error) {
	d.rec.ValueForm = form
	switch form {
	case batch.FormText:
		d.rec.Value, err = d.string()
	case batch.FormBytes:
		d.rec.Value, err = d.base64()
	default:
		if d.rec.Value, err = d.raw(); err == nil && string(d.rec.Value) == "null" {
			d.rec.Value = nil // a tombstone
		}
		d.limiter.json(d.rec.Value, func(string) string { return d.at("") })
	}
	return err
}

func (d *appendDecoder) header() error {
	var h batch.Header
	var name, value bool
	err := d.object(func(member []byte) error {
		var text []byte
		var err error
		switch string(member) {
		case "name":
			name = true
			if text, err = d.string(); err == nil {
				h.Name = d.intern(text)
			}
		case "value":
			value = true
			if text, err = d.string(); err == nil {
				h.Value = string(text)
			}
		default:
			err = d.unknown()
		}
		return err
	})
	if err != nil {
		return err
	}
	if !name || !value {
		return d.fault("must have name and value")
	}
	d.limiter.header(len(h.Name), len(h.Value), d.at)
	d.rec.Headers = append(d.rec.Headers, h)
	return nil
}

// intern returns text as a string, the same one for the same name.
func (d *appendDecoder) intern(text []byte) string {
	const most = 64
	if s, ok := d.names[string(text)]; ok {
		return s
	}
	s := string(text)
	if len(d.names) < most && len(s) <= store.MaxHeaderName {
		d.names[s] = s
	}
	return s
}
