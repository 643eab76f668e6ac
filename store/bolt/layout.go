package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

// format is the version of the file's layout. FORMAT.md describes it, and upgrade.go what
// an older file becomes of.
const format = 3

// Buckets. Those of the log share one tree each for all partitions: a commit that
// touches many partitions then rewrites few pages.
var (
	bucketMeta      = []byte("meta")
	bucketTopics    = []byte("topics")     // name → topicRow
	bucketParts     = []byte("partitions") // uid → partitionRow
	bucketSegments  = []byte("segments")   // uid, base offset → segmentRow
	bucketBatches   = []byte("batches")    // uid, base offset → encoded batch, or pieces of one
	bucketHeaders   = []byte("headers")    // uid, base offset → header
	bucketMarks     = []byte("marks")      // uid, offset, number → mark
	bucketSnapshots = []byte("snapshots")  // uid, kind, offset → snapshotRow
	bucketChunks    = []byte("chunks")     // uid, kind, offset, chunk → bytes
	bucketTrash     = []byte("trash")      // uid of a deleted partition → bytes of its batches

	allBuckets = [][]byte{
		bucketMeta, bucketTopics, bucketParts, bucketSegments, bucketBatches,
		bucketHeaders, bucketMarks, bucketSnapshots, bucketChunks, bucketTrash,
	}

	keyFormat  = []byte("format")
	keyPIDMark = []byte("pidMark") // the first producer id that is not reserved
	keyNextUID = []byte("nextUID") // the highest partition uid that was given
)

// topicRow is a topic on disk.
type topicRow struct {
	ID        string    `json:"id"`
	UIDs      []uint64  `json:"uids"` // of its partitions, in order
	Config    configRow `json:"config"`
	Version   int64     `json:"version"`
	CreatedAt int64     `json:"createdAt"`
}

// configRow is a store.Config with names of its own, which must stay what they are.
type configRow struct {
	RetentionMs        int64 `json:"retentionMs"`
	RetentionBytes     int64 `json:"retentionBytes"`
	SegmentBytes       int64 `json:"segmentBytes"`
	SegmentMs          int64 `json:"segmentMs"`
	MaxBatchBytes      int64 `json:"maxBatchBytes"`
	ProducerExpiryMs   int64 `json:"producerExpiryMs"`
	MaxProducers       int64 `json:"maxProducers"`
	RequireIdempotence bool  `json:"requireIdempotence"`
}

// partitionRow is what a partition has of its own.
type partitionRow struct {
	Earliest int64 `json:"earliest"`
	// Garbage is how many bytes of batches below the first segment were still there when
	// the row was written.
	Garbage int64 `json:"garbage,omitempty"`
}

// segmentRow is a segment. The totals are written when the segment is closed.
type segmentRow struct {
	CreatedAt int64 `json:"createdAt"`
	Closed    bool  `json:"closed,omitempty"`
	Next      int64 `json:"next,omitempty"`
	Bytes     int64 `json:"bytes,omitempty"`
	Batches   int64 `json:"batches,omitempty"`
	LastAt    int64 `json:"lastAt,omitempty"` // arrival of its newest batch
}

// snapshotRow describes a snapshot whose bytes are in the chunks.
type snapshotRow struct {
	CreatedAt int64                `json:"createdAt"`
	Reason    store.SnapshotReason `json:"reason"`
	Producers int                  `json:"producers"`
	Bytes     int64                `json:"bytes"`
	CRC       uint32               `json:"crc"`
	Chunks    uint32               `json:"chunks"`
	Marks     uint64               `json:"marks"` // number of the first mark not in it
}

// Kinds of snapshot. The base is the state at the start of the headers: what was left
// of the ones that retention has deleted. It is not listed.
const (
	kindBase   byte = 0
	kindListed byte = 1
)

// Lengths of keys.
const (
	offsetKeyLen   = 16 // of the log buckets
	markKeyLen     = 24
	snapshotKeyLen = 17
)

func uidOf(k []byte) uint64 { return binary.BigEndian.Uint64(k) }

func uidKey(uid uint64) []byte { return binary.BigEndian.AppendUint64(nil, uid) }

func offsetKey(uid uint64, offset int64) []byte {
	return appendOffsetKey(make([]byte, 0, offsetKeyLen), uid, offset)
}

func appendOffsetKey(b []byte, uid uint64, offset int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uid), uint64(offset))
}

func markKey(uid uint64, offset int64, number uint64) []byte {
	return binary.BigEndian.AppendUint64(offsetKey(uid, offset), number)
}

func snapshotKey(uid uint64, kind byte, offset int64) []byte {
	return binary.BigEndian.AppendUint64(append(uidKey(uid), kind), uint64(offset))
}

func chunkKey(uid uint64, kind byte, offset int64, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(snapshotKey(uid, kind, offset), chunk)
}

// offsetOf is the offset in a key of the log buckets.
func offsetOf(k []byte) int64 { return int64(binary.BigEndian.Uint64(k[8:])) }

// markNumber is the last part of a mark's key.
func markNumber(k []byte) uint64 { return binary.BigEndian.Uint64(k[16:]) }

// hasUID reports whether a key belongs to a partition.
func hasUID(k []byte, uid uint64) bool {
	return len(k) >= 8 && binary.BigEndian.Uint64(k) == uid
}

