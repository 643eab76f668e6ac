package server

import (
	"encoding/binary"

	"github.com/oncelog/oncelog/store"
)

// storedPrefix is what a read of batches puts before each: its base offset and when it
// arrived, milliseconds since 1970, both big-endian (openapi/BATCH.md, section Reading).
const storedPrefix = 16

// batches writes the batches of a read as they are stored. Nothing is decoded, so an
// answer ends where a batch does.
func (w *recordWriter) batches(recs *store.Records) error {
	for i := range recs.Batches {
		b := &recs.Batches[i]
		w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(b.BaseOffset))
		w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(b.AppendedAt.UnixMilli()))
		if err := w.piece(b.Bytes); err != nil {
			return err
		}
	}
	return w.flush()
}

// piece writes bytes that need not be gathered if they are many. It writes them in
// stretches, for each has the write timeout for itself.
func (w *recordWriter) piece(b []byte) error {
	for len(w.buf)+len(b) >= flushAt {
		if len(w.buf) == 0 {
			if err := w.send(b[:flushAt]); err != nil {
				return err
			}
			b = b[flushAt:]
			continue
		}
		n := max(0, flushAt-len(w.buf)) // the prefix may have gone beyond it
		w.buf, b = append(w.buf, b[:n]...), b[n:]
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.buf = append(w.buf, b...)
	return nil
}

// lengthOf is how long the answer of batches will be.
func lengthOf(recs *store.Records) int64 {
	var n int64
	for i := range recs.Batches {
		n += storedPrefix + int64(len(recs.Batches[i].Bytes))
	}
	return n
}

// endOfBatches is where a read of batches goes on.
func endOfBatches(recs *store.Records, from int64) int64 {
	if n := len(recs.Batches); n > 0 {
		return recs.Batches[n-1].LastOffset + 1
	}
	return from
}
