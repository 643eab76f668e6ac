package sequence_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/store/sequence"
)

// The payloads of the tests.
var (
	payloadA = sequence.Digest{1}
	payloadB = sequence.Digest{2}
)

func try(epoch, base int64, count int32, d sequence.Digest) sequence.Attempt {
	return sequence.Attempt{Epoch: epoch, BaseSeq: base, Count: count, Digest: d}
}

// after stores batches of payload A one behind the other: offsets from 100 on with a
// gap of 10 between batches, arrivals 1000, 1001, ….
func after(attempts ...sequence.Attempt) sequence.State {
	var s sequence.State
	offset := int64(100)
	for i, a := range attempts {
		s = s.Apply(a, offset, int64(1000+i))
		offset += int64(a.Count) + 10
	}
	return s
}

// run stores n batches of two records in an epoch.
func run(epoch int64, n int) sequence.State {
	var attempts []sequence.Attempt
	for i := range n {
		attempts = append(attempts, try(epoch, int64(2*i), 2, payloadA))
	}
	return after(attempts...)
}

func expired(s sequence.State) sequence.State { return s.Expire(5000) }

// Lines of the table in the package comment.
const (
	lineNew          = "nothing known | BaseSeq = 0 | Append"
	lineNewGap       = "nothing known | BaseSeq > 0 | OutOfOrder, 0 expected | (D1)"
	lineExpired      = "expired (tombstone) | Epoch ≤ the tombstone's | Expired | (D6)"
	lineExpiredNew   = "expired (tombstone) | higher epoch, BaseSeq = 0 | Append"
	lineExpiredGap   = "expired (tombstone) | higher epoch, BaseSeq > 0 | OutOfOrder, 0 expected"
	lineFenced       = "known | lower epoch | Fenced"
	lineEpoch        = "known | higher epoch, BaseSeq = 0 | Append, the window starts anew"
	lineEpochGap     = "known | higher epoch, BaseSeq > 0 | OutOfOrder, 0 expected"
	lineNext         = "known, same epoch | BaseSeq = next | Append"
	lineGap          = "known, same epoch | BaseSeq > next | OutOfOrder, next expected"
	lineAcross       = "known, same epoch | last ≥ next | Overlap | (D10)"
	lineDuplicate    = "known, same epoch | a remembered range, same digest | Duplicate"
	lineReused       = "known, same epoch | a remembered range, other digest | Reused | (D3)"
	lineForgotten    = "known, same epoch | BaseSeq < first | Forgotten: a duplicate whose offsets are gone | (D2)"
	lineAnythingElse = "known, same epoch | anything else | Overlap | (D10)"
)

