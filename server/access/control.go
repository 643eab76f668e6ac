package access

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a [Control]. The zero value is an anonymous server without quotas.
type Options struct {
	// File is the path of the file of grants; "": there is none. It need not exist.
	File string
	// TLS is that of the server, which has verified the client certificates if it asks
	// for them; nil: there is none.
	TLS *TLS
	// CertificateScopes are what certificates without a grant may do, for all topics. 0:
	// nothing.
	CertificateScopes Scope
	// Quota is that of principals whose grants name none.
	Quota Quota
	// Hosts are the only names that the server may be asked for by; empty: any.
	Hosts []string
	// Loopback says that the server can be reached from its own machine only. While it
	// is anonymous, it is asked for by names of that machine or one of Hosts.
	Loopback bool
	// Logger gets what an operator should know; nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Control lets requests in. It is safe for concurrent use. Make one with [New].
type Control struct {
	options Options
	log     *slog.Logger
	now     func() time.Time
	state   atomic.Pointer[state]
	tickets tickets
	hosts   hosts

	// ungranted are the callers of certificates that have no grant, by name.
	ungranted sync.Map

	// mu guards what follows: reloads take turns.
	mu     sync.Mutex
	meters map[string]*Meter
	seen   stamp
	// started: what comes from now on is a change.
	started, closed bool
}

// New reads the file of grants, if there is one. It fails when the file is there and
// cannot be read: a server that cannot tell who may do what must not start.
func New(o Options) (*Control, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := o.Quota.check(); err != nil {
		return nil, err
	}
	c := &Control{options: o, log: o.Logger, now: o.Now, meters: map[string]*Meter{}}
	c.tickets.held = map[Hash]ticket{}
	c.hosts.init(o.Hosts, o.Loopback)
	if o.TLS.asksClients() {
		c.state.Store(&state{})
	} else {
		everybody := newCaller(&Grant{}, Admin, nil, c.meter("", o.Quota))
		c.state.Store(&state{anonymous: everybody})
	}
	if err := c.Reload(); err != nil {
		return nil, err
	}
	if err := c.lostFile(); err != nil {
		return nil, err
	}
	c.started = true
	return c, nil
}

// lostFile refuses to start when there have been grants and the file is gone: a server
// that was closed must not open because of a file that somebody forgot to restore.
func (c *Control) lostFile() error {
	file := c.options.File
	if file == "" || c.seen != (stamp{}) {
		return nil
	}
	if _, err := os.Stat(file + lockSuffix); err != nil {
		return nil //nolint:nilerr // there is no such file, and never was
	}
	return fmt.Errorf("%s is gone, and there have been tokens: restore it, or remove %s as well to serve without access control",
		file, file+lockSuffix)
}

// Anonymous reports whether nobody is asked for credentials.
func (c *Control) Anonymous() bool { return c.state.Load().anonymous != nil }

// Grants is the number of grants in force.
func (c *Control) Grants() int {
	s := c.state.Load()
	return len(s.tokens) + len(s.certs)
}

// Certificate is the server's own, nil without TLS.
func (c *Control) Certificate() *x509.Certificate {
	if c.options.TLS == nil {
		return nil
	}
	return c.options.TLS.Certificate()
}

// Reload reads the file of grants if it has changed. When it cannot be read, or is gone,
// those who were let in before are let in still. A file that is broken is complained
// about once.
func (c *Control) Reload() error {
	if c.options.File == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := stampOf(c.options.File)
	if now == c.seen && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		return nil
	}
	c.seen = now
	var grants []Grant
	if err == nil {
		grants, err = File{Path: c.options.File}.Grants()
	}
	if err != nil {
		return fmt.Errorf("the grants stay as they were: %w", err)
	}
	c.apply(grants)
	return nil
}

// Close ends all callers.
func (c *Control) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.replace(&state{})
	c.endUngranted(func(string) bool { return true })
}

// Authenticate says who sends the request. withTicket lets a ticket in the query stand in
// for a header; it is taken out of the query.
func (c *Control) Authenticate(r *http.Request, withTicket bool) (*Caller, error) {
	if withTicket && strings.Contains(r.URL.RawQuery, ticketParam) {
		if ticket, ok := takeTicket(r); ok {
			return c.redeem(ticket, r.URL.EscapedPath())
		}
	}
	s := c.state.Load()
	if s.anonymous != nil {
		return s.anonymous, nil
	}
	if fields := r.Header["Authorization"]; len(fields) > 0 {
		return c.bearer(s, fields)
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && c.options.TLS.asksClients() {
		return c.certificate(s, r)
	}
	return nil, unauthenticated("a bearer token is needed: Authorization: Bearer oncelog_…", false)
}

// bearer finds the caller of a token (RFC 6750 section 2.1).
func (c *Control) bearer(s *state, fields []string) (*Caller, error) {
	scheme, token, _ := strings.Cut(fields[0], " ")
	if len(fields) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return nil, unauthenticated("credentials are taken as Authorization: Bearer and a token, once", false)
	}
	token = strings.TrimSpace(token)
	id, err := tokenID(token)
	if err != nil {
		return nil, unauthenticated("this is "+err.Error(), true)
	}
	caller := s.tokens[id]
	if caller == nil || !caller.grant.Hash.matches(token) {
		return nil, unauthenticated("the token is unknown, expired or revoked", true)
	}
	return c.current(caller)
}

// current refuses a caller whose grant has ended, by the clock or by what was read since.
func (c *Control) current(caller *Caller) (*Caller, error) {
	if caller.grant.expired(c.now()) {
		return nil, unauthenticated("the grant has expired", true)
	}
	if err := caller.Ended(); err != nil {
		return nil, err
	}
	return caller, nil
}
