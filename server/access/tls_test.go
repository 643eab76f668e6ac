package access_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/server/access/certtest"
)

// secured is a TLS server that answers with the name of the caller, or why it refuses.
type secured struct {
	*env
	tls            *access.TLS
	cert, key, ca  string
	servers, users *certtest.CA
	url            string
}

func newSecured(t *testing.T, o access.TLSOptions, change ...func(*access.Options)) *secured {
	t.Helper()
	dir := t.TempDir()
	s := &secured{
		env: newFile(t), servers: certtest.NewCA(t, "servers"), users: certtest.NewCA(t, "users"),
		cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), ca: filepath.Join(dir, "ca.pem"),
	}
	s.servers.Server().Write(t, s.cert, s.key)
	certtest.Replace(t, s.ca, s.users.PEM())
	o.Cert, o.Key, o.ClientCA = s.cert, s.key, s.ca
	var err error
	if s.tls, err = access.NewTLS(o); err != nil {
		t.Fatal(err)
	}
	s.start(append(change, func(o *access.Options) { o.TLS = s.tls })...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.HandlerFunc(s.answer), TLSConfig: s.tls.Config(), ConnContext: s.tls.ConnContext, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go web.ServeTLS(l, "", "") //nolint:errcheck // it ends by Close
	t.Cleanup(func() { web.Close() })
	s.url = "https://" + l.Addr().String()
	return s
}

func (s *secured) answer(w http.ResponseWriter, r *http.Request) {
	c, err := s.Authenticate(r, false)
	if err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, err.Error()) //nolint:errcheck // the client has gone
		return
	}
	io.WriteString(w, r.Proto+" "+c.Name) //nolint:errcheck // the client has gone
}