var table = []struct {
	line, name string
	state      sequence.State
	attempt    sequence.Attempt
	kind       sequence.Kind
	expected   int64
	original   int64 // base offset, for Duplicate and Reused
}{
	{line: lineNew, name: "first batch", attempt: try(0, 0, 3, payloadA), kind: sequence.Append},
	{line: lineNew, name: "first batch in any epoch", attempt: try(9, 0, 3, payloadA), kind: sequence.Append},
	{line: lineNew, name: "the highest epoch", attempt: try(sequence.Max, 0, 1, payloadA), kind: sequence.Append},
	{line: lineNewGap, name: "first batch was overtaken", attempt: try(0, 3, 1, payloadA), kind: sequence.OutOfOrder},
	{line: lineNewGap, name: "far ahead", attempt: try(0, sequence.Max, 1, payloadA), kind: sequence.OutOfOrder},

	{line: lineExpired, name: "next of the same epoch", state: expired(run(2, 3)), attempt: try(2, 6, 1, payloadA), kind: sequence.Expired},
	{line: lineExpired, name: "a stored batch", state: expired(run(2, 3)), attempt: try(2, 4, 2, payloadA), kind: sequence.Expired},
	{line: lineExpired, name: "anew in the same epoch", state: expired(run(2, 3)), attempt: try(2, 0, 1, payloadB), kind: sequence.Expired},
	{line: lineExpired, name: "a lower epoch", state: expired(run(2, 3)), attempt: try(1, 0, 1, payloadB), kind: sequence.Expired},
	{line: lineExpiredNew, name: "next epoch", state: expired(run(2, 3)), attempt: try(3, 0, 1, payloadA), kind: sequence.Append},
	{line: lineExpiredNew, name: "some later epoch", state: expired(run(2, 3)), attempt: try(sequence.Max, 0, 1, payloadA), kind: sequence.Append},
	{line: lineExpiredGap, name: "next epoch goes on", state: expired(run(2, 3)), attempt: try(3, 6, 1, payloadA), kind: sequence.OutOfOrder},

	{line: lineFenced, name: "next sequence", state: run(2, 3), attempt: try(1, 6, 1, payloadA), kind: sequence.Fenced},
	{line: lineFenced, name: "a gap: the epoch's error wins", state: run(2, 3), attempt: try(1, 60, 1, payloadA), kind: sequence.Fenced},
	{line: lineFenced, name: "a stored range: still no duplicate", state: run(2, 3), attempt: try(1, 4, 2, payloadA), kind: sequence.Fenced},
	{line: lineEpoch, name: "next epoch", state: run(2, 3), attempt: try(3, 0, 2, payloadA), kind: sequence.Append},
	{line: lineEpoch, name: "epochs may be skipped", state: run(2, 3), attempt: try(sequence.Max, 0, 2, payloadB), kind: sequence.Append},
	{line: lineEpochGap, name: "goes on instead of starting anew", state: run(2, 3), attempt: try(3, 6, 2, payloadA), kind: sequence.OutOfOrder},
	{line: lineEpochGap, name: "a stored range of the old epoch", state: run(2, 3), attempt: try(3, 2, 2, payloadA), kind: sequence.OutOfOrder},

	{line: lineNext, name: "goes on", state: run(2, 3), attempt: try(2, 6, 5, payloadA), kind: sequence.Append, expected: 6},
	{
		line: lineNext, name: "the last sequence of all", state: after(try(0, sequence.Max-2, 2, payloadA)),
		attempt: try(0, sequence.Max, 1, payloadA), kind: sequence.Append, expected: sequence.Max,
	},
	{line: lineGap, name: "one ahead", state: run(2, 3), attempt: try(2, 7, 1, payloadA), kind: sequence.OutOfOrder, expected: 6},
	{line: lineGap, name: "far ahead", state: run(2, 3), attempt: try(2, sequence.Max, 1, payloadA), kind: sequence.OutOfOrder, expected: 6},
	{line: lineAcross, name: "across next", state: run(2, 3), attempt: try(2, 5, 2, payloadA), kind: sequence.Overlap, expected: 6},
	{line: lineAcross, name: "a stored batch that has grown", state: run(2, 3), attempt: try(2, 4, 3, payloadA), kind: sequence.Overlap, expected: 6},
	{line: lineAcross, name: "from below the window across next", state: run(2, 7), attempt: try(2, 0, 15, payloadA), kind: sequence.Overlap, expected: 14},

	{line: lineDuplicate, name: "newest", state: run(2, 7), attempt: try(2, 12, 2, payloadA), kind: sequence.Duplicate, original: 172},
	{line: lineDuplicate, name: "oldest of five", state: run(2, 7), attempt: try(2, 4, 2, payloadA), kind: sequence.Duplicate, original: 124},
	{
		line: lineDuplicate, name: "the zero digest is a digest", state: after(try(0, 0, 1, sequence.Digest{})),
		attempt: try(0, 0, 1, sequence.Digest{}), kind: sequence.Duplicate, original: 100,
	},
	{
		line: lineDuplicate, name: "the last sequence of all", state: after(try(0, sequence.Max, 1, payloadA)),
		attempt: try(0, sequence.Max, 1, payloadA), kind: sequence.Duplicate, original: 100,
	},
	{line: lineReused, name: "newest", state: run(2, 7), attempt: try(2, 12, 2, payloadB), kind: sequence.Reused, original: 172},
	{line: lineReused, name: "oldest of five", state: run(2, 7), attempt: try(2, 4, 2, payloadB), kind: sequence.Reused, original: 124},
	{line: lineForgotten, name: "the sixth last", state: run(2, 7), attempt: try(2, 2, 2, payloadA), kind: sequence.Forgotten},
	{line: lineForgotten, name: "another payload cannot be told", state: run(2, 7), attempt: try(2, 2, 2, payloadB), kind: sequence.Forgotten},
	{line: lineForgotten, name: "no batch's range", state: run(2, 7), attempt: try(2, 1, 2, payloadA), kind: sequence.Forgotten},
	{line: lineForgotten, name: "from below the window into it", state: run(2, 7), attempt: try(2, 2, 4, payloadA), kind: sequence.Forgotten},
	{line: lineForgotten, name: "up to next", state: run(2, 7), attempt: try(2, 0, 14, payloadA), kind: sequence.Forgotten},
	{line: lineAnythingElse, name: "part of a batch", state: run(2, 3), attempt: try(2, 2, 1, payloadA), kind: sequence.Overlap, expected: 6},
	{line: lineAnythingElse, name: "end of a batch", state: run(2, 3), attempt: try(2, 3, 1, payloadA), kind: sequence.Overlap, expected: 6},
	{line: lineAnythingElse, name: "two batches merged", state: run(2, 3), attempt: try(2, 2, 4, payloadA), kind: sequence.Overlap, expected: 6},
	{line: lineAnythingElse, name: "shifted", state: run(2, 3), attempt: try(2, 1, 2, payloadA), kind: sequence.Overlap, expected: 6},
	{
		line: lineAnythingElse, name: "the last sequence is part of a batch", state: after(try(0, sequence.Max-1, 2, payloadA)),
		attempt: try(0, sequence.Max, 1, payloadA), kind: sequence.Overlap, expected: sequence.Max + 1,
	},
}

