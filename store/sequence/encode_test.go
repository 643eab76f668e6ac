package sequence_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/oncelog/oncelog/store/sequence"
)

func encode(t testing.TB, s sequence.State) []byte {
	t.Helper()
	b, err := s.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The bytes lie in snapshots on disk: a change of them needs a new version.
func TestEncodingIsFixed(t *testing.T) {
	zeros := "000000000000000000000000000000"
	live := after(try(3, 0, 2, payloadA), try(3, 2, 300, payloadB))
	for name, c := range map[string]struct {
		state sequence.State
		want  string
	}{
		"live": {live, "0100" + "03" + "ae02" + "02" +
			"64" + "e807" + "02" + "01" + zeros +
			"70" + "e907" + "ac02" + "02" + zeros},
		"tombstone": {live.Expire(5000), "0101" + "03" + "ae02" + "8827"},
	} {
		if got := hex.EncodeToString(encode(t, c.state)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestNothingHasNoEncoding(t *testing.T) {
	var s sequence.State
	if b, err := s.AppendBinary([]byte("x")); err == nil || string(b) != "x" {
		t.Errorf("AppendBinary = %q, %v", b, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	uvarints := func(head string, vs ...uint64) []byte {
		b := []byte(head)
		for _, v := range vs {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	digest := make([]byte, 16)
	live := encode(t, run(2, 7))
	tomb := encode(t, expired(run(2, 7)))
	cases := map[string][]byte{
		"nothing":                    nil,
		"another version":            append([]byte{2}, live[1:]...),
		"an unknown flag":            append([]byte{1, 2}, live[2:]...),
		"an empty window":            uvarints("\x01\x00", 2, 14, 0),
		"six batches":                append(uvarints("\x01\x00", 2, 14, 6), bytes.Repeat(append([]byte{0, 0, 1}, digest...), 6)...),
		"a batch of no records":      append(uvarints("\x01\x00", 2, 14, 1, 0, 0, 0), digest...),
		"a batch of too many":        append(uvarints("\x01\x00", 2, 1<<40, 1, 0, 0, 1<<31), digest...),
		"sequences below 0":          append(uvarints("\x01\x00", 2, 14, 1, 0, 0, 15), digest...),
		"an epoch above Max":         uvarints("\x01\x01", sequence.Max+1, 1, 1),
		"a next above Max + 1":       uvarints("\x01\x01", 1, sequence.Max+2, 1),
		"a time above Max":           uvarints("\x01\x01", 1, 1, sequence.Max+1),
		"an offset above Max":        append(uvarints("\x01\x00", 2, 14, 1, sequence.Max+1, 0, 1), digest...),
		"a number of a longer form":  {1, 1, 0x81, 0x00, 1, 1},
		"a number without end":       append([]byte{1, 1}, bytes.Repeat([]byte{0x80}, 16)...),
		"a number beyond 64 bits":    append([]byte{1, 1}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 1),
		"a tombstone with a window?": append([]byte{1, 3}, live[2:]...),
	}
	for i := range live {
		cases["a live state cut to "+hex.EncodeToString([]byte{byte(i)})] = live[:i]
	}
	for i := range tomb {
		cases["a tombstone cut to "+hex.EncodeToString([]byte{byte(i)})] = tomb[:i]
	}
	for name, b := range cases {
		s, rest, err := sequence.DecodeState(b)
		if !errors.Is(err, sequence.ErrEncoding) || s != (sequence.State{}) || rest != nil {
			t.Errorf("%s: %+v, %x, %v", name, s, rest, err)
		}
	}
}

// Whatever decodes is a sound state, and its bytes are the only ones for it.
func FuzzDecodeState(f *testing.F) {
	f.Add(encode(f, run(2, 1)))
	f.Add(encode(f, run(sequence.Max, 9)))
	f.Add(encode(f, expired(run(2, 7))))
	f.Add(encode(f, after(try(0, sequence.Max, 1, payloadB))))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, rest, err := sequence.DecodeState(data)
		if err != nil {
			if !errors.Is(err, sequence.ErrEncoding) || s != (sequence.State{}) {
				t.Fatalf("%+v, %v", s, err)
			}
			return
		}
		if again := append(encode(t, s), rest...); !bytes.Equal(again, data) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", data, s, again)
		}
		if what := invariant(&s); what != "" {
			t.Fatalf("%x: %s", data, what)
		}
		for _, b := range s.Recent() {
			a := try(s.Epoch(), b.BaseSeq, b.Count(), b.Digest)
			if v := sequence.Check(&s, a); v.Kind != sequence.Duplicate || v.Original != b {
				t.Fatalf("%x: %+v is %+v", data, a, v)
			}
		}
	})
}
