package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/alecthomas/kong"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

// serveCmd runs the server.
type serveCmd struct {
	Data       string `default:"./oncelog-data" placeholder:"DIR" help:"Directory of the store; made when there is none. Default ${default}."`
	Listen     string `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to listen on; port 0 picks a free one. Default ${default}."`
	ListenFile string `placeholder:"FILE" help:"Write the server's URL to this file once it listens."`

	ReorderWait      time.Duration `default:"100ms" help:"How long a batch that is ahead of its predecessors waits for them; 0s refuses it at once."`
	MaxBodyBytes     byteSize      `default:"16MiB" placeholder:"BYTES" help:"Largest request body after decompression. Default ${default}."`
	AutoCreateTopics int           `default:"0" placeholder:"N" help:"Create a topic that does not exist, with N partitions, on the first append to it. 0: do not. Only for appends over plain HTTP: oncelog produce and the Go producer look the topic up first."`
	CORSOrigin       []string      `name:"cors-origin" placeholder:"ORIGIN" help:"Web origin whose pages may use the API, or *. May be repeated."`

	MaxStoreBytes     byteSize      `default:"0" placeholder:"BYTES" help:"Refuse appends once the store holds so much. 0: no bound."`
	DiskReserve       byteSize      `default:"64MiB" placeholder:"BYTES" help:"Refuse appends when less is free on the disk. Default ${default}."`
	RetentionInterval time.Duration `default:"1s" help:"How often retention and the expiry of producers are looked after."`
	QueueLength       int           `default:"4096" placeholder:"N" help:"Most requests with a body, appends above all, that are received or wait to be written at the same time; more are refused as overloaded. Default ${default}."`
	QueueBytes        byteSize      `default:"256MiB" placeholder:"BYTES" help:"Most bytes of the appends that wait to be written. Default ${default}."`
	MaxProducers      int64         `default:"0" placeholder:"N" help:"Most producers that are remembered, counted in each partition that knows them; beyond it those that have been quiet for longest are expired. 0: no bound but the topics' own."`
	RequestMemory     byteSize      `default:"0" placeholder:"BYTES" help:"Memory that requests may hold at the same time, half of it for bodies and half for answers of reads; more are refused as overloaded. Default: an eighth of the memory that there is, from 64 MiB to 512 MiB."`
	MaxConnections    int           `default:"0" placeholder:"N" help:"Most connections. A further one takes the place of the one that has been idle for longest. Default: one for each 256 KiB of memory, at most 65536 and three quarters of the files that may be open."`

	accessFlags

	DrainDelay   time.Duration `default:"0s" help:"How long to go on as before, with /readyz already saying draining, when asked to stop: the time in which a load balancer notices. Default ${default}."`
	DrainTimeout time.Duration `default:"30s" help:"How long to finish what is in flight when asked to stop."`
	LogLevel     slog.Level    `default:"info" placeholder:"LEVEL" help:"debug, info, warn or error. Default ${default}."`
	LogFormat    string        `default:"auto" enum:"auto,json,text" placeholder:"FORMAT" help:"json or text. Default: text on a terminal, else json."`
	LogSuccesses int           `default:"20" placeholder:"N" help:"Most lines a second for requests that succeed, and for those that are refused because there is too much to do; other failures are always logged. -1: one for each. Default ${default}."`
}

// Validate refuses values that kong cannot know to be wrong.
func (c *serveCmd) Validate() error {
	switch {
	case c.Data == "":
		return errors.New("--data is empty")
	case c.Listen == "":
		return errors.New("--listen is empty; give host:port, such as 127.0.0.1:8080")
	case c.ReorderWait < 0:
		return errors.New("--reorder-wait is negative")
	case c.MaxBodyBytes < 1:
		return errors.New("--max-body-bytes must be at least 1")
	case c.AutoCreateTopics < 0 || c.AutoCreateTopics > store.MaxPartitions:
		return fmt.Errorf("--auto-create-topics must be from 0 to %d", store.MaxPartitions)
	case c.RetentionInterval <= 0:
		return errors.New("--retention-interval must be above 0s")
	case c.MaxProducers < 0:
		return errors.New("--max-producers is negative")
	case c.QueueLength < 1 || c.QueueBytes < 1:
		return errors.New("--queue-length and --queue-bytes must be at least 1")
	case c.MaxConnections < 0:
		return errors.New("--max-connections is negative")
	case c.DrainTimeout <= 0 || c.DrainDelay < 0:
		return errors.New("--drain-timeout must be above 0s, and --drain-delay not negative")
	case c.LogSuccesses != -1 && c.LogSuccesses < 1:
		return errors.New("--log-successes must be at least 1, or -1 for no bound; --log-level warn logs failures alone")
	}
	return c.validate()
}

// heapFloor is memory (bytes) that is reserved and never touched, so that it costs none.
// The garbage collector lets the heap double before it works; in one as small as that of
// a server without many producers it would otherwise run after every few reads, which
// takes a quarter of their rate and a twelfth of that of appends.
const heapFloor = 64 << 20

