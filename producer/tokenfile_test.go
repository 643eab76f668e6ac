package producer_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server/access/certtest"
)

// TestTokenFile: each request has the token that the file had within the last second, and
// the last one that could be read when it has none.
func TestTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var got string
		c, err := producer.NewClient("http://127.0.0.1:1", producer.WithTokenFile(file), producer.WithTransport(roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("Authorization")
			return nil, http.ErrServerClosed
		})))
		if err != nil {
			t.Fatal(err)
		}
		ask := func(want string) {
			t.Helper()
			got = "nothing was sent"
			_, err := c.Limits(t.Context())
			if got != want {
				t.Errorf("sent %q, want %q (%v)", got, want, err)
			}
		}
		ask("nothing was sent") // there is no file
		write("\n")
		ask("nothing was sent")
		write("first\n")
		ask("Bearer first")
		write("second")
		ask("Bearer first")
		time.Sleep(time.Second)
		ask("Bearer second")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		ask("Bearer second")
		write("third")
		time.Sleep(time.Second)
		ask("Bearer third")
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestCAFile: the authorities in the file are trusted, and no others.
func TestCAFile(t *testing.T) {
	dir := t.TempDir()
	right, wrong, empty := filepath.Join(dir, "right"), filepath.Join(dir, "wrong"), filepath.Join(dir, "empty")
	ca := certtest.NewCA(t, "right")
	certtest.Replace(t, right, ca.PEM())
	certtest.Replace(t, wrong, certtest.NewCA(t, "wrong").PEM())
	certtest.Replace(t, empty, nil)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"version":"v","revision":"r","go":"g","api":"1"}`))
	}))
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{ca.Server().TLS(t)}}
	srv.StartTLS()
	defer srv.Close()
	for file, want := range map[string]string{right: "", wrong: "certificate"} {
		c, err := producer.NewClient(srv.URL, producer.WithCAFile(file))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Version(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
		c.CloseIdleConnections()
	}
	for _, bad := range []string{empty, filepath.Join(dir, "missing")} {
		if _, err := producer.NewClient(srv.URL, producer.WithCAFile(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if _, err := producer.NewClient(srv.URL, producer.WithCAFile(right), producer.WithHTTPClient(srv.Client())); err == nil {
		t.Error("a CA file beside a client of one's own is taken")
	}
}
