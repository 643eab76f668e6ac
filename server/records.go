package server

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

// flushAt is how much of an answer is gathered before it is written.
const flushAt = 64 << 10

// answers are the buffers in which answers are gathered, for the next ones.
var answers = sync.Pool{New: func() any { return new([]byte) }}

// recordWriter writes records in one of the forms of a read. It gathers up to flushAt
// bytes, and a record more, whatever the length of the answer.
type recordWriter struct {
	x       *exchange
	control *http.ResponseController
	media   string
	base64  bool
	buf     []byte
	kept    *[]byte // where buf comes from
	rec     batch.Record
	text    textTypes
	stamp   []byte // the text of stampOf: neighbours mostly have the same time
	stampOf time.Time
}

func (s *Server) newRecordWriter(x *exchange, q readRequest) *recordWriter {
	kept := answers.Get().(*[]byte) //nolint:errcheck,forcetypeassert // nothing else is put there
	return &recordWriter{
		x: x, control: http.NewResponseController(x),
		media: q.media, base64: q.base64, buf: (*kept)[:0], kept: kept,
	}
}

// close gives the buffer back, unless one long record has made it large.
func (w *recordWriter) close() {
	if cap(w.buf) <= 4*flushAt {
		*w.kept = w.buf[:0]
		answers.Put(w.kept)
	}
}

// list writes an openapi.RecordList of the records from … end−1.
func (w *recordWriter) list(recs *store.Records, from, end int64) error {
	w.buf = append(w.buf, `{"records":[`...)
	if err := w.records(recs, from, end); err != nil {
		return err
	}
	w.buf = append(w.buf, `],"nextOffset":`...)
	w.buf = strconv.AppendInt(w.buf, end, 10)
	w.buf = append(w.buf, `,"highWatermark":`...)
	w.buf = strconv.AppendInt(w.buf, recs.HighWatermark, 10)
	w.buf = append(w.buf, `,"earliestOffset":`...)
	w.buf = strconv.AppendInt(w.buf, recs.Earliest, 10)
	w.buf = append(w.buf, '}', '\n')
	return w.flush()
}

