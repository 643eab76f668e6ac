package server

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
)

const (
	headerRequestID = "X-Request-Id"
	maxRequestID    = 128
)

// requestID returns the client's request id if it is fit for logs and headers, 1 to 128
// printable ASCII characters, or else a new one of 64 random bits.
func requestID(r *http.Request) string {
	if v := r.Header[headerRequestID]; len(v) == 1 && saneRequestID(v[0]) {
		return v[0]
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	var text [16]byte
	hex.Encode(text[:], random[:])
	return string(text[:])
}

func saneRequestID(id string) bool {
	return id != "" && len(id) <= maxRequestID && printable(id)
}

// printable reports whether s is printable ASCII throughout.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