// header is a batch header on disk. Its base offset is in the key.
type header struct {
	count      int32
	bytes      int64
	appendedAt int64
	crc        uint32 // of the encoded batch
	idempotent bool
	producer   store.ProducerSeq
	digest     sequence.Digest
}

const (
	headerVersion        = 1
	headerFlagIdempotent = 1
)

var (
	errHeader = errors.New("damaged batch header")
	errMark   = errors.New("damaged mark")
	errGap    = errors.New("the one before it, or after it, is missing")
	errPair   = errors.New("batch and header do not belong together")
)

// appendHeader encodes h behind its key, with which b ends: version, flags, count, bytes
// and arrival as varints, the batch's CRC, for an idempotent batch its producer, epoch
// and base sequence as varints and its digest; sealed.
func appendHeader(b []byte, h *header) []byte {
	start := len(b)
	key := b[start-offsetKeyLen:]
	b = append(b, headerVersion, 0)
	b = binary.AppendUvarint(b, uint64(h.count))
	b = binary.AppendUvarint(b, uint64(h.bytes))
	b = binary.AppendUvarint(b, uint64(h.appendedAt))
	b = binary.BigEndian.AppendUint32(b, h.crc)
	if h.idempotent {
		b[start+1] = headerFlagIdempotent
		b = binary.AppendUvarint(b, uint64(h.producer.ID))
		b = binary.AppendUvarint(b, uint64(h.producer.Epoch))
		b = binary.AppendUvarint(b, uint64(h.producer.BaseSeq))
		b = append(b, h.digest[:]...)
	}
	return binary.BigEndian.AppendUint32(b, sum(key[:offsetKeyLen], b[start:]))
}

func decodeHeader(k, v []byte) (header, error) {
	body, err := unseal(k, v)
	if err != nil || len(k) != offsetKeyLen || len(body) < 9 || body[0] != headerVersion || body[1]&^headerFlagIdempotent != 0 {
		return header{}, errHeader
	}
	rest := body[2:]
	ok := true
	num := func() int64 {
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > sequence.Max {
			ok = false
			return 0
		}
		rest = rest[used:]
		return int64(n)
	}
	count := num()
	h := header{count: int32(count), bytes: num(), appendedAt: num(), idempotent: v[1]&headerFlagIdempotent != 0}
	if len(rest) < 4 || count < 1 || count > math.MaxInt32 {
		return header{}, errHeader
	}
	h.crc = binary.BigEndian.Uint32(rest)
	rest = rest[4:]
	if h.idempotent {
		h.producer = store.ProducerSeq{ID: num(), Epoch: num(), BaseSeq: num()}
		ok = ok && len(rest) == len(h.digest)
		rest = rest[copy(h.digest[:], rest):]
	}
	if !ok || len(rest) != 0 {
		return header{}, errHeader
	}
	return h, nil
}

func (h *header) lastOffset(base int64) int64 { return base + int64(h.count) - 1 }

// describes reports whether h is the header of an encoded batch, as far as their
// lengths and checksums tell.
func (h *header) describes(b []byte) bool {
	return int64(len(b)) == h.bytes && len(b) >= batch.HeaderLen && batch.CRC(b) == h.crc
}

func (h *header) attempt() sequence.Attempt {
	return sequence.Attempt{Epoch: h.producer.Epoch, BaseSeq: h.producer.BaseSeq, Count: h.count, Digest: h.digest}
}

func (h *header) public(base int64) store.BatchHeader {
	out := store.BatchHeader{
		BaseOffset: base, LastOffset: h.lastOffset(base), Bytes: h.bytes,
		AppendedAt: millis(h.appendedAt), CRC: h.crc,
	}
	if h.idempotent {
		p := h.producer
		out.Producer = &p
	}
	return out
}

// mark is an event of a partition that is not a batch: the expiry of a producer, or, if
// there is a cutoff, that.
type mark struct {
	pid    int64
	at     int64
	cutoff cutoff
}

const (
	markExpire = 1
	markCutoff = 2
)

func (m mark) encode(key []byte) []byte {
	if m.cutoff.below > 0 {
		return seal(key, m.cutoff.append([]byte{markCutoff}))
	}
	b := binary.AppendUvarint([]byte{markExpire}, uint64(m.pid))
	return seal(key, binary.AppendUvarint(b, uint64(m.at)))
}

func decodeMark(k, v []byte) (mark, error) {
	v, err := unseal(k, v)
	if err != nil || len(k) != markKeyLen {
		return mark{}, errMark
	}
	if len(v) > 0 && v[0] == markCutoff {
		c, rest, ok := decodeCutoff(v[1:])
		if !ok || len(rest) > 0 {
			return mark{}, errMark
		}
		return mark{at: c.at, cutoff: c}, nil
	}
	if len(v) == 0 || v[0] != markExpire {
		return mark{}, fmt.Errorf("unknown mark %x", v)
	}
	pid, n := binary.Uvarint(v[1:])
	if n <= 0 || pid > sequence.Max {
		return mark{}, errMark
	}
	at, m := binary.Uvarint(v[1+n:])
	if m <= 0 || 1+n+m != len(v) || at > sequence.Max {
		return mark{}, errMark
	}
	return mark{pid: int64(pid), at: int64(at)}, nil
}

func millis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
