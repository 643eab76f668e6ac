package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// Offsets in a meta page of bbolt, of which the file has two, in its first two pages.
const (
	metaMagic    = 16
	metaPageSize = 24
	metaPages    = 56 // pages in use, counted from the start of the file
	metaTxID     = 64
	metaSum      = 72
	metaEnd      = 80

	boltMagic = 0xED0CDAED
)

// cutOffError says that a file ends before its own meta page says it does.
type cutOffError struct{ has, needs int64 }

func (e *cutOffError) Error() string {
	return fmt.Sprintf("%s is cut off: it has %d bytes and needs %d", fileName, e.has, e.needs)
}

// checkLength fails with a [cutOffError] for a file that has lost its end. bbolt would
// map it and read beyond the end, and the system answers that with a signal that ends
// the process. A file that is no database at all is left to bbolt.
func checkLength(path string) (err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a new store
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	newest, ok := newestMeta(f)
	if !ok {
		return nil
	}
	pageSize := int64(binary.NativeEndian.Uint32(newest[metaPageSize:]))
	if needs := int64(binary.NativeEndian.Uint64(newest[metaPages:])) * pageSize; info.Size() < needs {
		return &cutOffError{has: info.Size(), needs: needs}
	}
	return nil
}

// newestMeta reads the meta page that bbolt will go by and reports whether there is one.
func newestMeta(f io.ReaderAt) (meta []byte, ok bool) {
	meta, ok = readMeta(f, 0)
	pageSize := int64(binary.NativeEndian.Uint32(meta[metaPageSize:]))
	if !ok {
		pageSize = int64(os.Getpagesize()) // the second one may be whole
	}
	if second, whole := readMeta(f, pageSize); whole && (!ok || txID(second) > txID(meta)) {
		meta, ok = second, true
	}
	return meta, ok
}

func txID(meta []byte) uint64 { return binary.NativeEndian.Uint64(meta[metaTxID:]) }

// readMeta reads the meta page at an offset and reports whether it is whole.
func readMeta(f io.ReaderAt, offset int64) (meta []byte, ok bool) {
	meta = make([]byte, metaEnd)
	if _, err := f.ReadAt(meta, offset); err != nil {
		return meta, false
	}
	sum := fnv.New64a()
	sum.Write(meta[metaMagic:metaSum])
	return meta, binary.NativeEndian.Uint32(meta[metaMagic:]) == boltMagic &&
		binary.NativeEndian.Uint64(meta[metaSum:]) == sum.Sum64()
}