func TestCheck(t *testing.T) {
	for _, c := range table {
		t.Run(c.kind.String()+"/"+c.name, func(t *testing.T) {
			before := c.state
			v := sequence.Check(&c.state, c.attempt)
			if v.Kind != c.kind || v.Expected != c.expected {
				t.Errorf("Check(%+v) = %v, %d expected; want %v, %d expected", c.attempt, v.Kind, v.Expected, c.kind, c.expected)
			}
			if v.Original.BaseOffset != c.original {
				t.Errorf("original offset %d, want %d", v.Original.BaseOffset, c.original)
			}
			if c.state != before {
				t.Error("Check has changed the state")
			}
		})
	}
}

// The package comment is the rule for people; no line of it may lack a case, and none
// may be changed without changing its cases.
func TestTableCoversDoc(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range table {
		covered[c.line] = true
	}
	documented := map[string]bool{}
	for _, line := range docTable(t) {
		documented[line] = true
	}
	if d := cmp.Diff(documented, covered); d != "" {
		t.Errorf("lines of doc.go (−) and of the cases (+):\n%s", d)
	}
}

// docTable reads the table of the package comment.
func docTable(t *testing.T) []string {
	t.Helper()
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(src), "//\tstate ")
	if !found {
		t.Fatal("doc.go has no table")
	}
	body, _, _ := strings.Cut(rest, "\n//\n")
	gap := regexp.MustCompile(`\s{2,}`)
	var lines []string
	for _, line := range strings.Split(body, "\n")[1:] {
		line = strings.TrimPrefix(line, "//\t")
		cells := gap.Split(strings.TrimSpace(line), -1)
		if strings.HasPrefix(line, " ") { // goes on with the line above
			lines[len(lines)-1] += " " + strings.Join(cells, " | ")
			continue
		}
		lines = append(lines, strings.Join(cells, " | "))
	}
	return lines
}

func TestHigherEpochStartsAnew(t *testing.T) {
	s := run(2, 4)
	s = s.Apply(try(3, 0, 7, payloadB), 900, 9000)
	want := []sequence.Remembered{{BaseSeq: 0, LastSeq: 6, BaseOffset: 900, LastOffset: 906, AppendedAt: 9000, Digest: payloadB}}
	if d := cmp.Diff(want, s.Recent()); d != "" {
		t.Error(d)
	}
	if s.Epoch() != 3 || s.NextSeq() != 7 {
		t.Errorf("epoch %d, next %d", s.Epoch(), s.NextSeq())
	}
	if v := sequence.Check(&s, try(2, 8, 1, payloadA)); v.Kind != sequence.Fenced {
		t.Errorf("the old epoch goes on: %v", v.Kind)
	}
}

