package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

// Limits that hold for every topic and that no configuration lifts.
const (
	MaxPartitions     = 1024
	MaxBatchRecords   = 65_536   // records in one batch
	MaxBatchBytes     = 8 << 20  // the most that Config.MaxBatchBytes may allow
	MaxRecordBytes    = 1 << 20  // key, value and headers of one record
	MaxKeyBytes       = 32 << 10 // key of one record
	MaxHeaders        = 64       // headers of one record
	MaxHeaderName     = 256      // bytes of a header's name
	MaxHeaderValue    = 8 << 10  // bytes of a header's value
	MinSegmentBytes   = 1 << 10  // the least that Config.SegmentBytes may be
	MaxContentType    = 256      // bytes of a raw record's media type
	MaxOwner          = 256      // bytes of the name of a producer's owner
	MaxReadRecords    = 10_000   // records in one read
	MaxReadBytes      = 64 << 20 // bytes in one read
	ProducerBlockSize = 1000     // producer ids reserved at a time (KIP-730)
)

// CheckSize holds a batch to the limits of its topic. The error is CodeTooLarge.
func CheckSize(c Config, b *batch.Batch) *Error {
	switch {
	case b.Count > MaxBatchRecords:
		return tooLarge("the batch has %d records, at most %d are allowed", int64(b.Count), MaxBatchRecords)
	case int64(b.LargestRecord) > MaxRecordBytes:
		return tooLarge("a record has %d bytes of key, value and headers, at most %d are allowed", int64(b.LargestRecord), MaxRecordBytes)
	case int64(b.PayloadBytes) > c.MaxBatchBytes:
		return tooLarge("the batch has %d bytes of keys, values and headers, the topic's maxBatchBytes is %d", int64(b.PayloadBytes), c.MaxBatchBytes)
	}
	return nil
}

// CheckProducer holds a producer's numbers to what can be stored. The error is
// CodeInvalidArgument.
func CheckProducer(p *ProducerSeq, count int32) *Error {
	if p.ID < 0 || p.Epoch < 0 || p.Epoch > sequence.Max || p.BaseSeq < 0 || p.BaseSeq > sequence.Max-int64(count)+1 {
		return Errorf(CodeInvalidArgument, "producer id, epoch and every sequence of the batch must be from 0 to %d", int64(sequence.Max))
	}
	return nil
}

// CheckOwner holds the name of a producer's owner to what can be stored: at most MaxOwner
// bytes of printable UTF-8. The error is CodeInvalidArgument.
func CheckOwner(owner string) *Error {
	printable := func(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }
	if len(owner) > MaxOwner || strings.ContainsFunc(owner, func(r rune) bool { return !printable(r) }) {
		return Errorf(CodeInvalidArgument, "the name of a producer's owner must be at most %d bytes of printable UTF-8", MaxOwner)
	}
	return nil
}

// NotOwner refuses a producer id to those whom it was not issued to. It does not say who
// that is.
func NotOwner(id int64) *Error {
	return Errorf(CodeForbidden, "producer id %d was issued to somebody else; POST /producers issues one of your own", id)
}

func tooLarge(format string, actual, limit int64) *Error {
	return &Error{Code: CodeTooLarge, Detail: fmt.Sprintf(format, actual, limit), Limit: limit, Actual: actual}
}

// CheckTopic holds a topic's partitions and config to what is possible. The error is
// CodeInvalidArgument, its Pointer names the member.
func CheckTopic(partitions int, c Config) *Error {
	checks := []struct {
		member   string
		value    int64
		min, max int64
	}{
		{"partitions", int64(partitions), 1, MaxPartitions},
		{"retentionMs", c.RetentionMs, Keep, sequence.Max},
		{"retentionBytes", c.RetentionBytes, Keep, sequence.Max},
		{"segmentBytes", c.SegmentBytes, MinSegmentBytes, sequence.Max},
		{"segmentMs", c.SegmentMs, 1, sequence.Max},
		{"maxBatchBytes", c.MaxBatchBytes, 1, MaxBatchBytes},
		{"producerExpiryMs", c.ProducerExpiryMs, 1, sequence.Max},
		{"maxProducers", c.MaxProducers, 1, sequence.Max},
	}
	for _, k := range checks {
		if k.value < k.min || k.value > k.max {
			return &Error{
				Code:    CodeInvalidArgument,
				Detail:  fmt.Sprintf("%s is %d, it must be from %d to %d", k.member, k.value, k.min, k.max),
				Pointer: "/" + k.member,
			}
		}
	}
	return nil
}