// client has a transport of its own, with the certificate if there is one.
func (s *secured) client(pair *certtest.Pair, change ...func(*tls.Config)) *http.Client {
	config := &tls.Config{RootCAs: s.servers.Pool()}
	if pair != nil {
		config.Certificates = []tls.Certificate{pair.TLS(s.t)}
	}
	for _, f := range change {
		f(config)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func (s *secured) get(c *http.Client) string {
	s.t.Helper()
	resp, err := c.Get(s.url)
	if err != nil {
		return "no connection: " + err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

func (s *secured) wants(c *http.Client, part string) {
	s.t.Helper()
	if got := s.get(c); !strings.Contains(got, part) {
		s.t.Errorf("answered %q, want %q in it", got, part)
	}
}

// TestCertificatePrincipals: which name of a certificate counts, HTTP/2 over TLS, and that
// without a grant or a default it is 403 and not 401: the certificate is good.
func TestCertificatePrincipals(t *testing.T) {
	s := newSecured(t, access.TLSOptions{}, func(o *access.Options) { o.CertificateScopes = access.Consume })
	for want, cert := range map[string]certtest.Template{
		"HTTP/2.0 cert:spiffe://x/orders": {CommonName: "cn", URI: "spiffe://x/orders", DNS: []string{"dns.example"}, Email: "a@b.example"},
		"HTTP/2.0 cert:dns.example":       {CommonName: "cn", DNS: []string{"dns.example", "other.example"}, Email: "a@b.example"},
		"HTTP/2.0 cert:a@b.example":       {CommonName: "cn", Email: "a@b.example"},
		"HTTP/2.0 cert:CN=orders":         {CommonName: "orders"},
		"HTTP/2.0 cert:sha256:":           {CommonName: strings.Repeat("x", 300)},
	} {
		pair := s.users.Issue(cert)
		s.wants(s.client(&pair), want)
	}
	s.wants(s.client(nil), "unauthenticated")

	strict := newSecured(t, access.TLSOptions{})
	pair := strict.users.Issue(certtest.Template{CommonName: "orders"})
	strict.wants(strict.client(&pair), "forbidden: the client certificate is valid, and there is no grant for it")
}

// TestCertificateGrants: a certificate gets what its grant says, under the name that the
// grant gives, until it is revoked; a token beside it counts more.
func TestCertificateGrants(t *testing.T) {
	s := newSecured(t, access.TLSOptions{})
	pair := s.users.Issue(certtest.Template{DNS: []string{"orders.example"}})
	client := s.client(&pair)
	s.wants(client, "forbidden")
	g := produce("orders")
	g.Certificate = "orders.example"
	if _, err := s.file.AllowCertificate(g, s.now()); err != nil {
		t.Fatal(err)
	}
	s.reload()
	s.wants(client, "HTTP/2.0 orders")
	if _, err := s.file.AllowCertificate(g, s.now()); err == nil {
		t.Error("a certificate has two grants")
	}

	token := s.token(produce("alice"))
	r, err := http.NewRequest(http.MethodGet, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for authorization, want := range map[string]string{"Bearer " + token: "HTTP/2.0 alice", "Bearer x": "unauthenticated"} {
		r.Header.Set("Authorization", authorization)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(text), want) {
			t.Errorf("%q beside a certificate: %s", authorization, text)
		}
	}
	s.revoke("orders")
	s.wants(client, "forbidden")
}

// TestForeignCertificates: those of another authority, for another purpose, and expired
// ones do not get a connection; without one there is a connection and no right.
func TestForeignCertificates(t *testing.T) {
	s := newSecured(t, access.TLSOptions{}, func(o *access.Options) { o.CertificateScopes = access.Admin })
	foreign := certtest.NewCA(t, "foreign").Issue(certtest.Template{CommonName: "x"})
	expired := s.users.Issue(certtest.Template{CommonName: "x", NotAfter: time.Now().Add(-time.Minute)})
	serving := s.users.Issue(certtest.Template{CommonName: "x", Usage: x509.ExtKeyUsageServerAuth})
	for name, pair := range map[string]certtest.Pair{"foreign": foreign, "expired": expired, "serving": serving} {
		if got := s.get(s.client(&pair, func(c *tls.Config) {
			own := c.Certificates[0]
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil } // whoever is asked for
		})); !strings.Contains(got, "no connection") {
			t.Errorf("%s certificate: %s", name, got)
		}
	}
	required := newSecured(t, access.TLSOptions{RequireClient: true})
	required.wants(required.client(nil), "no connection")
}

// TestCertificateExpiresOnALongConnection: it was good when the connection was made.
func TestCertificateExpiresOnALongConnection(t *testing.T) {
	s := newSecured(t, access.TLSOptions{}, func(o *access.Options) { o.CertificateScopes = access.Consume })
	pair := s.users.Issue(certtest.Template{CommonName: "x"})
	client := s.client(&pair)
	s.wants(client, "cert:CN=x")
	s.pass(2 * time.Hour)
	s.wants(client, "unauthenticated: the client certificate has expired")
}

// TestAuthorityDropped: certificates of an authority that is no longer in the file are not
// taken any more, neither on connections that are there nor on resumed sessions, and their
// streams end; those of one that stays go on.
func TestAuthorityDropped(t *testing.T) {
	s := newSecured(t, access.TLSOptions{}, func(o *access.Options) { o.CertificateScopes = access.Consume })
	second := certtest.NewCA(t, "second")
	certtest.Replace(t, s.ca, append(s.users.PEM(), second.PEM()...))
	if distrust, err := s.tls.Reload(); err != nil || !distrust {
		t.Fatalf("a change of authorities: %t, %v", distrust, err)
	}
	a, b := s.users.Issue(certtest.Template{CommonName: "a"}), second.Issue(certtest.Template{CommonName: "b"})
	sessions := tls.NewLRUClientSessionCache(10)
	resuming := func(c *tls.Config) { c.ClientSessionCache = sessions }
	ca, cb := s.client(&a, resuming), s.client(&b)
	s.wants(ca, "cert:CN=a")
	s.wants(cb, "cert:CN=b")
	caller, err := s.Authenticate(s.requestWith(t, a), false)
	if err != nil {
		t.Fatal(err)
	}
	certtest.Replace(t, s.ca, second.PEM())
	if distrust, err := s.tls.Reload(); err != nil || !distrust {
		t.Fatalf("a change of authorities: %t, %v", distrust, err)
	}
	s.Distrust()
	if live(caller) {
		t.Error("its streams go on")
	}
	s.wants(ca, "no longer trusted")
	s.wants(cb, "cert:CN=b")
	s.wants(s.client(&a, resuming), "unauthenticated") // it is not even asked for that one
}

// requestWith is a request over a connection with a certificate that was verified.
func (s *secured) requestWith(t *testing.T, pair certtest.Pair) *http.Request {
	t.Helper()
	leaf, err := x509.ParseCertificate(pair.TLS(t).Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	r := request()
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	return r
}

// TestReload: new connections get the new certificate, those that are there go on, and a
// broken file changes nothing.
func TestReload(t *testing.T) {
	s := newSecured(t, access.TLSOptions{}, func(o *access.Options) { o.CertificateScopes = access.Consume })
	pair := s.users.Issue(certtest.Template{CommonName: "a"})
	old := s.client(&pair)
	s.wants(old, "cert:CN=a")
	before := s.tls.Certificate()

	if distrust, err := s.tls.Reload(); err != nil || distrust || s.tls.Certificate() != before {
		t.Fatalf("nothing has changed: %t, %v", distrust, err)
	}
	for name, text := range map[string][]byte{"text": []byte("no certificate"), "empty": nil, "other key": s.servers.Server().Cert} {
		certtest.Replace(t, s.cert, text)
		if _, err := s.tls.Reload(); err == nil || !strings.Contains(err.Error(), "stay as they were") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.tls.Reload(); err != nil {
			t.Errorf("%s is complained about twice: %v", name, err)
		}
		s.wants(s.client(&pair), "cert:CN=a")
	}
	if err := os.Remove(s.key); err != nil {
		t.Fatal(err)
	}
	if _, err := s.tls.Reload(); err == nil {
		t.Error("a key that is gone is not complained about")
	}
	s.wants(s.client(&pair), "cert:CN=a")

	next := certtest.NewCA(t, "next")
	next.Server().Write(t, s.cert, s.key)
	if distrust, err := s.tls.Reload(); err != nil || distrust {
		t.Fatalf("a new certificate: %t, %v", distrust, err)
	}
	if s.tls.Certificate().Equal(before) {
		t.Fatal("it is still the old one")
	}
	s.wants(old, "cert:CN=a")
	s.wants(s.client(&pair), "no connection") // it knows the old authority
	s.wants(s.client(&pair, func(c *tls.Config) { c.RootCAs = next.Pool() }), "cert:CN=a")
}

func TestTLSVersions(t *testing.T) {
	old := func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }
	s := newSecured(t, access.TLSOptions{})
	s.wants(s.client(nil, old), "no connection")
	s.wants(s.client(nil), "unauthenticated")
	s = newSecured(t, access.TLSOptions{MinVersion: tls.VersionTLS12})
	s.wants(s.client(nil, old), "unauthenticated")
}

func TestTLSFilesMustBeThere(t *testing.T) {
	s := newSecured(t, access.TLSOptions{})
	for _, o := range []access.TLSOptions{
		{Cert: s.cert, Key: s.cert}, {Cert: s.cert, Key: "nowhere"}, {Cert: s.cert, Key: s.key, ClientCA: s.key},
	} {
		if _, err := access.NewTLS(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