// Run serves until ctx ends, and then stops in an order that loses nothing that was
// accepted. It listens before it opens the store, so that whoever asks meanwhile gets
// a proper not-ready and not a refused connection.
func (c *serveCmd) Run(ctx context.Context, std *stdio, command *kong.Context) error {
	defer runtime.KeepAlive(make([]byte, heapFloor))
	log := newLogger(std, c.LogLevel, c.LogFormat)
	log.LogAttrs(ctx, slog.LevelDebug, "configuration", configuration(command))
	secure, err := c.loadTLS()
	if err != nil {
		return err
	}
	l, err := listen(ctx, c.Listen, c.ListenFile, secure != nil)
	if err != nil {
		return err
	}
	defer l.close()
	control, err := c.control(ctx, c.Data, secure, l, log)
	if err != nil {
		return err
	}
	defer control.Close()
	traces, flush := openTraces(ctx, log)
	defer flush(context.WithoutCancel(ctx)) // last: the store has been closed by then
	handler, err := server.New(c.serverOptions(log, control, traces))
	if err != nil {
		return &usageError{err: err}
	}
	if err := l.announce(ctx, log); err != nil {
		return err
	}
	unwatch := watch(ctx, control, secure, log)
	defer unwatch()
	web := newHTTPServer(handler, log)
	web.ConnState = newConnections(maxConnections(c.MaxConnections)).changed
	serve := overTLS(web, l, secure)
	failed := make(chan error, 1)
	go func() { failed <- serve() }()

	st, err := c.openStore(ctx, log)
	if err != nil {
		return errors.Join(err, web.Close())
	}
	handler.Serve(st)
	log.InfoContext(ctx, "ready", slog.String("address", l.url()))
	notify(ctx, log, notifyReady)
	select {
	case err = <-failed:
		log.ErrorContext(ctx, "the listener failed", slog.Any("error", err))
	case <-ctx.Done():
		log.InfoContext(ctx, "stopping", slog.Duration("drain.timeout", c.DrainTimeout))
	}
	return errors.Join(err, c.stop(context.WithoutCancel(ctx), log, handler, web, st))
}

// stop ends the service: first in what /readyz says, then no new connections and appends,
// then answers for what is in flight, then a snapshot of every partition.
func (c *serveCmd) stop(ctx context.Context, log *slog.Logger, handler *server.Server, web *http.Server, st *bolt.Store) error {
	start := time.Now()
	notify(ctx, log, notifyStopping)
	handler.Leave()
	time.Sleep(c.DrainDelay)
	handler.Drain() //nolint:contextcheck // what Drain ends has no request
	drain, cancel := context.WithTimeout(ctx, c.DrainTimeout)
	defer cancel()
	if err := web.Shutdown(drain); err != nil {
		log.WarnContext(ctx, "requests were cut off", slog.Any("error", errors.Join(err, web.Close())))
	}
	if err := st.Close(); err != nil {
		return fmt.Errorf("close the store: %w", err)
	}
	log.InfoContext(ctx, "stopped", slog.Duration("duration", time.Since(start)))
	return nil
}

// openStore opens the store. Opening cannot be interrupted; when ctx ends, the store is
// closed right after it.
func (c *serveCmd) openStore(ctx context.Context, log *slog.Logger) (*bolt.Store, error) {
	reserve := int64(c.DiskReserve)
	if reserve == 0 {
		reserve = -1 // to bolt, 0 means its default
	}
	log.InfoContext(ctx, "opening the store", slog.String("data", c.Data))
	st, err := bolt.Open(c.Data, bolt.Options{ //nolint:contextcheck // the store outlives ctx: Close ends it
		Logger:            log,
		ReorderWait:       c.ReorderWait,
		MaxBytes:          int64(c.MaxStoreBytes),
		DiskReserve:       reserve,
		RetentionInterval: c.RetentionInterval,
		QueueLength:       c.QueueLength,
		QueueBytes:        int64(c.QueueBytes),
		MaxProducers:      c.MaxProducers,
	})
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", c.Data, err)
	}
	return st, nil
}

func (c *serveCmd) serverOptions(log *slog.Logger, control *access.Control, traces trace.TracerProvider) server.Options {
	b := readBuild()
	return server.Options{
		Logger:           log,
		SuccessLines:     c.LogSuccesses,
		Traces:           traces,
		Version:          b.version,
		Revision:         b.revision,
		MaxBodyBytes:     int64(c.MaxBodyBytes),
		BodyMemory:       requestMemory(int64(c.RequestMemory)) / 2,
		ReadMemory:       requestMemory(int64(c.RequestMemory)) / 2,
		MaxBodies:        c.QueueLength,
		ReorderWait:      c.ReorderWait,
		AutoCreateTopics: c.AutoCreateTopics,
		CORSOrigins:      c.CORSOrigin,
		Access:           control,
	}
}

// newHTTPServer takes HTTP/1.1 and HTTP/2 with prior knowledge on one port. There is no
// timeout on whole requests: long polls and streams take as long as they take, and the
// handler sets deadlines of its own for bodies and for streamed answers.
func newHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		// Well above the bound that the handler answers with a problem, and no more: every
		// connection may hold so much while its headers arrive.
		MaxHeaderBytes: 128 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// newLogger logs to standard error: as text for people, as JSON for programs.
func newLogger(std *stdio, level slog.Level, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: readable}
	if format == "text" || format == "auto" && isTerminal(std.err) {
		return slog.New(slog.NewTextHandler(std.err, o))
	}
	return slog.New(slog.NewJSONHandler(std.err, o))
}

// readable writes durations as people do, 1.5s, and not as a number of nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

// configuration is what the flags of a command are set to, under their names.
func configuration(command *kong.Context) slog.Attr {
	var flags []slog.Attr
	for _, f := range command.Flags() {
		if f.Name != "help" {
			flags = append(flags, slog.Any(f.Name, f.Target.Interface()))
		}
	}
	return slog.Attr{Key: "flags", Value: slog.GroupValue(flags...)}
}
