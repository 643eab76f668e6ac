package server_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
	"github.com/oncelog/oncelog/store/memory"
	"github.com/oncelog/oncelog/store/storetest"
)

// traits are what the HTTP interface cannot express: reads give records, and closing is
// the server's own business.
var traits = storetest.Traits{Records: true, NoClose: true, NoOwners: true}

// TestConformanceMemory holds the HTTP interface to what every engine must do: the
// suite's calls go through producer.Client and a server to the model.
func TestConformanceMemory(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		Open: func(t testing.TB, clock *storetest.Clock) store.Store {
			t.Helper()
			return newRemote(t, memory.Open(memory.Options{Now: clock.Now}))
		},
		Reopen: func(t testing.TB, s store.Store, kill bool) store.Store {
			t.Helper()
			r := s.(*remote)
			r.disconnect()
			return newRemote(t, r.behind.(*memory.Store).Restart(kill))
		},
		Sweep:  func(_ testing.TB, s store.Store) { s.(*remote).behind.(*memory.Store).Sweep() },
		Traits: traits,
	})
}

// TestConformanceBolt is the same with the embedded engine. Restarts are clean ones;
// the engine's own tests kill it.
func TestConformanceBolt(t *testing.T) {
	slow := traits
	slow.Slow = true
	dirs := map[store.Store]func() store.Store{} // how to open an engine again
	var open func(t testing.TB, dir string, o bolt.Options) store.Store
	open = func(t testing.TB, dir string, o bolt.Options) store.Store {
		t.Helper()
		s, err := bolt.Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		dirs[s] = func() store.Store { return open(t, dir, o) }
		return s
	}
	storetest.Run(t, storetest.Factory{
		Open: func(t testing.TB, clock *storetest.Clock) store.Store {
			t.Helper()
			return newRemote(t, open(t, t.TempDir(), bolt.Options{Now: clock.Now, DiskReserve: -1, RetentionInterval: time.Hour}))
		},
		Reopen: func(t testing.TB, s store.Store, _ bool) store.Store {
			t.Helper()
			r := s.(*remote)
			r.disconnect()
			if err := r.behind.Close(); err != nil {
				t.Fatal(err)
			}
			return newRemote(t, dirs[r.behind]())
		},
		Traits: slow,
	})
}

// remote is an engine behind a server, behind a client.
type remote struct {
	t      testing.TB
	behind store.Store
	http   *httptest.Server
	client *producer.Client
}

func newRemote(t testing.TB, behind store.Store) *remote {
	t.Helper()
	s, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(behind)
	r := &remote{t: t, behind: behind, http: httptest.NewServer(s)}
	if r.client, err = producer.NewClient(r.http.URL, producer.WithHeader("Prefer", "wait=0")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.disconnect()
		if err := behind.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// disconnect ends the server but not the engine.
func (r *remote) disconnect() {
	r.client.CloseIdleConnections()
	r.http.Close()
}
