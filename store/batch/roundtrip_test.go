package batch_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/oncelog/oncelog/store/batch"
)

func TestRoundTrip(t *testing.T) {
	var b batch.Builder // one for all, so that Reset is tried too
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(records(), 1, 20).Draw(t, "records")
		b.Reset()
		payload, largest := 0, 0
		for i := range want {
			b.Add(&want[i])
			payload += want[i].PayloadBytes()
			largest = max(largest, want[i].PayloadBytes())
		}
		if b.Len() != len(want) || b.PayloadBytes() != payload {
			t.Fatalf("builder says %d records of %d bytes, want %d of %d", b.Len(), b.PayloadBytes(), len(want), payload)
		}
		built := b.Build()
		if built.Count != int32(len(want)) || built.PayloadBytes != payload || built.LargestRecord != largest {
			t.Fatalf("built %d records of %d bytes, the largest %d; want %d, %d, %d",
				built.Count, built.PayloadBytes, built.LargestRecord, len(want), payload, largest)
		}
		if b.EncodedLen() < len(built.Bytes) {
			t.Fatalf("EncodedLen is %d, the batch has %d bytes", b.EncodedLen(), len(built.Bytes))
		}
		parsed, err := batch.Parse(built.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(built, parsed); d != "" {
			t.Fatalf("built (−) and parsed (+):\n%s", d)
		}
		if d := cmp.Diff(want, read(t, built.Bytes)); d != "" {
			t.Fatalf("added (−) and read (+):\n%s", d)
		}
		if err := batch.Verify(built.Bytes, built.Count); err != nil {
			t.Fatal(err)
		}
		if err := batch.Verify(built.Bytes, built.Count+1); err == nil {
			t.Fatal("another count is not noticed")
		}
	})
}

// PayloadBytes is what limits speak of; a change of it changes who is refused.
func TestPayloadBytes(t *testing.T) {
	r := batch.Record{
		Key: []byte("12"), Value: []byte("345"), Timestamp: batch.MaxTimestamp,
		Headers:   []batch.Header{{Name: "6789", Value: "01234"}, {Name: "5", Value: ""}},
		ValueForm: batch.FormRaw, ContentType: "text/plain",
	}
	if got := r.PayloadBytes(); got != 15 {
		t.Errorf("PayloadBytes() = %d, want 15", got)
	}
}

// Records of a kind share a run of forms: a long batch costs little per record.
func TestRunsAreShared(t *testing.T) {
	var b batch.Builder
	for range 1000 {
		b.Add(&batch.Record{Value: []byte("v"), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
	}
	if got, want := len(b.Build().Bytes), batch.HeaderLen+4+1000*3; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

func TestBuildGoesOn(t *testing.T) {
	one, two := value(batch.FormText, "one"), value(batch.FormText, "two")
	var b batch.Builder
	b.Add(&one)
	first := b.Build()
	kept := bytes.Clone(first.Bytes)
	b.Add(&two)
	if got, want := b.Build(), build(one, two); !bytes.Equal(got.Bytes, want.Bytes) || got.Digest != want.Digest {
		t.Errorf("after a Build\n%x, want\n%x", got.Bytes, want.Bytes)
	}
	b.Reset()
	for range 3 {
		b.Add(&two)
	}
	if got, want := b.Build(), build(two, two, two); !bytes.Equal(got.Bytes, want.Bytes) || got.LargestRecord != 3 {
		t.Errorf("after Reset\n%x, want\n%x", got.Bytes, want.Bytes)
	}
	if !bytes.Equal(first.Bytes, kept) {
		t.Error("a batch has changed after the builder went on")
	}
}

// A caller may use its buffers again: Add copies.
func TestAddCopies(t *testing.T) {
	buf := []byte("value")
	r := batch.Record{Key: buf[:2], Value: buf, Headers: []batch.Header{{Name: "n", Value: "v"}}, Timestamp: batch.NoTimestamp}
	var b batch.Builder
	b.Add(&r)
	want := b.Build()
	clear(buf)
	r.Headers[0] = batch.Header{}
	if got := b.Build(); !bytes.Equal(got.Bytes, want.Bytes) {
		t.Errorf("%x, want %x", got.Bytes, want.Bytes)
	}
}

func TestBuildOfNothingPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var b batch.Builder
	b.Build()
}

// The bytes that a reader hands out end where they end: an append to them must not
// write into the next field.
func TestReadBytesAreCapped(t *testing.T) {
	r := batch.Record{Key: []byte("key"), Value: []byte("value"), Timestamp: batch.NoTimestamp}
	data := build(r, r).Bytes
	rd, err := batch.NewReader(data)
	if err != nil {
		t.Fatal(err)
	}
	var rec batch.Record
	if _, err := rd.Next(&rec); err != nil {
		t.Fatal(err)
	}
	kept := bytes.Clone(data)
	_ = append(rec.Key, strings.Repeat("x", 10)...)
	_ = append(rec.Value, strings.Repeat("x", 10)...)
	if !bytes.Equal(data, kept) {
		t.Error("the batch has changed")
	}
}
