package server_test

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/oncelog/oncelog/server"
)

// TestZstdFrames: whatever the frames are, a body of the largest size is taken, and one that
// is a byte longer is not.
func TestZstdFrames(t *testing.T) {
	const limit = 300_000
	e := newEnv(t, func(o *server.Options) { o.MaxBodyBytes = limit }).unchecked()
	p := e.topic("t")
	e.json("PATCH", "/topics/t", `{"maxBatchBytes":8388608}`).is(200)
	noise := make([]byte, limit+1)
	rand.NewChaCha8([32]byte{}).Read(noise) //nolint:errcheck // it never fails
	stream := func(b []byte, options ...zstd.EOption) string {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, options...)
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 { // in pieces, so that no length is known at first
			n := min(len(b), 50_000)
			w.Write(b[:n])
			b = b[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	zeros := make([]byte, limit+1)
	skipped := "\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
	for name, coded := range map[string]func(b []byte) string{
		"one piece":  func(b []byte) string { return zstded(t, string(b)) },
		"a stream":   func(b []byte) string { return stream(b) },
		"large":      func(b []byte) string { return stream(b, zstd.WithWindowSize(8<<20), zstd.WithEncoderCRC(false)) },
		"two frames": func(b []byte) string { return zstded(t, string(b[:1000])) + stream(b[1000:]) },
		"skipped":    func(b []byte) string { return skipped + zstded(t, string(b)) + skipped },
	} {
		for what, content := range map[string][]byte{"noise": noise, "zeros": zeros} {
			a := e.do("POST", p+"/batches", coded(content[:limit]), "Content-Type: a/b", "Content-Encoding: zstd")
			if a.status != http.StatusOK {
				t.Errorf("%s of %s: %s", name, what, a.body)
			}
			got := e.do("POST", p+"/batches", coded(content), "Content-Type: a/b", "Content-Encoding: zstd").problem("too-large")
			if *got.Limit != limit || *got.Actual != limit+1 {
				t.Errorf("%s of %s: limit %d, actual %d", name, what, *got.Limit, *got.Actual)
			}
		}
	}
	givenBack(t, e)
}
