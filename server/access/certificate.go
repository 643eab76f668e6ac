package access

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/http"

	"github.com/oncelog/oncelog/store"
)

// CertificateName is what a client certificate is known by: its first URI, else its first
// DNS name, else its first email address among the subject alternative names, else its
// whole subject as in RFC 2253, such as "CN=orders,O=Example".
func CertificateName(cert *x509.Certificate) string {
	switch {
	case len(cert.URIs) > 0:
		return cert.URIs[0].String()
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	case len(cert.EmailAddresses) > 0:
		return cert.EmailAddresses[0]
	}
	return cert.Subject.String()
}

// principalOf is the principal of a certificate that nobody has named.
func principalOf(certificate string) string {
	name := certificatePrincipal + certificate
	if store.CheckOwner(name) == nil {
		return name
	}
	sum := sha256.Sum256([]byte(certificate)) // too long, or not to be printed
	return certificatePrincipal + "sha256:" + hex.EncodeToString(sum[:])
}

// certificate finds the caller of a client certificate. TLS has verified it when the
// connection was made; that may be long ago.
func (c *Control) certificate(s *state, r *http.Request) (*Caller, error) {
	chain := r.TLS.PeerCertificates
	if now := c.now(); now.After(chain[0].NotAfter) || now.Before(chain[0].NotBefore) {
		return nil, unauthenticated("the client certificate has expired", true)
	}
	if err := c.options.TLS.stillTrusted(r.Context(), chain); err != nil {
		return nil, unauthenticated("the client certificate is no longer trusted", true)
	}
	name := CertificateName(chain[0])
	if caller := s.certs[name]; caller != nil {
		return c.current(caller)
	}
	return c.ungrantedCaller(name)
}

// ungrantedCaller is the caller of a certificate that has no grant of its own.
func (c *Control) ungrantedCaller(name string) (*Caller, error) {
	if c.options.CertificateScopes == 0 {
		return nil, &Error{Code: CodeForbidden, Detail: "the client certificate is valid, and there is no grant for it"}
	}
	if caller, ok := c.ungranted.Load(name); ok {
		return caller.(*Caller), nil //nolint:errcheck // nothing else is put there
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.state.Load().certs[name] != nil {
		return nil, unauthenticated("the grants have just changed; try again", true)
	}
	principal := principalOf(name)
	caller := newCaller(&Grant{Name: principal}, c.options.CertificateScopes, nil, c.meter(principal, c.options.Quota))
	kept, _ := c.ungranted.LoadOrStore(name, caller)
	return kept.(*Caller), nil //nolint:errcheck // nothing else is put there
}

// Until gives the request a context that also ends when the caller's right does, or the
// certificate that it came with, for requests that may wait. The returned function must
// be called.
func Until(r *http.Request, caller *Caller) (*http.Request, func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(caller.ctx, func() { cancel(ErrEnded) }) //nolint:contextcheck // that of the right, on top of the request's
	done := func() { stop(); cancel(nil) }
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && caller.grant.Hash == nil {
		var end context.CancelFunc
		ctx, end = context.WithDeadlineCause(ctx, r.TLS.PeerCertificates[0].NotAfter, ErrEnded)
		return r.WithContext(ctx), func() { end(); done() }
	}
	return r.WithContext(ctx), done
}
