// Package certtest makes certificates for tests: authorities, servers and clients, as
// files and in memory.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"testing"
	"time"
)

// CA is an authority.
type CA struct {
	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate with its key, in PEM.
type Pair struct {
	Cert, Key []byte
}

// Template says what is in a certificate. Zero times: from an hour ago to in an hour.
type Template struct {
	CommonName string
	URI        string
	DNS        []string
	Email      string
	NotAfter   time.Time
	// Usage is that of a client when it is 0.
	Usage x509.ExtKeyUsage
}

// NewCA makes an authority.
func NewCA(tb testing.TB, name string) *CA {
	tb.Helper()
	key := newKey(tb)
	t := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return &CA{tb: tb, cert: cert, key: key}
}

// PEM is the authority's certificate.
func (ca *CA) PEM() []byte { return encode("CERTIFICATE", ca.cert.Raw) }

// Pool holds the authority.
func (ca *CA) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca.cert)
	return p
}

// Server issues a certificate for 127.0.0.1 and localhost.
func (ca *CA) Server() Pair {
	ca.tb.Helper()
	return ca.Issue(Template{CommonName: "server", DNS: []string{"localhost"}, Usage: x509.ExtKeyUsageServerAuth})
}

// Issue issues a certificate.
func (ca *CA) Issue(t Template) Pair {
	ca.tb.Helper()
	key := newKey(ca.tb)
	cert := &x509.Certificate{
		SerialNumber: serial(ca.tb), Subject: pkix.Name{CommonName: t.CommonName}, DNSNames: t.DNS,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: t.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{t.Usage},
	}
	if t.Usage == 0 {
		cert.ExtKeyUsage[0] = x509.ExtKeyUsageClientAuth
	}
	if t.Usage == x509.ExtKeyUsageServerAuth {
		cert.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	if cert.NotAfter.IsZero() {
		cert.NotAfter = time.Now().Add(time.Hour)
	}
	if t.URI != "" {
		u, err := url.Parse(t.URI)
		if err != nil {
			ca.tb.Fatal(err)
		}
		cert.URIs = []*url.URL{u}
	}
	if t.Email != "" {
		cert.EmailAddresses = []string{t.Email}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		ca.tb.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		ca.tb.Fatal(err)
	}
	return Pair{encode("CERTIFICATE", der), encode("EC PRIVATE KEY", keyDER)}
}

// TLS is the pair as package tls has it.
func (p Pair) TLS(tb testing.TB) tls.Certificate {
	tb.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Write puts the pair into two files, each of them in one step.
func (p Pair) Write(tb testing.TB, cert, key string) {
	tb.Helper()
	Replace(tb, cert, p.Cert)
	Replace(tb, key, p.Key)
}

// Replace puts a file in the place of another.
func Replace(tb testing.TB, path string, text []byte) {
	tb.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		tb.Fatal(err)
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func serial(tb testing.TB) *big.Int {
	tb.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
