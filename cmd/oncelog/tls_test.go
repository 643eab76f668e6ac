package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server/access/certtest"
)

// secureGateway is one with TLS, client certificates included.
type secureGateway struct {
	*gateway
	t              *testing.T
	servers, users *certtest.CA
	cert, key      string
	serversPEM     string
	usersPEM       string
}

func newSecureGateway(t *testing.T, flags ...string) *secureGateway {
	t.Helper()
	dir := t.TempDir()
	s := &secureGateway{
		t: t, servers: certtest.NewCA(t, "servers"), users: certtest.NewCA(t, "users"),
		cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"),
		serversPEM: filepath.Join(dir, "servers.pem"), usersPEM: filepath.Join(dir, "users.pem"),
	}
	s.servers.Server().Write(t, s.cert, s.key)
	certtest.Replace(t, s.serversPEM, s.servers.PEM())
	certtest.Replace(t, s.usersPEM, s.users.PEM())
	s.gateway = &gateway{
		tb: t, data: filepath.Join(t.TempDir(), "data"), listen: ownAddress(t),
		flags: append([]string{"--tls-cert", s.cert, "--tls-key", s.key, "--tls-client-ca", s.usersPEM}, flags...),
	}
	t.Cleanup(s.finish)
	root := s.token("--scope", "admin", "--name", "root")
	s.options = []producer.ClientOption{producer.WithToken(root), producer.WithCAFile(s.serversPEM)}
	s.env = []string{tokenVariable + "=" + root, "ONCELOG_CA_FILE=" + s.serversPEM}
	s.start()
	return s
}

// TestClientsOverTLS: the client commands and the producer with a token and a CA file, and
// with a client certificate; without the CA file nothing is trusted.
func TestClientsOverTLS(t *testing.T) {
	s := newSecureGateway(t)
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("the URL is %s", s.url)
	}
	s.oncelog("topic", "create", "t")
	p := s.run("produce", "--topic", "t")
	fmt.Fprintln(p.in, "by token")
	p.wait(exitOK)

	dir := t.TempDir()
	cert, key := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	s.users.Issue(certtest.Template{URI: "spiffe://example/orders"}).Write(t, cert, key)
	token, caOnly := s.env, s.env[1:]
	s.env = caOnly
	byCert := []string{"--client-cert", cert, "--client-key", key}
	if stderr := s.run(append([]string{"produce", "--topic", "t"}, byCert...)...).wait(exitFailure); !strings.Contains(stderr, "there is no grant for it") {
		t.Errorf("a certificate without a grant: %s", stderr)
	}
	s.admin("token", "create", "--certificate", "spiffe://example/orders", "--scope", "produce,consume", "--topic-prefix", "t")
	eventually(t, func() error {
		cmd := exec.Command("oncelog", append([]string{"consume", "--topic", "t", "--exit", "--url", s.url, "--ca-file", s.serversPEM}, byCert...)...)
		out, err := cmd.Output()
		if err == nil && string(out) != "by token\n" {
			err = fmt.Errorf("read %q", out)
		}
		return err
	})
	p = s.run(append([]string{"produce", "--topic", "t"}, byCert...)...)
	fmt.Fprintln(p.in, "by certificate")
	p.wait(exitOK)
	s.env = token[:1] // the token, and no authority
	if stderr := s.run("consume", "--topic", "t", "--exit", "--retry-timeout", "1s").wait(exitFailure); !strings.Contains(stderr, "certificate") {
		t.Errorf("a server that nobody vouches for: %s", stderr)
	}
	s.env = token
	if got := s.oncelog("consume", "--topic", "t", "--exit"); got != "by token\nby certificate\n" {
		t.Errorf("read %q", got)
	}
}

