package sequence_test

import (
	"testing"

	"github.com/oncelog/oncelog/store/sequence"
)

// step is what an engine does for a batch in order.
func step(s *sequence.State) {
	a := sequence.Attempt{BaseSeq: s.NextSeq(), Count: 3, Digest: payloadA}
	if sequence.Check(s, a).Kind == sequence.Append {
		*s = s.Apply(a, a.BaseSeq, a.BaseSeq)
	}
}

func BenchmarkCheckApply(b *testing.B) {
	b.ReportAllocs()
	var s sequence.State
	for b.Loop() {
		step(&s)
	}
}

func BenchmarkCheckDuplicate(b *testing.B) {
	b.ReportAllocs()
	s := run(0, 7)
	a := try(0, 4, 2, payloadA) // the oldest that is remembered
	for b.Loop() {
		if sequence.Check(&s, a).Kind != sequence.Duplicate {
			b.Fatal("no duplicate")
		}
	}
}

// BenchmarkEncode and BenchmarkDecode are of a state with a full window, as snapshots
// hold it.
func BenchmarkEncode(b *testing.B) {
	b.ReportAllocs()
	s := run(0, 7)
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = s.AppendBinary(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	s := run(0, 7)
	buf, err := s.AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, _, err := sequence.DecodeState(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRuleAllocatesNothing(t *testing.T) {
	var s sequence.State
	retry := try(0, 0, 3, payloadA)
	if n := testing.AllocsPerRun(100, func() {
		step(&s)
		sequence.Check(&s, retry)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s.NextSeq() == 0 {
		t.Error("nothing was appended")
	}
}
