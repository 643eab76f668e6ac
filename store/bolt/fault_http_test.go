package bolt_test

import (
	"context"
	"flag"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/server/twin"
	"github.com/oncelog/oncelog/store/bolt"
	"github.com/oncelog/oncelog/store/storetest"
)

var httpRuns = flag.Int("http.runs", 10, "runs of TestHTTPAgainstModel; -rapid.checks must be as many")

// TestHTTPAgainstModel holds the engine behind the HTTP interface to the model behind the
// same one, through restarts of both kinds.
func TestHTTPAgainstModel(t *testing.T) {
	dir := shm(t)
	twin.Check(t, *httpRuns, func() twin.Subject {
		clock := storetest.NewClock()
		here, err := os.MkdirTemp(dir, "run-") //nolint:usetesting // that of the test lies on the disk
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, dir: here, log: &logBuffer{}, opts: bolt.Options{Now: clock.Now, DiskReserve: -1, RetentionInterval: time.Hour}}
		r.open()
		handler := r.handler()
		return twin.Subject{
			Clock: clock,
			End:   r.end,
			Send:  twin.Handler(func() http.Handler { return handler }),
			Sweep: func() {
				if err := r.Sweep(context.Background()); err != nil {
					t.Fatal(err)
				}
			},
			Restart: func(kill bool) {
				if kill {
					r.crash()
				} else {
					r.close()
				}
				r.open()
				handler = r.handler()
			},
		}
	})
}

// handler is a server over the engine as it is.
func (r *rig) handler() http.Handler {
	r.t.Helper()
	s, err := server.New(server.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	s.Serve(r.Store)
	return s
}

// end closes the engine and checks what it leaves.
func (r *rig) end() {
	r.t.Helper()
	r.close()
	r.check()
	if err := os.RemoveAll(r.dir); err != nil {
		r.t.Error(err)
	}
}
