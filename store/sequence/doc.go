// Package sequence holds the append rule of an idempotent, partitioned log:
// what becomes of a batch that names a producer epoch and a base sequence, given
// what the partition remembers of that producer.
//
// The rule is a pure function. It knows no disk, no clock and no lock: [Check]
// takes a [State] and an [Attempt] and gives a [Verdict]; [State.Apply] and
// [State.Expire] give the state that follows. A State is a comparable value, so an
// engine keeps the old one until its commit has succeeded, and a batch that is
// refused cannot have changed anything.
//
// # The rule
//
// next is the sequence that the partition expects, first the base sequence of the
// oldest remembered batch, and last = BaseSeq + Count − 1 that of the attempt.
// Lines are tried from the top.
//
//	state                attempt                              verdict
//	nothing known        BaseSeq = 0                          Append
//	nothing known        BaseSeq > 0                          OutOfOrder, 0 expected        (D1)
//	expired (tombstone)  Epoch ≤ the tombstone's              Expired                       (D6)
//	expired (tombstone)  higher epoch, BaseSeq = 0            Append
//	expired (tombstone)  higher epoch, BaseSeq > 0            OutOfOrder, 0 expected
//	known                lower epoch                          Fenced
//	known                higher epoch, BaseSeq = 0            Append, the window starts anew
//	known                higher epoch, BaseSeq > 0            OutOfOrder, 0 expected
//	known, same epoch    BaseSeq = next                       Append
//	known, same epoch    BaseSeq > next                       OutOfOrder, next expected
//	known, same epoch    last ≥ next                          Overlap                       (D10)
//	known, same epoch    a remembered range, same digest      Duplicate
//	known, same epoch    a remembered range, other digest     Reused                        (D3)
//	known, same epoch    BaseSeq < first                      Forgotten: a duplicate whose
//	                                                          offsets are gone              (D2)
//	known, same epoch    anything else                        Overlap                       (D10)
//
// It is Kafka's rule (KIP-98, KIP-360; ProducerAppendInfo), with deliberate
// differences that are marked D1 to D10. Kafka lets the first batch of a producer
// that it does not know start anywhere, which loses an overtaken batch for good
// (KAFKA-15591); it compares no payload, so that a sequence used twice loses the
// second record silently (franz-go issue 1217); it knows duplicates only among the
// last five batches; its sequences wrap at 2³¹. Here a sequence and an epoch go up
// to 2⁵³−1, the largest integer that every JSON reader keeps exact, and never wrap.
package sequence
