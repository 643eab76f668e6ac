package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/oncelog/oncelog/store"
)

// errClientGone means that there is nobody left to answer.
var errClientGone = errors.New("the client has gone")

// gone marks an error of writing to, or reading from, the network.
func gone(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errClientGone, err)
}

const (
	// firstRead is how much memory a body gets at first, whatever length it declares, and
	// how much is read, and counted, at a time.
	firstRead = 64 << 10
	// trustedLength is up to where a declared length is believed at once: a batch of the
	// default size with its frame. Of a longer one as much must have come first.
	trustedLength = 1<<20 + 64<<10
	// codingOverhead is how much longer than its content a coded body may be.
	codingOverhead = 64 << 10
	acceptedCoding = "gzip, zstd"
	// zstdWindow is the largest window that a decoder should have (RFC 8878 section 3.1.1.1.2).
	zstdWindow = 8 << 20
)

// bodies reads request bodies. Decompressors are kept for the next request.
type bodies struct {
	limit int64
	gzip  sync.Pool // *gzip.Reader
	zstd  sync.Pool // *zstd.Decoder
	heads sync.Pool // *[firstRead]byte: the beginning of a long body
	coded sync.Pool // *[]byte: a body that is to be decoded as a whole
}

// network is a request body that remembers whether reading it failed, so that a
// broken connection can be told from a broken coding.
type network struct {
	body io.Reader
	left int64 // coded bytes that may still come
	err  error
}

var errTooLong = errors.New("more coded bytes than the limit")

func (n *network) Read(p []byte) (int, error) {
	if int64(len(p)) > n.left {
		p = p[:n.left]
	}
	if len(p) == 0 {
		n.err = errTooLong
		return 0, n.err
	}
	c, err := n.body.Read(p)
	n.left -= int64(c)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return c, err
}

// read appends the decoded body of r to dst. It stops at the limit, however much a
// compressed body would still give. What it holds is counted until the request has been
// answered.
func (b *bodies) read(r *http.Request, dst []byte) ([]byte, error) {
	coding, err := contentCoding(r)
	if err != nil {
		return dst, err
	}
	if coding == "" && r.ContentLength > b.limit {
		return dst, b.tooLarge(r.ContentLength)
	}
	in := &incoming{network: network{body: r.Body, left: b.limit + codingOverhead}, ctx: r.Context(), length: r.ContentLength}
	in.timed, _ = r.Body.(*timedBody)
	if err := in.begin(); err != nil {
		return dst, err
	}
	start := len(dst)
	switch coding {
	case "gzip":
		dst, err = b.readGzip(in, dst)
	case "zstd":
		dst, err = b.readZstd(in, dst)
	default:
		dst, err = b.readPlain(in, dst, b.limit)
	}
	in.settle(len(dst) - start)
	return dst, b.readError(in, coding, err)
}

// incoming is a request body that is being read.
type incoming struct {
	network
	ctx     context.Context //nolint:containedctx // that of the request
	length  int64           // as declared, −1: it was not
	timed   *timedBody      // nil: nothing is counted
	besides int64           // memory that is held apart from what is claimed
}

// begin refuses a body that there is no room for before any of it has been read.
func (in *incoming) begin() error {
	if in.timed == nil {
		return nil
	}
	first := int64(firstRead)
	if in.length >= 0 && in.length < firstRead {
		first = in.length + 1
	}
	return noRoomForBody(in.timed.hold.admit(in.ctx, in.timed.begin(), first, in.length, in.timed))
}

// claim counts n bytes of memory for the body.
func (in *incoming) claim(n int) error {
	if in.timed == nil {
		return nil
	}
	return noRoomForBody(in.timed.hold.claim(in.ctx, int64(n)+in.besides))
}

// settle says that nothing more is expected of the client, and that n bytes are kept.
func (in *incoming) settle(n int) {
	if in.timed != nil {
		in.timed.hold.settle(int64(n))
	}
}

func noRoomForBody(err error) error {
	if errors.Is(err, errNoRoom) {
		return overloaded("too many requests are being received or wait to be written")
	}
	return err
}

// readPlain reads a body that is as it is. Of a long one the beginning has to come before
// memory is given for the rest.
func (b *bodies) readPlain(in *incoming, dst []byte, limit int64) ([]byte, error) {
	start := len(dst)
	if in.length <= firstRead || int64(cap(dst)-start) > in.length {
		return readAll(in, in, grow(dst, in.length), start, in.length, limit)
	}
	head, ok := b.heads.Get().(*[firstRead]byte)
	if !ok {
		head = new([firstRead]byte)
	}
	defer b.heads.Put(head)
	n, err := io.ReadFull(in, head[:])
	if err != nil {
		return dst, err
	}
	if err := in.claim(int(min(in.length, trustedLength)) + 1); err != nil {
		return dst, err
	}
	return readAll(in, in, append(grow(dst, in.length), head[:n]...), start, in.length, limit)
}

// grow makes room for a body of a declared length, which is not believed too far.
func grow(dst []byte, length int64) []byte {
	want := int64(firstRead)
	if length >= 0 {
		want = min(length, trustedLength) + 1 // one more, so that the end is seen without growing again
	}
	if int64(cap(dst)-len(dst)) >= want {
		return dst
	}
	return append(make([]byte, 0, int64(len(dst))+want), dst...)
}

// errOverLimit means that a body goes on after its limit.
var errOverLimit = errors.New("the body is longer than its limit")

