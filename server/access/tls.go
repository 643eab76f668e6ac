package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
)

// TLSOptions name the files of a [TLS].
type TLSOptions struct {
	// Cert and Key are PEM files of the server's certificate, with the intermediate ones
	// behind it, and of its key.
	Cert, Key string
	// ClientCA is a PEM file of the authorities whose client certificates are taken; "":
	// none are asked for.
	ClientCA string
	// RequireClient refuses connections without a client certificate.
	RequireClient bool
	// MinVersion is the oldest version of TLS that is spoken. 0: TLS 1.3.
	MinVersion uint16
}

// TLS is a server's TLS configuration, which follows its files. It is safe for concurrent
// use.
type TLS struct {
	options TLSOptions
	current atomic.Pointer[generation]

	mu   sync.Mutex
	seen [3]stamp
}

// generation is what the files said at a time. Sessions are resumed within one only: its
// configuration has ticket keys of its own, so that nobody comes back by a session whose
// authority has been dropped.
type generation struct {
	config  *tls.Config
	clients *x509.CertPool
	caText  string
	trust   uint64 // counts the versions of clients
}

// NewTLS loads the files.
func NewTLS(o TLSOptions) (*TLS, error) {
	if o.MinVersion == 0 {
		o.MinVersion = tls.VersionTLS13
	}
	t := &TLS{options: o}
	if _, err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// Config is for a listener. Each connection gets the newest version of the files.
func (t *TLS) Config() *tls.Config {
	return &tls.Config{
		MinVersion: t.options.MinVersion,
		NextProtos: protocols(),
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return t.current.Load().config, nil
		},
	}
}

func protocols() []string { return []string{"h2", "http/1.1"} }

// Reload loads the files again if one of them has changed, and reports whether the
// authorities are others now. When one cannot be used, all stay as they were; the next
// call tries again only if they have changed once more.
func (t *TLS) Reload() (distrust bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var now [3]stamp
	var errs []error
	for i, path := range []string{t.options.Cert, t.options.Key, t.options.ClientCA} {
		if path == "" {
			continue
		}
		if now[i], err = stampOf(path); err != nil {
			errs = append(errs, err)
		}
	}
	if now == t.seen && len(errs) == 0 {
		return false, nil
	}
	t.seen = now
	if err := errors.Join(errs...); err != nil {
		return false, fmt.Errorf("TLS: the certificates stay as they were: %w", err)
	}
	old := t.current.Load()
	next, err := t.load(old)
	if err != nil {
		return false, fmt.Errorf("TLS: the certificates stay as they were: %w", err)
	}
	t.current.Store(next)
	return old != nil && old.trust != next.trust, nil
}

func (t *TLS) load(old *generation) (*generation, error) {
	cert, err := tls.LoadX509KeyPair(t.options.Cert, t.options.Key)
	if err != nil {
		return nil, err
	}
	next := &generation{config: &tls.Config{
		MinVersion:   t.options.MinVersion,
		NextProtos:   protocols(),
		Certificates: []tls.Certificate{cert},
	}}
	if t.options.ClientCA == "" {
		return next, nil
	}
	text, err := os.ReadFile(t.options.ClientCA)
	if err != nil {
		return nil, err
	}
	next.caText, next.clients = string(text), x509.NewCertPool()
	if !next.clients.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", t.options.ClientCA)
	}
	if old != nil {
		next.trust = old.trust
		if old.caText != next.caText {
			next.trust++
		}
	}
	next.config.ClientCAs = next.clients
	next.config.ClientAuth = tls.VerifyClientCertIfGiven
	if t.options.RequireClient {
		next.config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return next, nil
}

// asksClients reports whether client certificates count.
func (t *TLS) asksClients() bool { return t != nil && t.options.ClientCA != "" }

// Certificate is the server's own, as it is now.
func (t *TLS) Certificate() *x509.Certificate {
	return t.current.Load().config.Certificates[0].Leaf
}

// Connection remembers of a connection which authorities its certificate was verified by.
type connection struct {
	trust atomic.Uint64 // that of the generation, plus one; 0: not verified yet
}

type connectionKey struct{}

// ConnContext is for [http.Server]: it gives each connection a place to remember that its
// certificate was verified.
func (t *TLS) ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{})
}

// stillTrusted verifies a client's certificate against the authorities as they are now,
// unless this connection's has been.
func (t *TLS) stillTrusted(ctx context.Context, chain []*x509.Certificate) error {
	now := t.current.Load()
	seen, _ := ctx.Value(connectionKey{}).(*connection)
	if seen != nil && seen.trust.Load() == now.trust+1 {
		return nil
	}
	options := x509.VerifyOptions{
		Roots: now.clients, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return err
	}
	if seen != nil {
		seen.trust.Store(now.trust + 1)
	}
	return nil
}
