package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
)

// handler answers a request, or returns why it cannot before having written anything.
type handler func(x *exchange, r *http.Request) error

// endpoint is a handler that needs the store.
type endpoint func(x *exchange, r *http.Request, st store.Store) error

// exchange is the response writer of one request and what is known of it. observe
// makes it and hands it down the chain, which saves a context value and a copy of the
// request.
type exchange struct {
	http.ResponseWriter
	id      string // request id
	start   time.Time
	status  int // 0 until the header has been written
	bytes   int64
	code    string // of the problem, if any
	cause   error  // for the log
	gone    bool   // the client left before it was answered
	cut     bool   // the answer broke off
	idField [1]string
	scratch [256]byte // for a short answer
	body    timedBody
	answer  holder  // memory for what was read
	lent    *[]byte // that memory, if it is to be used again
	leaving atomic.Bool
	// patience is how long a write may take.
	patience time.Duration
	caller   *access.Caller // who asks; nil where anybody may
	meter    *access.Meter  // nil: nothing is counted
}

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
		x.hurry()
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write counts what is written.
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
		x.hurry()
	}
	n, err := x.ResponseWriter.Write(b)
	x.bytes += int64(n)
	if x.meter != nil {
		x.meter.Used(int64(n))
	}
	return n, err
}

// hurry bounds how long the answer may take to be written. Without that a client that sends
// requests and reads no answers would be waited for for ever. Answers in several steps do
// it again for each; net/http lifts it when the answer is complete.
func (x *exchange) hurry() { x.deadline(time.Now().Add(x.patience)) }

// deadline sets the connection's for writing.
func (x *exchange) deadline(t time.Time) {
	for w := x.ResponseWriter; w != nil; w = unwrapped(w) {
		if c, ok := w.(interface{ SetWriteDeadline(t time.Time) error }); ok {
			_ = c.SetWriteDeadline(t)
			return
		}
	}
}

// leave ends the wait for a client that takes its time to read.
func (x *exchange) leave() {
	x.leaving.Store(true)
	x.deadline(time.Unix(1, 0))
}

// readBuffers hold what is read, for the next reads: most of the memory of a read would
// otherwise be cleared to be written over.
var readBuffers = sync.Pool{New: func() any { return new([]byte) }}

// keptBuffer is the largest that is kept.
const keptBuffer = 4 << 20

// buffer gives memory to read into. What was read before is lost.
func (x *exchange) buffer() []byte {
	if x.lent == nil {
		x.lent = readBuffers.Get().(*[]byte) //nolint:errcheck,forcetypeassert // nothing else is put there
	}
	return *x.lent
}

// release gives back the memory that was read into.
func (x *exchange) release() {
	if x.lent != nil && cap(*x.lent) <= keptBuffer {
		readBuffers.Put(x.lent)
	}
	x.lent = nil
	x.answer.end()
}

// Unwrap lets [http.ResponseController] reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// plain adapts a handler to net/http.
func (s *Server) plain(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := w.(*exchange) //nolint:errcheck // observe made it, and nothing wraps it
		if err := h(x, r); err != nil {
			s.fail(x, r, err)
		}
	}
}

// api adapts a handler that needs the store, and answers not-ready while there is none.
func (s *Server) api(h endpoint) http.HandlerFunc {
	return s.plain(func(x *exchange, r *http.Request) error {
		st, err := s.store()
		if err != nil {
			return err
		}
		return h(x, r, st)
	})
}

// observe gives the request its id, and logs and counts it when it has been answered.
// A panic is answered as an internal problem; when an answer had begun, the connection
// is cut, so that half of an answer never looks like the whole.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{ResponseWriter: w, id: requestID(r), start: s.options.Now(), patience: s.options.WriteTimeout}
		x.idField[0] = x.id
		h := w.Header()
		h[headerRequestID] = x.idField[:]
		h["X-Content-Type-Options"] = noSniff
		if r.Method == http.MethodGet {
			// A page of another site cannot even load it as an image or a script.
			h["Cross-Origin-Resource-Policy"] = sameOrigin
		}
		s.metrics.inFlight.Inc()
		defer func() { // after the recovery, and whatever becomes of that
			x.body.hold.end()
			x.release()
			s.metrics.inFlight.Dec()
			s.report(x, r)
		}()
		defer func() {
			if p := recover(); p != nil && !s.recovered(x, r, p) {
				panic(http.ErrAbortHandler)
			}
		}()
		if r.ContentLength != 0 {
			x.body.ReadCloser, x.body.w, x.body.timeout = r.Body, w, s.options.BodyTimeout
			x.body.hold.budget = s.bodyMemory
			if r.ProtoMajor == 2 && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
				// Nobody reads it, and HTTP/2 would keep what has come of it for as long
				// as a long poll or a stream takes.
				_ = r.Body.Close()
			}
			r.Body = &x.body
		}
		next.ServeHTTP(x, r)
	})
}

// recovered logs a panic and answers it if that is still possible.
func (s *Server) recovered(x *exchange, r *http.Request, p any) (answered bool) {
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so too
		return false
	}
	s.log.LogAttrs(r.Context(), slog.LevelError, "panic in a handler",
		slog.String("request.id", x.id), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	if x.status != 0 || r.Context().Err() != nil {
		x.cut = true
		return false
	}
	s.fail(x, r, fmt.Errorf("panic: %v", p))
	return true
}

// notFound answers a path that is none of ours.
func (s *Server) notFound(_ *exchange, r *http.Request) error {
	return &problem{code: codeNotFound, detail: "nothing is at " + r.URL.EscapedPath()}
}

// methodNotAllowed answers a method that the path does not take, and says which it
// does. chi gives a handler of one's own no list of them, so the routes are asked.
func (s *Server) methodNotAllowed(routes chi.Routes) handler {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	return func(x *exchange, r *http.Request) error {
		path := r.URL.RawPath
		if path == "" {
			path = r.URL.Path
		}
		allowed := slices.DeleteFunc(slices.Clone(methods), func(m string) bool {
			if m == http.MethodHead {
				m = http.MethodGet
			}
			return !routes.Match(chi.NewRouteContext(), m, path)
		})
		if len(allowed) == 0 { // chi asks about the method first, the path may be no path at all
			return s.notFound(x, r)
		}
		return &problem{
			code:   codeMethodNotAllowed,
			detail: r.Method + " is not allowed here",
			header: [2]string{"Allow", strings.Join(allowed, ", ")},
		}
	}
}

// pathParam returns a path parameter, decoded. chi matches the escaped path where the
// plain one would be ambiguous, and gives parameters as they stood in it.
func pathParam(r *http.Request, name string) string {
	v := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return v
	}
	if u, err := url.PathUnescape(v); err == nil {
		return u
	}
	return v
}
