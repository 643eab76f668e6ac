package producer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// ClientOption configures a [Client], or the client inside a [Producer].
type ClientOption interface {
	Option
	applyClient(c *clientConfig)
}

// Protocol says which versions of HTTP a client speaks.
type Protocol int

// The protocols.
const (
	// ProtocolAuto: HTTP/2 over TLS where the server offers it, else HTTP/1.1.
	ProtocolAuto Protocol = iota
	// ProtocolHTTP1: HTTP/1.1 only.
	ProtocolHTTP1
	// ProtocolHTTP2: HTTP/2 only, without TLS by prior knowledge (h2c).
	ProtocolHTTP2
)

type clientConfig struct {
	httpClient *http.Client
	transport  http.RoundTripper
	protocol   Protocol
	tls        *tls.Config
	caFile     string
	header     http.Header
	timeout    time.Duration
	token      func(context.Context) (string, error)
}

func defaultClientConfig() clientConfig {
	return clientConfig{
		timeout: 30 * time.Second,
		header:  http.Header{"User-Agent": {"oncelog-go"}},
	}
}

func (c *clientConfig) check() error {
	switch {
	case c.httpClient != nil && c.transport != nil:
		return errors.New("producer: give WithHTTPClient or WithTransport, not both")
	case (c.httpClient != nil || c.transport != nil) && (c.protocol != ProtocolAuto || c.tls != nil || c.caFile != ""):
		return errors.New("producer: WithProtocol, WithTLSConfig and WithCAFile belong to the client's own transport; set them on the one given by WithHTTPClient or WithTransport")
	case c.timeout < 0:
		return errors.New("producer: a request timeout must not be negative; 0 switches it off")
	case c.protocol < ProtocolAuto || c.protocol > ProtocolHTTP2:
		return errors.New("producer: unknown protocol; use ProtocolAuto, ProtocolHTTP1 or ProtocolHTTP2")
	}
	return c.loadCA()
}

// roundTripper is the transport that was given, or one with limits fit for a
// producer: many requests at a time to one host, none of them waiting for a lost
// peer for ever.
func (c *clientConfig) roundTripper() http.RoundTripper {
	if c.transport != nil {
		return c.transport
	}
	var p http.Protocols
	switch c.protocol {
	case ProtocolHTTP1:
		p.SetHTTP1(true)
	case ProtocolHTTP2:
		p.SetHTTP2(true)
		p.SetUnencryptedHTTP2(true)
	default:
		p.SetHTTP1(true)
		p.SetHTTP2(true)
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       c.tls,
		TLSHandshakeTimeout:   5 * time.Second,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256, // the default of 2 would close and dial all the time
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		WriteBufferSize:       64 << 10,
		Protocols:             &p,
		// A dead HTTP/2 connection looks idle: ping it, or every request waits for
		// its own timeout.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
	}
}

type clientOption func(*clientConfig)

func (o clientOption) applyClient(c *clientConfig) { o(c) }
func (o clientOption) apply(c *config)             { o(&c.client) }

// WithHTTPClient sends requests by h as it is, redirects included.
func WithHTTPClient(h *http.Client) ClientOption {
	return clientOption(func(c *clientConfig) { c.httpClient = h })
}

// WithTransport sends requests by t instead of a transport of the client's own.
func WithTransport(t http.RoundTripper) ClientOption {
	return clientOption(func(c *clientConfig) { c.transport = t })
}

// WithProtocol picks the versions of HTTP. Default: ProtocolAuto.
func WithProtocol(p Protocol) ClientOption {
	return clientOption(func(c *clientConfig) { c.protocol = p })
}

// WithTLSConfig sets certificates and the like for https URLs.
func WithTLSConfig(t *tls.Config) ClientOption {
	return clientOption(func(c *clientConfig) { c.tls = t })
}

// WithRequestTimeout bounds each request, from connecting to the last byte of the
// answer; 0 means no bound. A long poll has its waiting time on top. Default: 30 s.
func WithRequestTimeout(d time.Duration) ClientOption {
	return clientOption(func(c *clientConfig) { c.timeout = d })
}

// WithHeader adds a header field to every request.
func WithHeader(name, value string) ClientOption {
	return clientOption(func(c *clientConfig) { c.header = c.header.Clone(); c.header.Set(name, value) })
}

// WithToken sends a bearer token with every request.
func WithToken(token string) ClientOption {
	return WithTokenFunc(func(context.Context) (string, error) { return token, nil })
}

// WithTokenFunc sends the bearer token that f returns at the time of the request.
func WithTokenFunc(f func(context.Context) (string, error)) ClientOption {
	return clientOption(func(c *clientConfig) { c.token = f })
}
