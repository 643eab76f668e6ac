package server

import (
	"math"

	"github.com/klauspost/compress/zstd"
)

const (
	zstdBlockHead = 3         // bytes
	zstdBlockMax  = 128 << 10 // decoded bytes
	zstdChecksum  = 4         // bytes
)

// zstdBound returns how many bytes a body can have when it is decoded, without decoding it:
// what its frames declare, and what their blocks can hold at most (RFC 8878 section 3.1.1).
// What cannot be read as frames has no bound; decoding it is going to fail, but the decoder
// is not to be relied upon for that.
func zstdBound(coded []byte) int64 {
	var total uint64
	for len(coded) > 0 {
		var h zstd.Header
		if h.Decode(coded) != nil {
			return math.MaxInt64
		}
		size, decoded, ok := uint64(h.HeaderSize)+uint64(h.SkippableSize), uint64(0), true
		if !h.Skippable {
			if size, decoded, ok = zstdBlocks(coded, h.HeaderSize); h.HasFCS {
				decoded = min(decoded, h.FrameContentSize) // or the decoder fails
			}
			if h.HasCheckSum {
				size += zstdChecksum
			}
		}
		if !ok || size > uint64(len(coded)) || decoded > math.MaxInt64/2-total {
			return math.MaxInt64
		}
		total += decoded
		coded = coded[size:]
	}
	return int64(total)
}

// zstdBlocks walks the blocks of a frame, and returns where the last one ends and what they
// can hold together.
func zstdBlocks(frame []byte, at int) (end, decoded uint64, ok bool) {
	for at+zstdBlockHead <= len(frame) {
		head := uint32(frame[at]) | uint32(frame[at+1])<<8 | uint32(frame[at+2])<<16
		last, kind, size := head&1 == 1, head>>1&3, int(head>>3)
		at += zstdBlockHead
		switch kind {
		case 0: // as it is
			decoded += uint64(size)
			at += size
		case 1: // one byte, repeated
			decoded += uint64(size)
			at++
		default:
			decoded += zstdBlockMax
			at += size
		}
		if last {
			return uint64(at), decoded, true
		}
	}
	return 0, 0, false
}
