package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

// lineReader makes records of lines, byte for byte: only the line feed goes, and the
// last line may lack it.
type lineReader struct {
	in        *bufio.Reader
	separator []byte // between key and value; empty: lines have no key
	most      int    // bytes of key and value
	line      int    // number of the line that was read last
}

func newLineReader(in io.Reader, separator string, most int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 256<<10), separator: []byte(separator), most: most}
}

// next gives the next line as a record, or io.EOF.
func (l *lineReader) next() (batch.Record, error) {
	text, err := l.text()
	if err != nil {
		return batch.Record{}, err
	}
	l.line++
	r := batch.Record{Value: text, Timestamp: batch.NoTimestamp}
	if len(l.separator) > 0 {
		key, value, found := bytes.Cut(text, l.separator)
		if !found {
			return r, fmt.Errorf("line %d has no %q between key and value", l.line, l.separator)
		}
		if len(key) > store.MaxKeyBytes {
			return r, fmt.Errorf("line %d has a key of %d bytes, at most %d are allowed", l.line, len(key), store.MaxKeyBytes)
		}
		r.Key, r.Value = key, value
	}
	if n := r.PayloadBytes(); n > l.most {
		return r, fmt.Errorf("line %d has %d bytes, at most %d are allowed", l.line, n, l.most)
	}
	return r, nil
}

// text reads up to the next line feed. It stops collecting when the line is too long
// in any case.
func (l *lineReader) text() ([]byte, error) {
	text := []byte{} // not nil: an empty line is a value, nil would be a tombstone
	for {
		part, err := l.in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case err == nil:
			return text[:len(text)-1], nil
		case errors.Is(err, io.EOF) && len(text) > 0:
			return text, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(text) > l.most+len(l.separator):
			return nil, fmt.Errorf("line %d has more than %d bytes", l.line+1, l.most)
		}
	}
}

// maxChunkBytes bounds how much of the input is taken at a time.
const maxChunkBytes = 64 << 10

// chunk reads a line, and then those that can be had without waiting. It may give
// records and an error.
func (l *lineReader) chunk() (records []batch.Record, size int64, err error) {
	for {
		r, err := l.next()
		if err != nil {
			return records, size, err
		}
		records = append(records, r)
		size += int64(r.PayloadBytes()) + 1
		if size >= maxChunkBytes || l.in.Buffered() == 0 {
			return records, size, nil
		}
	}
}

// pump reads chunks until the input or done ends. It has a goroutine of its own because
// reading from a terminal or a pipe cannot be interrupted.
func (l *lineReader) pump(chunks chan<- chunk, done <-chan struct{}) {
	for {
		var k chunk
		k.records, k.size, k.err = l.chunk()
		select {
		case chunks <- k:
		case <-done:
			return
		}
		if k.err != nil {
			return
		}
	}
}