// TestCertificateReloadUnderLoad: while clients append over old connections and new ones,
// HTTP/1.1 and HTTP/2, the certificate is replaced again and again, sometimes by files
// that are none. Not one request fails.
func TestCertificateReloadUnderLoad(t *testing.T) {
	s := newSecureGateway(t)
	s.createTopic("t", 1, openapi.TopicConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var requests atomic.Int64
	load := func(name string, change func(*http.Transport)) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.servers.Pool()}, ForceAttemptHTTP2: true}
		change(transport)
		c, err := producer.NewClient(s.url, producer.WithTransport(transport), s.options[0])
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer transport.CloseIdleConnections()
			for ctx.Err() == nil {
				_, err := c.Append(context.WithoutCancel(ctx), "t", 0, openapi.AppendRequest{Records: []openapi.AppendRecord{{ValueText: new(name)}}})
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				requests.Add(1)
			}
		})
	}
	for range 2 {
		load("kept, HTTP/2", func(*http.Transport) {})
		load("kept, HTTP/1.1", func(t *http.Transport) {
			t.ForceAttemptHTTP2, t.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
		})
		load("new each time", func(t *http.Transport) { t.DisableKeepAlives = true })
	}
	for round := range 3 {
		broken := "TLS: the certificates stay as they were"
		certtest.Replace(t, s.cert, []byte("nothing"))
		eventually(t, func() error {
			if n := strings.Count(s.logs.tail(1<<20), broken); n < round+1 {
				return fmt.Errorf("%d complaints in round %d", n, round)
			}
			return nil
		})
		pair := s.servers.Server()
		pair.Write(t, s.cert, s.key)
		want := pair.TLS(t).Leaf
		eventually(t, func() error { return s.serves(want) })
	}
	eventually(t, func() error {
		if n := requests.Load(); n < 100 && !t.Failed() {
			return fmt.Errorf("only %d requests were made", n)
		}
		return nil
	})
	cancel()
	wg.Wait()
	t.Logf("%d requests through 3 new and 3 broken certificates", requests.Load())
}

// serves fails unless a new connection shows the certificate.
func (s *secureGateway) serves(want *x509.Certificate) error {
	d := tls.Dialer{Config: &tls.Config{RootCAs: s.servers.Pool(), NextProtos: []string{"h2"}}}
	conn, err := d.DialContext(s.t.Context(), "tcp", s.listen)
	if err != nil {
		return err
	}
	defer conn.Close()
	state := conn.(*tls.Conn).ConnectionState()
	if state.NegotiatedProtocol != "h2" {
		return fmt.Errorf("the protocol is %q", state.NegotiatedProtocol)
	}
	if !state.PeerCertificates[0].Equal(want) {
		return errors.New("it is still another certificate")
	}
	return nil
}

// TestAuthorityDroppedWhileClientsAreThere: a client whose authority is removed gets no
// further on the connection that it has.
func TestAuthorityDroppedWhileClientsAreThere(t *testing.T) {
	s := newSecureGateway(t, "--tls-client-scope", "consume")
	s.createTopic("t", 1, openapi.TopicConfig{})
	pair := s.users.Issue(certtest.Template{CommonName: "reader"})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.servers.Pool(), Certificates: []tls.Certificate{pair.TLS(t)}}}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: time.Minute}
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := c.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if status, text := get("/topics/t"); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	polled := make(chan int)
	go func() {
		status, _ := get("/topics/t/partitions/0/records?waitMs=60000")
		polled <- status
	}()
	s.waitForReads(1)
	certtest.Replace(t, s.usersPEM, certtest.NewCA(t, "others").PEM())
	if status := <-polled; status != 401 {
		t.Errorf("the long poll is answered with %d", status)
	}
	if status, text := get("/topics/t"); status != 401 || !strings.Contains(text, "no longer trusted") {
		t.Errorf("%d %s", status, text)
	}
	if _, err := s.client.Topic(t.Context(), "t"); err != nil {
		t.Errorf("tokens are as good as before: %v", err)
	}
}

// waitForReads waits until n requests are in flight, that for the metrics left out.
func (s *secureGateway) waitForReads(n int) {
	s.t.Helper()
	want := fmt.Sprintf("\noncelog_http_requests_in_flight %d\n", n+1)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.servers.Pool()}}
	defer transport.CloseIdleConnections()
	eventually(s.t, func() error {
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/metrics", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimPrefix(s.env[0], tokenVariable+"="))
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if !strings.Contains(string(text), want) {
			return fmt.Errorf("there are never %d requests in flight", n)
		}
		return nil
	})
}
