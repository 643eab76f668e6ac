package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const mediaHTML = "text/html; charset=utf-8"

// mediaTypes are those of the files that are served. What a machine thinks of its file
// extensions must not matter.
var mediaTypes = map[string]string{
	".html":  mediaHTML,
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
}

// file is a file that changes only with the program. Browsers keep it and ask each time
// whether it is still the same, so that a page never mixes two versions.
type file struct {
	media string
	data  []byte
	tag   string        // entity tag of data as it is
	small func() []byte // data under gzip, nil when that is not worth it
}

func newFile(media string, data []byte) *file {
	sum := sha256.Sum256(data)
	f := &file{media: media, data: data, tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`}
	f.small = sync.OnceValue(func() []byte { return compressed(media, data) })
	return f
}

// ServeHTTP answers GET and HEAD.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	data, tag := f.data, f.tag
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		if small := f.small(); small != nil {
			data, tag = small, strings.TrimSuffix(tag, `"`)+`.gz"` // another representation has another tag
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("Etag", tag)
	if slices.ContainsFunc(strings.Split(r.Header.Get("If-None-Match"), ","), func(t string) bool {
		return strings.TrimPrefix(strings.TrimSpace(t), "W/") == tag
	}) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", f.media)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(data) // a client that has gone needs none
}

// acceptsGzip reports whether an Accept-Encoding names gzip and does not refuse it.
func acceptsGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		coding, params, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			_, weight, ok := strings.Cut(params, "=")
			q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			return !ok || err == nil && q > 0
		}
	}
	return false
}

// compressed gives data under gzip unless it is compressed already.
func compressed(media string, data []byte) []byte {
	if strings.HasPrefix(media, "font/") {
		return nil
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil
	}
	if _, err := z.Write(data); err != nil || z.Close() != nil || b.Len() >= len(data) {
		return nil
	}
	return b.Bytes()
}
