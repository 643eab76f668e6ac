package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-playground/validator/v10"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
)

// Options configure a [Server]. The zero value works.
type Options struct {
	// Logger gets one line a request. nil: nothing is logged.
	Logger *slog.Logger
	// SuccessLines bounds the lines a second for requests that succeed, and apart from them
	// those for requests that are told to come later; a line says how many were left out
	// before it. Other failures are always logged. 0: 20. Negative: no bound.
	SuccessLines int
	// Traces makes the spans of requests. nil: there are none, and nothing is paid for
	// them; the log lines name the client's trace all the same.
	Traces trace.TracerProvider
	// Version and Revision are what /version and the build metric say.
	Version, Revision string
	// MaxBodyBytes bounds a request body after decompression. 0: 16 MiB.
	MaxBodyBytes int64
	// BodyMemory bounds the request bodies that are held at the same time, from their
	// first byte until they have been answered, and ReadMemory the records that answers
	// of reads hold; more is refused as overloaded. In bytes; 0: 256 MiB. Each is made
	// large enough for the largest body, coded and decoded, or the largest batch.
	BodyMemory, ReadMemory int64
	// MaxBodies bounds the number of those bodies: each counts for its share of
	// BodyMemory at least, for it holds more than its bytes. 0: 4096.
	MaxBodies int
	// Patience is how long a client may take its time to send a body or to read an answer
	// when others need the memory. 0: 2 s.
	Patience time.Duration
	// MaxHeaderBytes bounds names and values of all request headers together. 0:
	// 64 KiB. It must be well below http.Server.MaxHeaderBytes, which closes the
	// connection with a plain-text 431 before any handler runs.
	MaxHeaderBytes int
	// CommitTimeout is how long an append may wait for the engine before it is
	// answered with commit-timeout. 0: 30 s.
	CommitTimeout time.Duration
	// ReorderWait is what the engine was opened with; /limits reports it.
	ReorderWait time.Duration
	// AutoCreateTopics is the number of partitions of a topic that an append creates
	// when it does not exist. 0: an append to an unknown topic is refused.
	AutoCreateTopics int
	// CORSOrigins may use the API from browsers: "https://host" or "*". None: no
	// CORS headers are sent and state-changing cross-origin requests are refused.
	CORSOrigins []string
	// Access lets requests in. nil: all of them may do everything.
	Access *access.Control
	// BodyTimeout bounds how long a request body may take to arrive. 0: 60 s.
	BodyTimeout time.Duration
	// WriteTimeout bounds each write of a streamed answer. 0: 30 s.
	WriteTimeout time.Duration
	// Heartbeat is the time between the comment lines of an idle event stream. 0: 15 s.
	Heartbeat time.Duration
	// Now is the clock of log lines and metrics. nil: time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "unknown"
	}
	if o.Revision == "" {
		o.Revision = "unknown"
	}
	if o.SuccessLines == 0 {
		o.SuccessLines = 20
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 16 << 20
	}
	if o.BodyMemory == 0 {
		o.BodyMemory = 256 << 20
	}
	if o.ReadMemory == 0 {
		o.ReadMemory = 256 << 20
	}
	o.BodyMemory = max(o.BodyMemory, 2*(max(o.MaxBodyBytes, zstdWindow)+codingOverhead))
	o.ReadMemory = max(o.ReadMemory, store.MaxBatchBytes+usualRead)
	if o.MaxBodies == 0 {
		o.MaxBodies = 4096
	}
	if o.Patience == 0 {
		o.Patience = 2 * time.Second
	}
	if o.MaxHeaderBytes == 0 {
		o.MaxHeaderBytes = 64 << 10
	}
	if o.CommitTimeout == 0 {
		o.CommitTimeout = 30 * time.Second
	}
	if o.BodyTimeout == 0 {
		o.BodyTimeout = 60 * time.Second
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 30 * time.Second
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// open lets everybody in.
func (o Options) open() (*access.Control, error) {
	if o.Access != nil {
		return o.Access, nil
	}
	return access.New(access.Options{})
}

// Server answers HTTP requests from a store. It is an [http.Handler], safe for
// concurrent use.
type Server struct {
	options  Options
	log      *slog.Logger
	routes   http.Handler
	problems map[string]openapi.ProblemType
	pages    *pages
	validate *validator.Validate
	metrics  *metrics
	access   *access.Control
	bodies   *bodies
	decoders decoderPool
	// bodyMemory and readMemory are what requests may hold.
	bodyMemory, readMemory *budget
	// successes bounds the log lines of requests that succeed, refusals those of requests
	// that are told to come later.
	successes, refusals lineLimiter

	engine atomic.Pointer[store.Store] // nil until Serve

	sampler   *sampler
	streaming atomic.Int64 // event streams that are open

	// topicChanges makes look-then-change on topics one step: DeleteTopic and
	// CreateTopic take no condition, If-Match and PUT need one.
	topicChanges sync.Mutex

	leaving atomic.Bool // Leave has been called

	// draining ends when Drain is called. It is a context because long polls and
	// streams wait on it together with their request's.
	draining context.Context
	drain    context.CancelFunc
}

// New makes a server that answers not-ready until [Server.Serve] gives it a store.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	s := &Server{
		options:  o,
		log:      o.Logger,
		problems: map[string]openapi.ProblemType{},
		validate: newValidate(),
		bodies:   &bodies{limit: o.MaxBodyBytes},

		bodyMemory: newBudget(o.BodyMemory, int64(o.MaxBodies), o.Patience),
		readMemory: newBudget(o.ReadMemory, 0, o.Patience),
	}
	s.successes.limit, s.refusals.limit = int64(o.SuccessLines), int64(o.SuccessLines)
	for _, p := range openapi.ProblemTypes() {
		s.problems[p.Code] = p
	}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.metrics = newMetrics(s)
	s.sampler = newSampler(s)
	var err error
	if s.access, err = o.open(); err != nil {
		return nil, err
	}
	if s.pages, err = newPages(); err != nil {
		return nil, err
	}
	if s.routes, err = s.newRoutes(); err != nil {
		return nil, err
	}
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// Serve gives the server its store and makes it ready. The caller closes the store,
// after the last request has been answered.
func (s *Server) Serve(st store.Store) {
	s.engine.Store(&st)
	s.sampler.start()
}

// Leave makes /readyz say draining, so that load balancers send no more, and changes
// nothing else: what comes until they have noticed is answered. Drain comes later.
func (s *Server) Leave() { s.leaving.Store(true) }

// Drain refuses new appends, ends long polls and event streams, and makes /readyz
// fail. What is in flight goes on. It may be called twice.
func (s *Server) Drain() {
	s.drain()
	s.sampler.stop()
}

// store returns the store, or the problem that there is none yet.
func (s *Server) store() (store.Store, error) {
	st := s.engine.Load()
	if st == nil {
		return nil, &problem{code: string(store.CodeNotReady), detail: "the server is opening its store"}
	}
	return *st, nil
}

// untilDrain derives a context that also ends when the server drains. The returned
// function must be called.
func (s *Server) untilDrain(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.draining, cancel)
	return ctx, func() { stop(); cancel() }
}
