package server_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/store/batch"
)

// storedBatches decodes a read of batches: the value and offset of every record.
func storedBatches(t *testing.T, body []byte) (offsets []int64, values []string) {
	t.Helper()
	for len(body) > 0 {
		if len(body) < 16+batch.HeaderLen {
			t.Fatalf("%d bytes are left, less than a batch", len(body))
		}
		offset, at := int64(binary.BigEndian.Uint64(body)), binary.BigEndian.Uint64(body[8:])
		if at < 1_700_000_000_000 {
			t.Errorf("the batch at offset %d arrived at %d ms", offset, at)
		}
		n := batch.HeaderLen + binary.BigEndian.Uint32(body[16+8:]) + binary.BigEndian.Uint32(body[16+12:])
		rd, err := batch.NewReader(body[16 : 16+n])
		if err != nil {
			t.Fatal(err)
		}
		var rec batch.Record
		for ok, err := rd.Next(&rec); ok; ok, err = rd.Next(&rec) {
			if err != nil {
				t.Fatal(err)
			}
			offsets, values = append(offsets, offset), append(values, string(rec.Value))
			offset++
		}
		body = body[16+n:]
	}
	return offsets, values
}

// A read of batches gives them whole, as they are stored, and says where to go on.
func TestReadBatches(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	fill(e, p, 20, 7) // batches at 0, 7 and 14
	accept := []string{"Accept: " + batch.ContentType}
	for _, c := range []struct {
		query    string
		from, to int64
	}{
		{"", 0, 20},
		{"?offset=8", 7, 20},
		{"?offset=0&limit=1", 0, 7},
		{"?offset=0&limit=8", 0, 14},
		{"?offset=7&maxBytes=1", 7, 14},
		{"?offset=20", 20, 20},
	} {
		a := e.get(p+"/records"+c.query, accept...).is(200)
		offsets, values := storedBatches(t, a.body)
		if int64(len(offsets)) != c.to-c.from || a.header.Get("Next-Offset") != strconv.FormatInt(c.to, 10) {
			t.Errorf("%q gives %d records, Next-Offset %s, want %d to %d", c.query, len(offsets), a.header.Get("Next-Offset"), c.from, c.to)
		}
		for i, offset := range offsets {
			if offset != c.from+int64(i) || values[i] != fmt.Sprint(offset) {
				t.Errorf("%q: record %d has offset %d and value %s", c.query, i, offset, values[i])
			}
		}
		if tag := a.header.Get("Etag"); (tag == "") != (c.to == 20) {
			t.Errorf("%q has the tag %q", c.query, tag)
		} else if tag != "" {
			e.get(p+"/records"+c.query, append(accept, "If-None-Match: "+tag)...).is(304)
			if other := e.get(p + "/records" + c.query).is(200).header.Get("Etag"); other == tag {
				t.Errorf("%q has the same tag as JSON", c.query)
			}
		}
	}
}

// A batch longer than what is written at once comes whole.
func TestReadLargeBatch(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	value := make([]byte, 900<<10)
	for i := range value {
		value[i] = byte(i * 7)
	}
	e.do("POST", p+"/batches", string(value), "Content-Type: application/octet-stream").is(200)
	e.do("POST", p+"/batches", "after", "Content-Type: application/octet-stream").is(200)
	_, values := storedBatches(t, e.get(p+"/records", "Accept: "+batch.ContentType).is(200).body)
	if len(values) != 2 || values[0] != string(value) || values[1] != "after" {
		t.Errorf("%d values came back, or not as they were sent", len(values))
	}
}

// However batches and their prefixes meet the size of what is written at once, nothing is
// lost between two writes.
func TestReadBatchesAcrossWrites(t *testing.T) {
	e := newEnv(t)
	p := e.topic("t")
	var want []string
	for i := range 300 { // 70 to 1,566 bytes, more than 200 KiB in all
		value := strings.Repeat("v", 5*i+40)
		e.do("POST", p+"/batches", value, "Content-Type: application/octet-stream").is(200)
		want = append(want, value)
	}
	for skip := range 20 {
		_, got := storedBatches(t, e.get(fmt.Sprintf("%s/records?limit=1000&offset=%d", p, skip*7), "Accept: "+batch.ContentType).is(200).body)
		if !slices.Equal(got, want[skip*7:]) {
			t.Fatalf("from offset %d on %d values came back, or others", skip*7, len(got))
		}
	}
}
