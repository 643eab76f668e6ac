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
// compressed body would still give.
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
	switch coding {
	case "gzip":
		dst, err = b.readGzip(in, dst)
	case "zstd":
		dst, err = b.readZstd(in, dst)
	default:
		dst, err = b.readPlain(in, dst)
	}
	in.arrived()
	return dst, b.readError(in, coding, err)
}

// incoming is a request body that is being read.
type incoming struct {
	network
	ctx    context.Context //nolint:containedctx // that of the request
	length int64           // as declared, −1: it was not
	timed  *timedBody      // nil: nothing is counted
}

// begin refuses a body that there is no room for before any of it has been read.
func (in *incoming) begin() error {
	if in.timed == nil {
		return nil
	}
	if !in.timed.hold.room(in.length) {
		return noRoomForBody()
	}
	in.timed.hold.watch(in.timed)
	return nil
}

// claim counts n bytes of memory for the body.
func (in *incoming) claim(n int) error {
	if in.timed == nil {
		return nil
	}
	err := in.timed.hold.claim(in.ctx, int64(n))
	if errors.Is(err, errNoRoom) {
		return noRoomForBody()
	}
	return err
}

// arrived says that nothing more is expected of the client.
func (in *incoming) arrived() {
	if in.timed != nil {
		in.timed.hold.unwatch()
	}
}

func noRoomForBody() *problem {
	return overloaded("too many request bodies are in memory")
}

// readPlain reads a body that is as it is. Of a long one the beginning has to come before
// memory is given for the rest.
func (b *bodies) readPlain(in *incoming, dst []byte) ([]byte, error) {
	start := len(dst)
	if in.length <= firstRead || int64(cap(dst)-start) > in.length {
		return b.readAll(in, in, grow(dst, in.length), start, in.length)
	}
	head, ok := b.heads.Get().(*[firstRead]byte)
	if !ok {
		head = new([firstRead]byte)
	}
	defer b.heads.Put(head)
	if err := in.claim(len(head)); err != nil {
		return dst, err
	}
	n, err := io.ReadFull(in, head[:])
	if err != nil {
		return dst, err
	}
	return b.readAll(in, in, append(grow(dst, in.length), head[:n]...), start, in.length)
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

// readAll is io.ReadAll into dst, behind what begins at start, ended by a too-large
// problem above the limit. length is what has been declared, −1: nothing.
func (b *bodies) readAll(in *incoming, r io.Reader, dst []byte, start int, length int64) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, int(max(1, min(length+1-int64(len(dst)-start), 4*int64(len(dst))))))
		}
		end := min(cap(dst), len(dst)+firstRead)
		if err := in.claim(end - start); err != nil {
			return dst, err
		}
		n, err := r.Read(dst[len(dst):end])
		dst = dst[:len(dst)+n]
		if read := int64(len(dst) - start); read > b.limit {
			return dst, b.tooLarge(read)
		}
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}

func (b *bodies) readGzip(in *incoming, dst []byte) ([]byte, error) {
	z, ok := b.gzip.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	defer b.gzip.Put(z)
	if err := z.Reset(in); err != nil {
		return dst, err
	}
	return b.readAll(in, z, grow(dst, -1), len(dst), -1)
}

// readZstd reads the whole body before it decodes it: a frame may ask for a window of 8 MiB,
// and in a stream that would be held for as long as the client takes to send the rest.
func (b *bodies) readZstd(in *incoming, dst []byte) ([]byte, error) {
	coded, ok := b.coded.Get().(*[]byte)
	if !ok {
		coded = new([]byte)
	}
	defer b.coded.Put(coded)
	var err error
	if *coded, err = b.readPlain(in, (*coded)[:0]); err != nil {
		return dst, err
	}
	in.arrived()
	z, ok := b.zstd.Get().(*zstd.Decoder)
	if !ok {
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderMaxMemory(uint64(b.limit)))
		if err != nil {
			return dst, err
		}
	}
	defer b.zstd.Put(z)
	size := b.limit // unless it says so
	var h zstd.Header
	if h.Decode(*coded) == nil && h.HasFCS && !h.Skippable {
		size = int64(min(h.FrameContentSize, uint64(b.limit)))
	}
	if err := in.claim(len(*coded) + int(size)); err != nil {
		return dst, err
	}
	dst, err = z.DecodeAll(*coded, dst)
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return dst, b.tooLarge(b.limit + 1)
	}
	return dst, err
}

// readError says what a failure to read a body means for the client.
func (b *bodies) readError(in *incoming, coding string, err error) error {
	var p *problem
	switch {
	case err == nil, errors.As(err, &p):
		return err
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