// readAll is io.ReadAll into dst, behind what begins at start, ended by errOverLimit above
// the limit. length is what has been declared, −1: nothing. Memory is claimed before it is
// taken; that dst has is claimed as it is filled.
func readAll(in *incoming, r io.Reader, dst []byte, start int, length, limit int64) ([]byte, error) {
	for {
		have := len(dst) - start
		if len(dst) == cap(dst) {
			more := 2*have + firstRead
			if length >= 0 {
				more = int(max(1, min(length+1-int64(have), 4*int64(have))))
			}
			if err := in.claim(have + more); err != nil {
				return dst, err
			}
			dst = slices.Grow(dst, more)
		}
		end := min(cap(dst), len(dst)+firstRead)
		if length >= 0 {
			end = min(end, max(len(dst), start+int(length))+1)
		}
		if err := in.claim(end - start); err != nil {
			return dst, err
		}
		n, err := r.Read(dst[len(dst):end])
		dst = dst[:len(dst)+n]
		if int64(len(dst)-start) > limit {
			return dst, errOverLimit
		}
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

// gzipMemory is what a decompressor holds.
const gzipMemory = 64 << 10

func (b *bodies) readGzip(in *incoming, dst []byte) ([]byte, error) {
	in.besides = gzipMemory
	if err := in.claim(0); err != nil {
		return dst, err
	}
	z, ok := b.gzip.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	defer b.gzip.Put(z)
	if err := z.Reset(in); err != nil {
		return dst, err
	}
	return readAll(in, z, grow(dst, -1), len(dst), -1, b.limit)
}

// readZstd reads the whole body before it decodes it: a frame may ask for a window of 8 MiB,
// and in a stream that would be held for as long as the client takes to send the rest.
func (b *bodies) readZstd(in *incoming, dst []byte) ([]byte, error) {
	coded, ok := b.coded.Get().(*[]byte)
	if !ok {
		coded = new([]byte)
	}
	defer func() {
		if cap(*coded) <= keptMemory {
			b.coded.Put(coded)
		}
	}()
	var err error
	if *coded, err = b.readPlain(in, (*coded)[:0], b.limit+codingOverhead); err != nil {
		return dst, err
	}
	if len(*coded) == 0 { // no frame at all would decode to nothing, but more must have been meant
		return dst, io.ErrUnexpectedEOF
	}
	in.settle(len(*coded))
	most := max(b.limit, zstdWindow) // a frame may have a larger window than content
	z, ok := b.zstd.Get().(*zstd.Decoder)
	if !ok {
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderMaxMemory(uint64(most)))
		if err != nil {
			return dst, err
		}
	}
	defer b.zstd.Put(z)
	size := int(min(zstdBound(*coded), most))
	in.besides = int64(len(*coded))
	if err := in.claim(size); err != nil {
		return dst, err
	}
	start := len(dst)
	dst, err = z.DecodeAll(*coded, slices.Grow(dst, size))
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || int64(len(dst)-start) > b.limit {
		err = errOverLimit
	}
	return dst, err
}

// readError says what a failure to read a body means for the client.
func (b *bodies) readError(in *incoming, coding string, err error) error {
	var p *problem
	switch {
	case err == nil, errors.As(err, &p):
		return err
	case errors.Is(err, errOverLimit):
		return b.tooLarge(b.limit + 1) // that much at least
	case errors.Is(in.err, errTooLong):
		return b.tooLarge(b.limit + codingOverhead)
	case errors.Is(in.err, io.ErrUnexpectedEOF):
		return malformed("", "the body ended before the length that was announced")
	case errors.Is(in.err, os.ErrDeadlineExceeded) && in.timed != nil && in.timed.told.Load():
		return overloaded("the body was taking its time when others needed the memory")
	case errors.Is(in.err, os.ErrDeadlineExceeded):
		return malformed("", "the body did not arrive in time")
	case in.err != nil && lost(in.ctx, in.err):
		return gone(in.err)
	case in.err != nil:
		return unreadable("the body is not framed as HTTP has it", in.err)
	case isContext(err):
		return gone(err)
	default:
		return unreadable("the body is not valid "+coding, err)
	}
}

// lost reports whether an error of reading a body means that there is no connection any
// more.
func lost(ctx context.Context, err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return network || ctx.Err() != nil
}

// unreadable is a malformed-request problem of a body as a whole.
func unreadable(detail string, err error) *problem {
	p := malformed("", detail)
	p.cause = err
	return p
}

func (b *bodies) tooLarge(actual int64) *problem {
	return &problem{
		code:   string(store.CodeTooLarge),
		detail: fmt.Sprintf("the body is longer than the %d bytes that are allowed, decoded", b.limit),
		limit:  b.limit, actual: actual,
	}
}

// contentCoding returns "gzip", "zstd" or, for a body as it is, "".
func contentCoding(r *http.Request) (string, error) {
	v := r.Header["Content-Encoding"]
	if len(v) == 0 {
		return "", nil
	}
	if len(v) == 1 {
		switch c := strings.ToLower(strings.TrimSpace(v[0])); c {
		case "", "identity":
			return "", nil
		case "gzip", "zstd":
			return c, nil
		case "x-gzip":
			return "gzip", nil
		}
	}
	return "", &problem{
		code:   codeUnsupportedMediaType,
		detail: "Content-Encoding must be gzip, zstd or identity, once",
		header: [2]string{"Accept-Encoding", acceptedCoding},
	}
}
