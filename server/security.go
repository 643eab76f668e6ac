package server

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/go-chi/cors"
)

// anyOrigin as a CORS origin lets every page in.
const anyOrigin = "*"

// crossOrigin refuses state-changing requests that a browser makes for a page of
// another origin, unless CORS lets that origin in. Requests of other programs carry
// neither Sec-Fetch-Site nor Origin and pass.
func (s *Server) crossOrigin() (func(http.Handler) http.Handler, error) {
	check := http.NewCrossOriginProtection()
	everybody := slices.Contains(s.options.CORSOrigins, anyOrigin)
	for _, origin := range s.options.CORSOrigins {
		if origin == anyOrigin {
			continue
		}
		if err := check.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("cors origin: %w", err)
		}
	}
	return func(next http.Handler) http.Handler {
		if everybody {
			return next
		}
		refuse := s.plain(func(_ *exchange, _ *http.Request) error {
			return &problem{code: codeCrossOrigin, detail: "a page of another origin may not change anything here"}
		})
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if check.Check(r) != nil {
				refuse(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil
}

// cors answers preflights and marks answers for the configured origins. With none it
// does nothing.
func (s *Server) cors() func(http.Handler) http.Handler {
	if len(s.options.CORSOrigins) == 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	return cors.Handler(cors.Options{
		AllowedOrigins: s.options.CORSOrigins,
		AllowedMethods: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"},
		AllowedHeaders: []string{
			"Accept", "Authorization", "Content-Type", "Content-Encoding", "If-Match", "If-None-Match", "Last-Event-ID",
			"Prefer", headerRequestID, headerProducerID, headerProducerEpoch, headerProducerSeq, headerRecordKey,
		},
		ExposedHeaders: []string{
			"Allow", "ETag", "Idempotent-Replayed", "Location", "Preference-Applied", "Retry-After", headerRequestID,
			"Next-Offset", "High-Watermark", "Earliest-Offset", "RateLimit", "RateLimit-Policy", "WWW-Authenticate",
		},
		MaxAge: 600, // seconds that a browser may remember a preflight
	})
}

// limitHeaders refuses headers above the limit. net/http counts them too, but answers
// in plain text; it has the larger limit.
func (s *Server) limitHeaders(next http.Handler) http.Handler {
	refuse := s.plain(func(_ *exchange, _ *http.Request) error {
		return &problem{code: codeHeadersTooLarge, detail: fmt.Sprintf("the headers are longer than the %d bytes that are allowed", s.options.MaxHeaderBytes)}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := len(r.RequestURI)
		for name, values := range r.Header {
			for _, v := range values {
				n += len(name) + len(v)
			}
		}
		if n > s.options.MaxHeaderBytes {
			refuse(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