func TestTombstone(t *testing.T) {
	s := expired(run(2, 4))
	at, is := s.Expired()
	if !is || at != 5000 || s.Live() || !s.Exists() {
		t.Errorf("Expired() = %d, %v; Live() = %v, Exists() = %v", at, is, s.Live(), s.Exists())
	}
	if s.Epoch() != 2 || s.LastSeq() != 7 || s.FirstSeq() != 8 || len(s.Recent()) != 0 || s.LastOffset() != -1 || s.LastTimestamp() != 0 {
		t.Errorf("the tombstone keeps %+v, want epoch 2 and next sequence 8 alone", s)
	}
	revived := s.Apply(try(3, 0, 1, payloadA), 200, 6000)
	if at, is := revived.Expired(); is || at != 0 || !revived.Live() || len(revived.Recent()) != 1 {
		t.Errorf("revived: %+v", revived)
	}
	var nothing sequence.State
	if got := nothing.Expire(5000); got != nothing {
		t.Errorf("nothing known expires to %+v", got)
	}
}

// There is no sequence after the last: an epoch that has used it up can only be
// followed by another (D7).
func TestSequencesDoNotWrap(t *testing.T) {
	if sequence.Max != 9007199254740991 {
		t.Errorf("Max is %d, want the largest integer that a double holds with all below it", int64(sequence.Max))
	}
	s := after(try(4, sequence.Max-1, 2, payloadA))
	if s.NextSeq() != sequence.Max+1 || s.LastSeq() != sequence.Max {
		t.Fatalf("last %d, next %d", s.LastSeq(), s.NextSeq())
	}
	for _, base := range []int64{0, 1, sequence.Max - 1, sequence.Max} {
		for _, d := range []sequence.Digest{payloadA, payloadB} {
			if v := sequence.Check(&s, try(4, base, 1, d)); v.Kind == sequence.Append {
				t.Errorf("base sequence %d is appended to a spent epoch", base)
			}
		}
	}
	if v := sequence.Check(&s, try(5, 0, 1, payloadA)); v.Kind != sequence.Append {
		t.Errorf("the next epoch: %v", v.Kind)
	}
	b, err := s.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, rest, err := sequence.DecodeState(b); err != nil || len(rest) != 0 || got != s {
		t.Errorf("decoded %+v, %d bytes left, %v", got, len(rest), err)
	}
}

// Recovery applies what the log holds, even if it does not fit (KAFKA-6003).
func TestApplyDoesNotJudge(t *testing.T) {
	for name, c := range map[string]struct {
		state   sequence.State
		attempt sequence.Attempt
	}{
		"a gap":                 {run(2, 4), try(2, 50, 3, payloadB)},
		"a step back":           {run(2, 4), try(2, 1, 3, payloadB)},
		"a lower epoch":         {run(2, 4), try(1, 8, 3, payloadB)},
		"on behind a tombstone": {expired(run(2, 4)), try(2, 8, 3, payloadB)},
	} {
		s := c.state.Apply(c.attempt, 700, 7000)
		r := s.Recent()
		if len(r) != 1 || r[0].BaseSeq != c.attempt.BaseSeq || r[0].BaseOffset != 700 || s.Epoch() != c.attempt.Epoch || !s.Live() {
			t.Errorf("%s: %+v, epoch %d, live %v", name, r, s.Epoch(), s.Live())
		}
	}
}

func TestKindNames(t *testing.T) {
	seen := map[string]bool{}
	for k := sequence.Append; k <= sequence.Expired; k++ {
		if name := k.String(); name == "unknown" || name == "" || seen[name] {
			t.Errorf("kind %d is called %q", k, name)
		}
		seen[k.String()] = true
	}
	if got := (sequence.Expired + 1).String(); got != "unknown" {
		t.Errorf("a kind that does not exist is called %q", got)
	}
}
