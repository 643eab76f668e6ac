package bolt

import (
	"fmt"
	"math"

	"go.etcd.io/bbolt"
)

// loaded is producer state at a point of a partition: after all records below offset
// and all marks below number marks.
type loaded struct {
	offset int64
	marks  uint64
	lastAt int64
	known
	listedAt int64 // offset of the listed snapshot that it comes from, −1: none
}

// replayer applies headers and marks to a state, in the order in which they were
// committed. It judges nothing: what is in the log has happened (KAFKA-6003).
type replayer struct {
	st      loaded
	expired expired
	headers int64
	bytes   int64
	// strict: a gap, be it among the batches or the marks, is an error.
	strict bool
	// tail is what the partition has in the tail.
	tail []tailRow
}

// run replays what lies at and above the offset from, which is not above that of the
// state, and below upto; marks only with numbers below uptoMark. Headers below the
// state's own offset are shown to each but not applied.
func (r *replayer) run(tx *bbolt.Tx, uid uint64, from, upto int64, uptoMark uint64, each func(int64, *header)) error {
	headers, marks := newLogCursor(tx, uid, r.tail), tx.Bucket(bucketMarks).Cursor()
	mk, mv := marks.Seek(offsetKey(uid, r.st.offset))
	applyMarks := func(below int64) error {
		for ; hasUID(mk, uid); mk, mv = marks.Next() {
			at := offsetOf(mk)
			if at > below {
				return nil
			}
			if err := r.mark(mk, mv, uptoMark); err != nil {
				return err
			}
		}
		return nil
	}
	next := from
	for k, v := headers.seekFrom(from); k != nil; k, v = headers.next() {
		base := offsetOf(k)
		if base >= upto {
			break
		}
		if r.strict && base != next {
			return fmt.Errorf("a batch begins at offset %d, the one before ends below %d", base, next)
		}
		h, err := decodeHeader(k, v)
		if err != nil {
			return fmt.Errorf("batch at offset %d: %w", base, err)
		}
		next = h.lastOffset(base) + 1
		r.headers++
		r.bytes += int64(len(k) + len(v))
		if base >= r.st.offset {
			if err := applyMarks(base); err != nil {
				return err
			}
		}
		if each != nil {
			each(base, &h)
		}
		if base >= r.st.offset {
			r.batch(base, &h)
		}
	}
	return applyMarks(min(upto, math.MaxInt64))
}

func (r *replayer) batch(base int64, h *header) {
	r.st.offset = h.lastOffset(base) + 1
	r.st.lastAt = max(r.st.lastAt, h.appendedAt)
	if !h.idempotent {
		return
	}
	st := r.st.states.of(h.producer.ID)
	*st = st.Apply(h.attempt(), base, h.appendedAt)
}

func (r *replayer) mark(k, v []byte, upto uint64) error {
	number := markNumber(k)
	if number < r.st.marks || number >= upto {
		return nil
	}
	if r.strict && number > r.st.marks {
		return fmt.Errorf("mark %d is missing", r.st.marks)
	}
	m, err := decodeMark(k, v)
	if err != nil {
		return err
	}
	r.st.marks = number + 1
	r.st.lastAt = max(r.st.lastAt, m.at)
	if m.cutoff.below > 0 {
		r.expired.cut(&r.st.known, m.cutoff)
		return nil
	}
	if pr := r.st.states[m.pid]; pr != nil {
		pr.state = pr.state.Expire(m.at)
		r.expired.add(m.pid)
	}
	return nil
}
