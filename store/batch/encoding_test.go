package batch_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/store/batch"
)

// frame puts two sections behind a header, as openapi/BATCH.md tells anyone to do it.
// It shares no code with the package.
func frame(count uint32, forms, records []byte) []byte {
	b := []byte{'O', 'L', 1, 0}
	b = binary.BigEndian.AppendUint32(b, count)
	b = binary.BigEndian.AppendUint32(b, uint32(len(forms)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(records)))
	return seal(b, slices.Concat(forms, records))
}

// seal puts the checksum between the head of a header and the sections.
func seal(head, sections []byte) []byte {
	sum := crc32.Checksum(slices.Concat(head, sections), crc32.MakeTable(crc32.Castagnoli))
	return slices.Concat(head, binary.BigEndian.AppendUint32(nil, sum), sections)
}

func build(records ...batch.Record) batch.Batch {
	var b batch.Builder
	for i := range records {
		b.Add(&records[i])
	}
	return b.Build()
}

// value is a record of a value alone.
func value(form batch.Form, v string) batch.Record {
	return batch.Record{Value: []byte(v), ValueForm: form, Timestamp: batch.NoTimestamp}
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// read takes an encoded batch apart. It copies what the reader hands out.
func read(t tester, data []byte) []batch.Record {
	t.Helper()
	rd, err := batch.NewReader(data)
	if err != nil {
		t.Fatal(err)
	}
	var all []batch.Record
	var rec batch.Record
	for {
		ok, err := rd.Next(&rec)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		r := rec
		r.Key, r.Value, r.Headers = slices.Clone(rec.Key), slices.Clone(rec.Value), slices.Clone(rec.Headers)
		if len(r.Headers) == 0 {
			r.Headers = nil
		}
		all = append(all, r)
	}
	if rd.Len() != len(all) {
		t.Fatalf("Len() is %d, there were %d records", rd.Len(), len(all))
	}
	return all
}

// records generates records of all forms, each in the shape that a read gives back.
func records() *rapid.Generator[batch.Record] {
	return rapid.Custom(func(t *rapid.T) batch.Record {
		r := batch.Record{Timestamp: batch.NoTimestamp}
		r.Key, r.KeyForm = key(t)
		r.ValueForm = batch.Form(rapid.IntRange(0, 3).Draw(t, "form"))
		switch r.ValueForm {
		case batch.FormBytes:
			r.Value = rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		case batch.FormText:
			r.Value = []byte(rapid.String().Draw(t, "text"))
		case batch.FormJSON: // nil is a tombstone
			r.Value = rapid.SampledFrom([][]byte{
				nil, []byte(`"null"`), []byte(`{"a": [1, 2.50]}`), []byte(" true\n"), []byte("[null]"), []byte("0"),
			}).Draw(t, "json")
		case batch.FormRaw:
			r.Value = rapid.SliceOf(rapid.Byte()).Draw(t, "raw")
			r.ContentType = rapid.SampledFrom([]string{"", "text/csv", "image/png"}).Draw(t, "media type")
		}
		if rapid.Bool().Draw(t, "timed") {
			r.Timestamp = rapid.SampledFrom([]int64{0, 1, 127, 128, 1<<40 + 7, batch.MaxTimestamp}).Draw(t, "timestamp")
		}
		for range rapid.IntRange(-2, 3).Draw(t, "headers") {
			r.Headers = append(r.Headers, batch.Header{
				Name: rapid.String().Draw(t, "name"), Value: rapid.String().Draw(t, "header"),
			})
		}
		return r
	})
}

func key(t *rapid.T) ([]byte, batch.Form) {
	switch rapid.IntRange(0, 2).Draw(t, "key form") {
	case 0:
		return nil, batch.FormBytes
	case 1:
		return rapid.SliceOf(rapid.Byte()).Draw(t, "key"), batch.FormBytes
	}
	return []byte(rapid.String().Draw(t, "key")), batch.FormText
}
