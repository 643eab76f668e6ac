package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/bolt"
)

func newBolt(t testing.TB, dir string, o bolt.Options) *bolt.Store {
	t.Helper()
	if o.DiskReserve == 0 {
		o.DiskReserve = -1
	}
	st, err := bolt.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// TestBackup: what comes over the wire is what the headers say, and makes a store that
// answers as the one that it was taken from.
func TestBackup(t *testing.T) {
	e := newEnvOver(t, newBolt(t, t.TempDir(), bolt.Options{}))
	p := e.topic("t")
	e.json("POST", "/producers", "").is(201)
	first := `{"pid":0,"epoch":0,"baseSeq":0,"records":[{"valueText":"a"},{"valueText":"b"}]}`
	e.json("POST", p+"/batches", first).is(200)
	e.unchecked().do("HEAD", "/backup", "").is(200)
	a := e.unchecked().get("/backup").is(200)
	sum := sha256.Sum256(a.body)
	if got, want := a.header.Get("Repr-Digest"), "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":"; got != want {
		t.Errorf("Repr-Digest %q, want %q", got, want)
	}
	if a.header.Get("Content-Type") != "application/octet-stream" || a.header.Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(a.header.Get("Content-Disposition"), `attachment; filename="oncelog-2`) {
		t.Errorf("%v", a.header)
	}
	e.json("POST", p+"/batches", `{"pid":0,"epoch":0,"baseSeq":2,"records":[{"valueText":"lost"}]}`).is(200)
	e.json("POST", p+"/batches", `{"pid":0,"epoch":0,"baseSeq":3,"records":[{"valueText":"and this"}]}`).is(200)
	kept := e.get(p + "/records?limit=2").is(200).header.Get("Etag")
	lost := e.get(p + "/records?offset=2&limit=1").is(200).header.Get("Etag")

	dir := filepath.Join(t.TempDir(), "data")
	if rep, err := bolt.Restore(context.Background(), dir, bytes.NewReader(a.body), bolt.RestoreOptions{SHA256: &sum}); err != nil || len(rep.Problems) > 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	back := newEnvOver(t, newBolt(t, dir, bolt.Options{}))
	if got := as[map[string]any](back.json("POST", p+"/batches", first).is(200)); got["duplicate"] != true || got["nextSeq"] != 2.0 {
		t.Errorf("a repeat after the restore: %v", got)
	}
	if got := back.records(p); len(got.Records) != 2 {
		t.Errorf("%d records", len(got.Records))
	}
	back.json("POST", p+"/batches", `{"pid":0,"epoch":0,"baseSeq":3,"records":[{"valueText":"c"}]}`, "Prefer: wait=0").problem("out-of-order-sequence")
	back.json("POST", p+"/batches", `{"pid":0,"epoch":0,"baseSeq":2,"records":[{"valueText":"c"}]}`).is(200)
	back.json("POST", p+"/batches", `{"pid":0,"epoch":0,"baseSeq":3,"records":[{"valueText":"d"}]}`).is(200)
	// What a client has kept of records that are still there is good, and of others is not.
	back.get(p+"/records?limit=2", "If-None-Match: "+kept).is(304)
	back.get(p+"/records?offset=2&limit=1", "If-None-Match: "+lost).is(200)
	if got := as[map[string]any](back.json("POST", "/producers", "").is(201)); got["pid"].(float64) < 1<<32 {
		t.Errorf("the next producer is %v, an id that may have been given away", got)
	}
}

func TestBackupRefused(t *testing.T) {
	newEnv(t).get("/backup").problem("not-found") // the model has nothing to copy
	newEnvWithoutStore(t).get("/backup").problem("not-ready")
	full := newEnvOver(t, newBolt(t, t.TempDir(), bolt.Options{DiskReserve: 1 << 62}))
	full.get("/backup").problem("storage-full")
	st := &slowBackup{Store: newBolt(t, t.TempDir(), bolt.Options{}), release: make(chan struct{}), begun: make(chan struct{})}
	e := newEnvOver(t, st)
	done := make(chan *answer, 1)
	go func() { done <- e.unchecked().get("/backup") }()
	<-st.begun
	e.get("/backup").problem("overloaded")
	close(st.release)
	if a := <-done; a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// slowBackup is an engine whose first backup waits before it gives anything.
type slowBackup struct {
	*bolt.Store
	begun, release chan struct{}
}

func (s *slowBackup) Backup(ctx context.Context) (*store.Backup, error) {
	b, err := s.Store.Backup(ctx)
	if err == nil {
		close(s.begun)
		<-s.release
	}
	return b, err
}

// TestBackupThatBreaksOff must not look like a whole one.
func TestBackupThatBreaksOff(t *testing.T) {
	e := newEnvOver(t, &brokenBackup{newBolt(t, t.TempDir(), bolt.Options{})})
	resp, err := e.unchecked().client.Get(e.url + "/backup")
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
	}
	if err == nil {
		t.Error("half of a backup has come to a proper end")
	}
	cut := false
	for _, line := range e.log.lines(t) {
		cut = cut || line["level"] == "ERROR" && strings.Contains(line["error"].(string), "the disk has gone")
	}
	if !cut {
		t.Error("the log does not say that it broke off")
	}
}

type brokenBackup struct{ *bolt.Store }

func (*brokenBackup) Backup(context.Context) (*store.Backup, error) {
	content := io.MultiReader(strings.NewReader("half"), &failingReader{})
	return &store.Backup{Content: content, Size: 8, Close: func() error { return nil }}, nil
}

type failingReader struct{}

func (*failingReader) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Err: errors.New("the disk has gone")}
}

// TestBackupToAClientThatStalls ends when the client takes nothing.
func TestBackupToAClientThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newBolt(t, t.TempDir(), bolt.Options{})
		s, err := server.New(server.Options{WriteTimeout: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Drain()
		s.Serve(st)
		conn := piped(t, s)
		if _, err := io.WriteString(conn, "GET /backup HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		// Of its body nothing is read.
		if _, err := st.Backup(t.Context()); store.CodeOf(err) != store.CodeOverloaded {
			t.Errorf("the copy is not held up: %v", err)
		}
		time.Sleep(time.Second)
		b, err := st.Backup(t.Context())
		if err != nil {
			t.Fatalf("the copy for the client that stalls is still there: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
}
