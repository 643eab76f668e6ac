package batch

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"

	"github.com/oncelog/oncelog/store/sequence"
)

const (
	magic0, magic1 = 'O', 'L'
	version        = 1

	// HeaderLen is the length of the frame in front of an encoded batch.
	HeaderLen = 20
)

// ContentType is the media type of an encoded batch.
const ContentType = "application/vnd.oncelog.batch"

// Flags of a record.
const (
	recordHasKey       = 1 << 0
	recordTombstone    = 1 << 1
	recordHasTimestamp = 1 << 2
	recordHasHeaders   = 1 << 3
	recordFlags        = recordHasKey | recordTombstone | recordHasTimestamp | recordHasHeaders
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is an encoded batch that is known to be well formed.
type Batch struct {
	// Bytes is the encoding. It must not be changed.
	Bytes []byte
	// Count is the number of records, at least 1.
	Count int32
	// PayloadBytes is the sum of [Record.PayloadBytes].
	PayloadBytes int
	// LargestRecord is the largest [Record.PayloadBytes].
	LargestRecord int
	// Digest identifies the payload.
	Digest sequence.Digest
}

// Builder encodes a batch record by record. The zero value is ready for use; Reset
// makes it ready again and keeps its memory.
type Builder struct {
	records []byte
	forms   []byte
	count   int32
	payload int
	largest int

	run     uint64 // records of the form run that has not been written yet
	runForm formRun
}

type formRun struct {
	value, key  Form
	contentType string
}

// Reset forgets all records.
func (b *Builder) Reset() {
	b.records, b.forms = b.records[:0], b.forms[:0]
	b.count, b.payload, b.largest, b.run = 0, 0, 0, 0
}

// Len is the number of records so far.
func (b *Builder) Len() int { return int(b.count) }

// PayloadBytes is the sum of the payload bytes so far.
func (b *Builder) PayloadBytes() int { return b.payload }

// EncodedLen is at most a few bytes above the length that Build would give now.
func (b *Builder) EncodedLen() int {
	return HeaderLen + len(b.records) + len(b.forms) + len(b.runForm.contentType) + 2*binary.MaxVarintLen32 + 2
}

// Add appends a record. It copies what it needs of r, and takes it as it is: holding
// it to what [Parse] accepts is up to the caller.
func (b *Builder) Add(r *Record) {
	if r.ValueForm == FormJSON && isNull(r.Value) {
		tombstone := *r // or a read in JSON could not tell the two apart
		tombstone.Value = nil
		r = &tombstone
	}
	b.addForm(r)
	var flags byte
	if r.Key != nil {
		flags |= recordHasKey
	}
	if r.Value == nil {
		flags |= recordTombstone
	}
	if r.Timestamp >= 0 {
		flags |= recordHasTimestamp
	}
	if len(r.Headers) > 0 {
		flags |= recordHasHeaders
	}
	out := append(b.records, flags)
	if r.Timestamp >= 0 {
		out = binary.AppendUvarint(out, uint64(r.Timestamp))
	}
	if r.Key != nil {
		out = appendBytes(out, r.Key)
	}
	if r.Value != nil {
		out = appendBytes(out, r.Value)
	}
	if len(r.Headers) > 0 {
		out = binary.AppendUvarint(out, uint64(len(r.Headers)))
		for _, h := range r.Headers {
			out = appendBytes(out, h.Name)
			out = appendBytes(out, h.Value)
		}
	}
	b.records = out
	b.count++
	n := r.PayloadBytes()
	b.payload += n
	b.largest = max(b.largest, n)
}

func (b *Builder) addForm(r *Record) {
	f := formRun{value: r.ValueForm, key: r.KeyForm, contentType: r.ContentType}
	if r.Value == nil {
		f.value, f.contentType = FormJSON, ""
	}
	if r.Key == nil {
		f.key = FormBytes
	}
	if f.value != FormRaw {
		f.contentType = ""
	}
	if b.run > 0 && f == b.runForm {
		b.run++
		return
	}
	b.forms = b.appendRun(b.forms)
	b.run, b.runForm = 1, f
}

// appendRun writes the current run of equal forms to out.
func (b *Builder) appendRun(out []byte) []byte {
	if b.run == 0 {
		return out
	}
	out = binary.AppendUvarint(out, b.run)
	out = append(out, byte(b.runForm.value), byte(b.runForm.key))
	if b.runForm.value == FormRaw {
		out = appendBytes(out, b.runForm.contentType)
	}
	return out
}

// Build encodes the records added so far into a slice of its own. The builder may
// go on or be reset. An empty batch cannot be encoded: Build panics.
func (b *Builder) Build() Batch {
	if b.count == 0 {
		panic("batch: Build of an empty batch")
	}
	out := make([]byte, HeaderLen, HeaderLen+b.EncodedLen())
	out = append(out, b.forms...)
	out = b.appendRun(out)
	formsLen := len(out) - HeaderLen
	out = append(out, b.records...)
	out[0], out[1], out[2], out[3] = magic0, magic1, version, 0
	binary.BigEndian.PutUint32(out[4:], uint32(b.count))
	binary.BigEndian.PutUint32(out[8:], uint32(formsLen))
	binary.BigEndian.PutUint32(out[12:], uint32(len(b.records)))
	binary.BigEndian.PutUint32(out[16:], checksum(out))
	return Batch{
		Bytes:         out,
		Count:         b.count,
		PayloadBytes:  b.payload,
		LargestRecord: b.largest,
		Digest:        digest(b.records),
	}
}

func appendBytes[T ~[]byte | ~string](out []byte, v T) []byte {
	out = binary.AppendUvarint(out, uint64(len(v)))
	return append(out, v...)
}

// checksum is the CRC32C of an encoded batch, its own field left out.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:16], castagnoli), castagnoli, b[HeaderLen:])
}

func digest(records []byte) (d sequence.Digest) {
	sum := sha256.Sum256(records)
	copy(d[:], sum[:])
	return d
}
