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
	// firstRead is how much memory a body gets at first, whatever length it declares.
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
	src := &network{body: r.Body, left: b.limit + codingOverhead}
	switch coding {
	case "gzip":
		dst, err = b.readGzip(src, dst)
	case "zstd":
		dst, err = b.readZstd(src, dst)
	default:
		dst, err = b.readAll(src, grow(dst, r.ContentLength), r.ContentLength)
	}
	return dst, b.readError(r.Context(), src, coding, err)
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

// readAll is io.ReadAll into dst, ended by a too-large problem above the limit. length is
// what has been declared, −1: nothing.
func (b *bodies) readAll(r io.Reader, dst []byte, length int64) ([]byte, error) {
	start := len(dst)
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, int(max(1, min(length+1-int64(len(dst)-start), 4*int64(len(dst))))))
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
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

func (b *bodies) readGzip(src io.Reader, dst []byte) ([]byte, error) {
	z, ok := b.gzip.Get().(*gzip.Reader)
	if !ok {
		z = new(gzip.Reader)
	}
	defer b.gzip.Put(z)
	if err := z.Reset(src); err != nil {
		return dst, err
	}
	return b.readAll(z, grow(dst, -1), -1)
}

func (b *bodies) readZstd(src io.Reader, dst []byte) ([]byte, error) {
	z, ok := b.zstd.Get().(*zstd.Decoder)
	if !ok {
		var err error
		// One goroutine, the caller's; the window bounds what a frame can make us hold.
		z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return dst, err
		}
	}
	defer b.zstd.Put(z)
	if err := z.Reset(src); err != nil {
		return dst, err
	}
	dst, err := b.readAll(z, grow(dst, -1), -1)
	return dst, errors.Join(err, z.Reset(nil)) // let go of the body
}

// readError says what a failure to read a body means for the client.
func (b *bodies) readError(ctx context.Context, src *network, coding string, err error) error {
	var p *problem
	switch {
	case err == nil, errors.As(err, &p):
		return err
	case errors.Is(src.err, errTooLong):
		return b.tooLarge(b.limit + codingOverhead)
	case errors.Is(src.err, io.ErrUnexpectedEOF):
		return malformed("", "the body ended before the length that was announced")
	case errors.Is(src.err, os.ErrDeadlineExceeded):
		return malformed("", "the body did not arrive in time")
	case src.err != nil && lost(ctx, src.err):
		return gone(src.err)
	case src.err != nil:
		return unreadable("the body is not framed as HTTP has it", src.err)
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
