package batch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/store/batch"
)

// sample is a batch that has everything in it.
func sample() []byte {
	tombstone := batch.Record{Key: []byte("k"), Timestamp: batch.NoTimestamp}
	raw := value(batch.FormRaw, "\x00\xff")
	raw.ContentType = "image/png"
	return build(full(), value(batch.FormJSON, `{"a":1}`), value(batch.FormBytes, "\xff"), raw, raw, tombstone).Bytes
}

// No single byte can be damaged without notice, and none that is missing or too much.
func TestDamageIsNoticed(t *testing.T) {
	data := sample()
	count := int32(binary.BigEndian.Uint32(data[4:]))
	refused := func(what string, damaged []byte) {
		t.Helper()
		_, perr := batch.Parse(damaged)
		_, rerr := batch.NewReader(damaged)
		for _, err := range []error{perr, rerr, batch.Verify(damaged, count)} {
			if !errors.Is(err, batch.ErrMalformed) && !errors.Is(err, batch.ErrChecksum) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	for i := range data {
		for bits := 1; bits < 256; bits++ {
			damaged := bytes.Clone(data)
			damaged[i] ^= byte(bits)
			refused("a flipped byte", damaged)
		}
		refused("cut short", data[:i])
	}
	refused("a byte too many", append(bytes.Clone(data), 0))
	refused("nothing", nil)
}

func TestChecksum(t *testing.T) {
	data := sample()
	if got, want := batch.CRC(data), binary.BigEndian.Uint32(data[16:]); got != want {
		t.Errorf("CRC() = %x, want %x", got, want)
	}
	data[len(data)-1] ^= 1
	if _, err := batch.Parse(data); !errors.Is(err, batch.ErrChecksum) || errors.Is(err, batch.ErrMalformed) {
		t.Errorf("a damaged record: %v", err)
	}
}

// Batches with a right checksum that only a wrong encoder makes.
func TestParseRefuses(t *testing.T) {
	text := "\x01\x01\x00" // a run of one record whose value is text
	raw := func(ct string) string { return "\x01\x03\x00" + string(byte(len(ct))) + ct }
	cases := []struct {
		name           string
		count          uint32
		forms, records string
		why            string
	}{
		{"no record", 0, "", "", "0 records"},
		{"no record, but a form", 0, text, "\x00\x00", "0 records"},
		{"more records than bytes", 3, "\x03\x01\x00", "\x02\x02", "3 records"},
		{"a count beyond int32", 1 << 31, text, "\x00\x00", "records in"},
		{"a record less than counted", 3, "\x03\x01\x00", "\x00\x00\x00\x00", "ends early"},
		{"a record more than counted", 1, text, "\x00\x00\x00\x00", "2 bytes of records"},
		{"a byte after the last record", 1, text, "\x00\x01a\x00", "1 bytes of records"},
		{"an unknown flag", 1, text, "\x10\x00", "unknown record flags"},
		{"the highest flag", 1, text, "\x80\x00", "unknown record flags"},

		{"no form", 1, "", "\x00\x00", "number"},
		{"a form cut short", 1, "\x01\x01", "\x00\x00", "forms end early"},
		{"a run of no records", 1, "\x00\x01\x00", "\x00\x00", "forms end early"},
		{"a run too long", 1, "\x02\x01\x00", "\x00\x00", "a run of 1"},
		{"a run beyond all counts", 1, "\x81\x80\x80\x80\x10\x01\x00", "\x00\x00", "number"},
		{"a run too much", 1, text + "\x01\x00\x00", "\x00\x00", "3 of forms"},
		{"a byte of forms too much", 1, text + "\x01", "\x00\x00", "1 of forms"},
		{"a run length of a longer form", 1, "\x81\x00\x01\x00", "\x00\x00", "number"},
		{"an unknown value form", 1, "\x01\x04\x00", "\x00\x00", "unknown form"},
		{"a key of JSON", 1, "\x01\x01\x02", "\x01\x00\x00", "unknown form"},
		{"a raw key", 1, "\x01\x01\x03", "\x01\x00\x00", "unknown form"},
		{"an equal run split", 2, text + text, "\x00\x00\x00\x00", "same form"},
		{"an equal raw run split", 2, raw("a/b") + raw("a/b"), "\x00\x00\x00\x00", "same form"},
		{"a media type cut short", 1, "\x01\x03\x00\x04a/b", "\x00\x00", "ends early"},
		{"a media type that is not UTF-8", 1, raw("a/\xff"), "\x00\x00", "media type"},

		{"a key form without a key", 1, "\x01\x01\x01", "\x00\x00", "wrong form"},
		{"a text form of a tombstone", 1, text, "\x02", "wrong form"},
		{"a bytes form of a tombstone", 1, "\x01\x00\x00", "\x02", "wrong form"},
		{"a raw form of a tombstone", 1, raw("a/b"), "\x02", "wrong form"},

		{"a value cut short", 1, text, "\x00\x03ab", "ends early"},
		{"a key cut short", 1, "\x01\x01\x01", "\x01\x05abc", "number"},
		{"a length of a longer form", 1, text, "\x00\x81\x00a", "number"},
		{"a length of ten bytes", 1, text, "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "number"},
		{"a length beyond 64 bits", 1, text, "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "number"},
		{"a timestamp after 9999", 1, text, "\x04" + string(binary.AppendUvarint(nil, batch.MaxTimestamp+1)) + "\x00", "number"},
		{"a timestamp of a longer form", 1, text, "\x04\x85\x00\x00", "number"},
		{"an empty list of headers", 1, text, "\x08\x00\x00", "empty list of headers"},
		{"headers cut short", 1, text, "\x08\x00\x02\x01a\x01b", "number"},
		{"more headers than bytes", 1, text, "\x08\x00\x7f\x00\x00", "number"},
		{"a header without a value", 1, text, "\x08\x00\x01\x01a", "number"},

		{"a text value that is not UTF-8", 1, text, "\x00\x01\xff", "not UTF-8"},
		{"a text key that is not UTF-8", 1, "\x01\x01\x01", "\x01\x01\xff\x00", "not UTF-8"},
		{"half a surrogate pair as UTF-8", 1, text, "\x00\x03\xed\xa0\x80", "not UTF-8"},
		{"a header name that is not UTF-8", 1, text, "\x08\x00\x01\x01\xff\x01a", "not UTF-8"},
		{"a header value that is not UTF-8", 1, text, "\x08\x00\x01\x01a\x01\xff", "not UTF-8"},
		{"JSON that is cut", 1, "\x01\x02\x00", "\x00\x02[1", "not JSON"},
		{"JSON that is nothing", 1, "\x01\x02\x00", "\x00\x00", "not JSON"},
		{"two JSON values", 1, "\x01\x02\x00", "\x00\x031 2", "not JSON"},
		{"JSON that is not UTF-8", 1, "\x01\x02\x00", "\x00\x03\"\xff\"", "not JSON"},
		{"JSON null", 1, "\x01\x02\x00", "\x00\x04null", "tombstone"},
		{"JSON null with spaces", 1, "\x01\x02\x00", "\x00\x06 null\n", "tombstone"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, err := batch.Parse(frame(c.count, []byte(c.forms), []byte(c.records)))
			if !errors.Is(err, batch.ErrMalformed) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, want it to say %q", err, c.why)
			}
			if b.Bytes != nil || b.Count != 0 {
				t.Errorf("gives %+v all the same", b)
			}
		})
	}
}

// Frames that no sections can mend. Their checksums are right.
func TestParseRefusesFrames(t *testing.T) {
	good := frame(1, []byte("\x01\x01\x00"), []byte("\x00\x01a"))
	if _, err := batch.Parse(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(b []byte){
		"no magic":          func(b []byte) { b[0] = 'o' },
		"half a magic":      func(b []byte) { b[1] = 'l' },
		"a later version":   func(b []byte) { b[2] = 2 },
		"version 0":         func(b []byte) { b[2] = 0 },
		"reserved bits":     func(b []byte) { b[3] = 1 },
		"forms too long":    func(b []byte) { b[8] = 0xff },
		"records too long":  func(b []byte) { b[12] = 0xff },
		"records too short": func(b []byte) { b[15]-- },
		"lengths that wrap": func(b []byte) { copy(b[8:], "\xff\xff\xff\xff\xff\xff\xff\xff") },
	} {
		b := bytes.Clone(good)
		change(b)
		if _, err := batch.Parse(seal(b[:16], b[batch.HeaderLen:])); !errors.Is(err, batch.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A reader that is given what Parse would refuse must not run wild.
func TestReaderStopsAtFaults(t *testing.T) {
	rd, err := batch.NewReader(frame(2, []byte("\x02\x01\x00"), []byte("\x00\x01a\x00\x05b")))
	if err != nil {
		t.Fatal(err)
	}
	var rec batch.Record
	if ok, err := rd.Next(&rec); !ok || err != nil || string(rec.Value) != "a" {
		t.Fatalf("first record: %v, %v, %+v", ok, err, rec)
	}
	if ok, err := rd.Next(&rec); ok || !errors.Is(err, batch.ErrMalformed) || !strings.Contains(err.Error(), "record 1") {
		t.Errorf("second record: %v, %v", ok, err)
	}
}

// What Parse takes that may look strange.
func TestParseTakes(t *testing.T) {
	long := strings.Repeat("m", 127)
	for name, data := range map[string][]byte{
		"an empty key and value":     frame(1, []byte("\x01\x01\x01"), []byte("\x01\x00\x00")),
		"an empty media type":        frame(1, []byte("\x01\x03\x00\x00"), []byte("\x00\x00")),
		"a long media type":          frame(1, []byte("\x01\x03\x00\x7f"+long), []byte("\x00\x00")),
		"raw runs of two types":      frame(2, []byte("\x01\x03\x00\x00\x01\x03\x00\x01a"), []byte("\x00\x00\x00\x00")),
		"runs that come back":        frame(3, []byte("\x01\x01\x00\x01\x00\x00\x01\x01\x00"), []byte("\x00\x00\x00\x00\x00\x00")),
		"runs that differ in a key":  frame(2, []byte("\x01\x01\x00\x01\x01\x01"), []byte("\x00\x00\x01\x00\x00")),
		"an empty header":            frame(1, []byte("\x01\x01\x00"), []byte("\x08\x00\x01\x00\x00")),
		"the last timestamp":         frame(1, []byte("\x01\x01\x00"), append(binary.AppendUvarint([]byte{4}, batch.MaxTimestamp), 0)),
		"a tombstone with a key":     frame(1, []byte("\x01\x02\x01"), []byte("\x03\x01k")),
		"a tombstone with all of it": frame(1, []byte("\x01\x02\x00"), []byte("\x0f\x07\x01k\x01\x01a\x01b")),
	} {
		if _, err := batch.Parse(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever parses is what the builder makes of the same records, byte for byte: a
// batch has one encoding.
func FuzzParse(f *testing.F) {
	f.Add(sample())
	f.Add(build(value(batch.FormText, "")).Bytes)
	f.Add(frame(2, []byte("\x01\x01\x00\x01\x01\x00"), []byte("\x00\x00\x00\x00")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > batch.HeaderLen {
			checkParse(t, seal(data[:16], data[batch.HeaderLen:])) // or hardly anything would get past the checksum
		}
		checkParse(t, data)
	})
}

func checkParse(t *testing.T, data []byte) {
	t.Helper()
	b, err := batch.Parse(data)
	if err != nil {
		if !errors.Is(err, batch.ErrMalformed) && !errors.Is(err, batch.ErrChecksum) {
			t.Fatalf("%v", err)
		}
		return
	}
	again := build(read(t, data)...)
	if !bytes.Equal(again.Bytes, data) || again.Digest != b.Digest || again.Count != b.Count ||
		again.PayloadBytes != b.PayloadBytes || again.LargestRecord != b.LargestRecord {
		t.Fatalf("%x\nis encoded again as\n%x", data, again.Bytes)
	}
	if err := batch.Verify(data, b.Count); err != nil {
		t.Fatal(err)
	}
}
