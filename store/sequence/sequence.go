package sequence

// Window is how many batches of a producer a partition remembers with their
// payload digests and offsets, as Kafka does. A client may have that many batches
// undecided, counted from the lowest undecided one (Apache Fluss issue 2826).
const Window = 5

// Max is the largest sequence, epoch and producer id: 2^53 − 1.
const Max = 1<<53 - 1

// Digest identifies the payload of a batch: the first 128 bits of the SHA-256 over
// what the client sent (package batch says over which bytes). The zero digest is a
// digest like any other.
type Digest [16]byte

// Attempt is a batch that asks to be appended. Nothing here checks its ranges; whoever
// takes it from outside does, and sees to it that LastSeq is at most [Max].
type Attempt struct {
	Epoch   int64 // 0 … Max
	BaseSeq int64 // sequence of the first record, 0 … Max
	Count   int32 // records in the batch, at least 1
	Digest  Digest
}

// LastSeq is the sequence of the last record of the batch.
func (a Attempt) LastSeq() int64 { return a.BaseSeq + int64(a.Count) - 1 }

// Kind says what becomes of an attempt.
type Kind uint8

// The kinds of verdict. Only Append changes the log and the state.
const (
	Append     Kind = iota // in order: to be written
	Duplicate              // written before; Verdict.Original says where
	Forgotten              // written before, too long ago for its offsets to be known
	Reused                 // the sequences of a remembered batch with another payload
	Overlap                // covers stored sequences without being a stored batch
	OutOfOrder             // ahead of the expected sequence
	Fenced                 // from an epoch that a newer one has replaced
	Expired                // the producer's state has expired; a higher epoch may go on
)

var kindNames = [...]string{
	"append", "duplicate", "forgotten", "reused", "overlap", "out-of-order", "fenced", "expired",
}

// String names the kind in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Verdict is the answer to an [Attempt].
type Verdict struct {
	Kind Kind
	// Expected is the only base sequence that the attempt's epoch could append
	// with: 0 for an epoch that would start anew, else the next sequence. It is set
	// for Append, OutOfOrder and Overlap.
	Expected int64
	// Original is the remembered batch that the attempt repeats (Duplicate) or
	// collides with (Reused).
	Original Remembered
}

// Check decides what becomes of a in state s. The package comment holds the table.
func Check(s *State, a Attempt) Verdict {
	switch {
	case !s.Exists():
		return startingAt(a, 0)
	case s.expired && a.Epoch <= s.epoch:
		return Verdict{Kind: Expired}
	case a.Epoch < s.epoch:
		return Verdict{Kind: Fenced}
	case a.Epoch > s.epoch:
		return startingAt(a, 0)
	case a.BaseSeq >= s.next:
		return startingAt(a, s.next)
	}
	return s.checkStored(a)
}

// startingAt appends the attempt if it begins exactly at expected.
func startingAt(a Attempt, expected int64) Verdict {
	if a.BaseSeq != expected {
		return Verdict{Kind: OutOfOrder, Expected: expected}
	}
	return Verdict{Kind: Append, Expected: expected}
}

// checkStored judges an attempt of the current epoch that begins below next.
func (s *State) checkStored(a Attempt) Verdict {
	if a.LastSeq() >= s.next {
		return Verdict{Kind: Overlap, Expected: s.next}
	}
	base := s.next
	for i := int(s.n) - 1; i >= 0; i-- { // newest first: retries are mostly recent
		base -= int64(s.counts[i])
		if base != a.BaseSeq || s.counts[i] != a.Count {
			continue
		}
		if s.digests[i] != a.Digest {
			return Verdict{Kind: Reused, Original: s.remembered(i, base)}
		}
		return Verdict{Kind: Duplicate, Original: s.remembered(i, base)}
	}
	if a.BaseSeq < base { // base is now that of the oldest remembered batch
		return Verdict{Kind: Forgotten}
	}
	return Verdict{Kind: Overlap, Expected: s.next}
}
