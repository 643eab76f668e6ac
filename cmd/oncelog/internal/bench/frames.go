package bench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/oncelog/oncelog/store/batch"
)

// tape counts the records of an answer as it goes by, as far as that can be told without
// decoding them.
type tape struct {
	format  Format
	bytes   int64
	records int64 // −1: it cannot be told

	// Of batches, each of which has its offset and time before it (openapi/BATCH.md).
	head []byte // as much as there is of the next batch's beginning
	skip int64  // what is left of the current batch
	next int64  // the offset that the next batch must have; −1: any
	err  error
}

const frameBytes = 16 + batch.HeaderLen

func (t *tape) rewind(f Format) {
	*t = tape{format: f, head: t.head[:0], next: -1}
	if f == JSON {
		t.records = -1
	}
}

// pass takes a piece of the answer.
func (t *tape) pass(piece []byte) {
	t.bytes += int64(len(piece))
	switch t.format {
	case NDJSON:
		t.records += int64(bytes.Count(piece, []byte{'\n'}))
	case Binary:
		t.frames(piece)
	case JSON, Raw:
	}
}

// frames goes over batches by the lengths in their headers.
func (t *tape) frames(piece []byte) {
	for t.err == nil {
		n := min(t.skip, int64(len(piece)))
		piece, t.skip = piece[n:], t.skip-n
		if len(piece) == 0 {
			return
		}
		want := min(frameBytes-len(t.head), len(piece))
		t.head, piece = append(t.head, piece[:want]...), piece[want:]
		if len(t.head) == frameBytes {
			t.begin(t.head)
			t.head = t.head[:0]
		}
	}
}

// begin looks at the beginning of a batch.
func (t *tape) begin(h []byte) {
	number := func(at int) int64 { return int64(binary.BigEndian.Uint32(h[16+at:])) }
	base := int64(binary.BigEndian.Uint64(h))
	switch {
	case !slices.Equal(h[16:19], []byte{'O', 'L', 1}):
		t.err = fmt.Errorf("%w: a batch begins with % x", errAnswer, h)
	case t.next >= 0 && base != t.next:
		t.err = fmt.Errorf("%w: a batch at offset %d where one at %d must follow", errAnswer, base, t.next)
	}
	t.records += number(4)
	t.next = base + number(4)
	t.skip = number(8) + number(12)
}

// end says what is wrong with an answer that gives the records from an offset up to
// another one.
func (t *tape) end(from, to int64) error {
	switch {
	case t.err != nil:
		return t.err
	case t.skip > 0 || len(t.head) > 0:
		return fmt.Errorf("%w: a read from offset %d ends within a batch", errAnswer, from)
	case t.records >= 0 && t.records != to-from:
		return fmt.Errorf("%w: a read from offset %d to %d has %d records", errAnswer, from, to, t.records)
	}
	return nil
}