// records writes the records from … end−1.
func (w *recordWriter) records(recs *store.Records, from, end int64) error {
	first := true
	var rd batch.Reader
	for i := range recs.Batches {
		b := &recs.Batches[i]
		if err := rd.ResetVerified(b.Bytes); err != nil {
			return err
		}
		for offset := b.BaseOffset; offset < end; offset++ {
			ok, err := rd.Next(&w.rec)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if offset < from {
				continue
			}
			if !first && w.media == mediaJSON {
				w.buf = append(w.buf, ',')
			}
			first = false
			w.record(offset, b.AppendedAt)
			if len(w.buf) < flushAt {
				continue
			}
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes what has been gathered.
func (w *recordWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.send(w.buf)
	w.buf = w.buf[:0]
	return err
}

// send writes b within the write timeout.
func (w *recordWriter) send(b []byte) error {
	w.x.answer.watch(w.x)
	w.x.hurry()
	if w.x.leaving.Load() { // it may have been told so before the deadline was set
		return gone(errNoRoom)
	}
	_, err := w.x.Write(b)
	return gone(err)
}

// record appends one record, framed as the media type wants it.
func (w *recordWriter) record(offset int64, appended time.Time) {
	if w.media == mediaEventStream {
		w.buf = append(w.buf, "id: "...)
		w.buf = strconv.AppendInt(w.buf, offset, 10)
		w.buf = append(w.buf, "\ndata: "...)
	}
	w.object(offset, appended)
	switch w.media {
	case mediaEventStream:
		w.buf = append(w.buf, '\n', '\n')
	case mediaNDJSON:
		w.buf = append(w.buf, '\n')
	}
}

// object appends an openapi.Record. It is spelled out because reads are made of it.
func (w *recordWriter) object(offset int64, appended time.Time) {
	r := &w.rec
	b := append(w.buf, `{"offset":`...)
	b = strconv.AppendInt(b, offset, 10)
	b = append(b, `,"timestamp":`...)
	at := appended
	if r.Timestamp != batch.NoTimestamp {
		at = time.UnixMilli(r.Timestamp)
	}
	if !at.Equal(w.stampOf) || len(w.stamp) == 0 {
		w.stamp, w.stampOf = appendTimeOrNull(w.stamp[:0], at), at
	}
	b = append(b, w.stamp...)
	switch {
	case r.Key == nil:
	case r.KeyForm == batch.FormText:
		b = append(b, `,"key":`...)
		b = appendText(b, r.Key)
	default:
		b = append(b, `,"keyBase64":`...)
		b = appendBase64(b, r.Key)
	}
	b = w.appendValue(b)
	if r.ValueForm == batch.FormRaw && r.ContentType != "" {
		b = append(b, `,"contentType":`...)
		b = appendText(b, r.ContentType)
	}
	b = append(b, `,"headers":[`...)
	for i, h := range r.Headers {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = appendText(b, h.Name)
		b = append(b, `,"value":`...)
		b = appendText(b, h.Value)
		b = append(b, '}')
	}
	w.buf = append(b, ']', '}')
}

// appendValue appends the value in the form it was stored in. A JSON value keeps its
// bytes, except that line breaks between its tokens go where a line must hold it all.
func (w *recordWriter) appendValue(b []byte) []byte {
	r := &w.rec
	switch {
	case r.Value == nil:
		return append(b, `,"value":null`...)
	case w.base64:
	case r.ValueForm == batch.FormText, r.ValueForm == batch.FormRaw && w.text.is(r.ContentType) && utf8.Valid(r.Value):
		b = append(b, `,"valueText":`...)
		return appendText(b, r.Value)
	case r.ValueForm == batch.FormJSON:
		b = append(b, `,"value":`...)
		if w.media == mediaJSON || bytes.IndexByte(r.Value, '\n') < 0 && bytes.IndexByte(r.Value, '\r') < 0 {
			return append(b, r.Value...)
		}
		v := jsontext.Value(bytes.Clone(r.Value))
		if err := v.Compact(); err != nil { // not what was checked when it came
			return append(b, "null"...)
		}
		return append(b, v...)
	}
	b = append(b, `,"valueBase64":`...)
	return appendBase64(b, r.Value)
}

func appendText[T ~string | ~[]byte](b []byte, text T) []byte {
	if isPlain([]byte(text)) { // a third of the time, and most text is so
		b = append(b, '"')
		b = append(b, text...)
		return append(b, '"')
	}
	b, _ = jsontext.AppendQuote(b, text) // fails on bad UTF-8 only, which was refused
	return b
}

// isPlain reports whether text is ASCII that JSON has between quotes as it is.
func isPlain(text []byte) bool {
	for ; len(text) >= 32; text = text[32:] {
		words := text[:32]
		if escapes(binary.LittleEndian.Uint64(words))|escapes(binary.LittleEndian.Uint64(words[8:]))|
			escapes(binary.LittleEndian.Uint64(words[16:]))|escapes(binary.LittleEndian.Uint64(words[24:])) != 0 {
			return false
		}
	}
	for _, c := range text {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// escapes is not 0 if one of eight bytes is not plain. Each term sets the top bit of the
// bytes that it is about. A borrow or carry can only set one too many above a byte that is
// itself not plain.
func escapes(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	control := w - ones*' '             // below a space
	high := w | (w + ones)              // above a tilde
	quote := (w ^ ones*'"') - ones      // a quotation mark
	backslash := (w ^ ones*'\\') - ones // a backslash
	return (control | high | quote | backslash) & tops
}

func appendBase64(b, data []byte) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}

// textTypes tells media types whose bodies are text. It remembers the last one, for
// neighbours mostly share it.
type textTypes struct {
	last string
	text bool
}

func (t *textTypes) is(contentType string) bool {
	if contentType != t.last {
		t.last, t.text = contentType, isTextType(contentType)
	}
	return t.text
}

func isTextType(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	if c, ok := params["charset"]; ok && !strings.EqualFold(c, "utf-8") && !strings.EqualFold(c, "us-ascii") {
		return false
	}
	return strings.HasPrefix(media, "text/") || media == mediaJSON || strings.HasSuffix(media, "+json") ||
		media == "application/x-www-form-urlencoded"
}
