package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
)

// ReadFile measures reads of a file from a [ServeFile], page by page like a topic's
// records.
func ReadFile(ctx context.Context, url string, load ReadLoad, length int64, progress func(Progress)) (*Result, error) {
	target := Target{URL: url, Blind: true}
	a, err := target.address()
	if err != nil {
		return nil, err
	}
	load.Format = Raw // nothing to be counted in it
	r := newReadRun(ctx, &target, load, progress)
	for range load.Connections {
		var at int64
		over := false
		start := []byte("GET / HTTP/1.1\r\nHost: " + a.host + "\r\nRange: bytes=")
		r.add(&reader{
			expect: http.StatusPartialContent,
			request: func(b []byte) []byte {
				if over {
					return nil
				}
				b = strconv.AppendInt(append(b, start...), at, 10)
				b = strconv.AppendInt(append(b, '-'), min(at+int64(load.PageBytes), length)-1, 10)
				return append(b, "\r\n\r\n"...)
			},
			took: func(_ *answer, t *tape) (int64, error) {
				size := t.bytes
				if want := min(int64(load.PageBytes), length-at); size != want {
					return 0, fmt.Errorf("%w: %d bytes of a file instead of %d", errAnswer, size, want)
				}
				if at += size; at == length {
					at, over = 0, load.Once
				}
				return 0, nil
			},
		})
	}
	return r.run(ctx, a)
}

// ServeFile serves a file as net/http does. It writes its URL to out, and ends when in
// does.
func ServeFile(ctx context.Context, path string, in io.Reader, out io.Writer) error {
	media := []string{"application/octet-stream"}
	return serve(ctx, in, out, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = media // or it would read the beginning to guess
		http.ServeFile(w, r, path)
	}))
}

// WriteFile makes a file of random bytes, on disk and, if cold, not in memory.
func WriteFile(dir string, length int64, cold bool) (path string, err error) {
	f, err := os.CreateTemp(dir, "oncelog-bench-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			os.Remove(f.Name()) //nolint:errcheck // the first error is what matters
		}
	}()
	var seed [32]byte
	if _, err := io.CopyN(f, rand.NewChaCha8(seed), length); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	if cold {
		err = forget(f)
	}
	return f.Name(), err
}
