package producer

import (
	"bytes"
	"compress/gzip"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// compressor encodes bodies. It may be used from many goroutines.
type compressor struct {
	enc  Encoding
	zstd *zstd.Encoder
	gzip sync.Pool
}

func newCompressor(e Encoding) (*compressor, error) {
	c := &compressor{enc: e}
	if e != Zstd {
		return c, nil
	}
	var err error
	c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(1<<20))
	return c, err
}

// encode gives the body to send, which is data itself when coding does not help.
func (c *compressor) encode(data []byte) ([]byte, Encoding) {
	var out []byte
	switch c.enc {
	case Zstd:
		out = c.zstd.EncodeAll(data, nil)
	case Gzip:
		out = c.gzipped(data)
	default:
		return data, Identity
	}
	if len(out) >= len(data) {
		return data, Identity
	}
	return out, c.enc
}

func (c *compressor) gzipped(data []byte) []byte {
	var buf bytes.Buffer
	w, _ := c.gzip.Get().(*gzip.Writer)
	if w == nil {
		w = gzip.NewWriter(&buf)
	} else {
		w.Reset(&buf)
	}
	_, _ = w.Write(data) // a bytes.Buffer takes everything
	_ = w.Close()
	c.gzip.Put(w)
	return buf.Bytes()
}
