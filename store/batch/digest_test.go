package batch_test

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/store/batch"
)

func full() batch.Record {
	return batch.Record{
		Key: []byte("k"), KeyForm: batch.FormText, Value: []byte("1"), ValueForm: batch.FormText, Timestamp: 5,
		Headers: []batch.Header{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}},
	}
}

// What the client said is the payload; how it said it is not.
func TestDigestIgnoresForms(t *testing.T) {
	want := build(full())
	for name, change := range map[string]func(*batch.Record){
		"value as bytes":      func(r *batch.Record) { r.ValueForm = batch.FormBytes },
		"value as JSON":       func(r *batch.Record) { r.ValueForm = batch.FormJSON },
		"value raw":           func(r *batch.Record) { r.ValueForm = batch.FormRaw },
		"value raw and typed": func(r *batch.Record) { r.ValueForm, r.ContentType = batch.FormRaw, "text/plain" },
		"key as bytes":        func(r *batch.Record) { r.KeyForm = batch.FormBytes },
	} {
		r := full()
		change(&r)
		got := build(r)
		if got.Digest != want.Digest {
			t.Errorf("%s: another digest", name)
		}
		if bytes.Equal(got.Bytes, want.Bytes) {
			t.Errorf("%s: the form is not kept", name)
		}
	}
	plain, text := value(batch.FormBytes, "v"), value(batch.FormText, "v")
	if build(plain, plain, text).Digest != build(plain, text, text).Digest {
		t.Error("the digest depends on where the form changes")
	}
}

// Each of these is something else that a client can say.
func TestDigestTellsPayloadsApart(t *testing.T) {
	tombstone := value(batch.FormJSON, "")
	tombstone.Value = nil
	batches := map[string][]batch.Record{
		"full": {full()}, "twice": {full(), full()},
		"tombstone": {tombstone}, "two tombstones": {tombstone, tombstone},
		"empty value": {value(batch.FormText, "")}, "text null": {value(batch.FormText, "null")},
		"text nul": {value(batch.FormText, "nul")}, "a string in JSON": {value(batch.FormJSON, `"nul"`)},
		"spaces in JSON": {value(batch.FormJSON, `[1, 2]`)}, "none": {value(batch.FormJSON, `[1,2]`)},
		"two values": {value(batch.FormText, "a"), value(batch.FormText, "b")},
		"swapped":    {value(batch.FormText, "b"), value(batch.FormText, "a")},
		"one value":  {value(batch.FormText, "ab")},
	}
	for name, change := range map[string]func(*batch.Record){
		"key":                 func(r *batch.Record) { r.Key = []byte("K") },
		"empty key":           func(r *batch.Record) { r.Key = []byte{} },
		"no key":              func(r *batch.Record) { r.Key = nil },
		"value":               func(r *batch.Record) { r.Value = []byte("2") },
		"value is key":        func(r *batch.Record) { r.Key, r.Value = r.Value, r.Key },
		"full but tombstone":  func(r *batch.Record) { r.Value = nil },
		"time":                func(r *batch.Record) { r.Timestamp = 6 },
		"time 0":              func(r *batch.Record) { r.Timestamp = 0 },
		"no time":             func(r *batch.Record) { r.Timestamp = batch.NoTimestamp },
		"no headers":          func(r *batch.Record) { r.Headers = nil },
		"one header":          func(r *batch.Record) { r.Headers = r.Headers[:1] },
		"header value":        func(r *batch.Record) { r.Headers[0].Value = "B" },
		"header name":         func(r *batch.Record) { r.Headers[0].Name = "A" },
		"headers swapped":     func(r *batch.Record) { r.Headers[0], r.Headers[1] = r.Headers[1], r.Headers[0] },
		"header bytes moved":  func(r *batch.Record) { r.Headers[0] = batch.Header{Name: "ab"} },
		"header given twice":  func(r *batch.Record) { r.Headers[1] = r.Headers[0] },
		"empty header in end": func(r *batch.Record) { r.Headers = append(r.Headers, batch.Header{}) },
	} {
		r := full()
		change(&r)
		batches[name] = []batch.Record{r}
	}
	seen := map[[16]byte]string{}
	for name, records := range batches {
		d := build(records...).Digest
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
}

// An outsider must arrive at the same digest: 128 bits of SHA-256 over the records
// section, which begins where the header's lengths say.
func TestDigestIsOfTheRecordsSection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := build(rapid.SliceOfN(records(), 1, 5).Draw(t, "records")...)
		recordsLen := int(b.Bytes[12])<<24 | int(b.Bytes[13])<<16 | int(b.Bytes[14])<<8 | int(b.Bytes[15])
		sum := sha256.Sum256(b.Bytes[len(b.Bytes)-recordsLen:])
		if !bytes.Equal(b.Digest[:], sum[:16]) {
			t.Fatalf("%x, want %x", b.Digest, sum[:16])
		}
	})
}

// The contract says that the JSON value null is a tombstone. It has to be one however
// it comes, or it would be read as one without being one.
func TestNullIsTombstone(t *testing.T) {
	tombstone := value(batch.FormJSON, "")
	tombstone.Value = nil
	for _, null := range []string{"null", " null", "null\r\n\t "} {
		r := value(batch.FormJSON, null)
		if got, want := build(r), build(tombstone); !bytes.Equal(got.Bytes, want.Bytes) || got.PayloadBytes != 0 {
			t.Errorf("%q: %x, want %x", null, got.Bytes, want.Bytes)
		}
		if string(r.Value) != null {
			t.Error("Add has changed its argument")
		}
	}
	for _, other := range []batch.Record{value(batch.FormText, "null"), value(batch.FormBytes, "null"), value(batch.FormJSON, `"null"`)} {
		if got := read(t, build(other).Bytes); string(got[0].Value) != string(other.Value) {
			t.Errorf("%q of form %d is read as %q", other.Value, other.ValueForm, got[0].Value)
		}
	}
}

// What a tombstone's or a missing key's form would be is nobody's business.
func TestFormsOfNothingDoNotCount(t *testing.T) {
	want := build(batch.Record{Timestamp: batch.NoTimestamp, ValueForm: batch.FormJSON})
	for form := batch.FormBytes; form <= batch.FormRaw; form++ {
		got := build(batch.Record{Timestamp: batch.NoTimestamp, ValueForm: form, KeyForm: batch.FormText, ContentType: "text/csv"})
		if !bytes.Equal(got.Bytes, want.Bytes) {
			t.Errorf("form %d: %x, want %x", form, got.Bytes, want.Bytes)
		}
	}
	plain, typed := value(batch.FormText, "v"), value(batch.FormText, "v")
	typed.ContentType = "text/csv"
	if got, want := build(plain, typed), build(plain, plain); !bytes.Equal(got.Bytes, want.Bytes) {
		t.Error("a media type that no raw value has is kept")
	}
}
