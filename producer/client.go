package producer

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
)

// Client does one operation of the HTTP interface per method call. It may be used
// from many goroutines.
type Client struct {
	base    string // scheme, host and path, without a slash at the end
	http    *http.Client
	own     bool // http was made here: its idle connections may be closed
	header  http.Header
	timeout time.Duration
	token   func(context.Context) (string, error)

	idPrefix string
	idCount  atomic.Uint64
}

// NewClient makes a client for the server at rawURL, such as
// "http://127.0.0.1:8080" or "https://example.com/log". No request is sent.
func NewClient(rawURL string, opts ...ClientOption) (*Client, error) {
	cfg := defaultClientConfig()
	for _, o := range opts {
		o.applyClient(&cfg)
	}
	return newClient(rawURL, cfg)
}

func newClient(rawURL string, cfg clientConfig) (*Client, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("producer: the server's URL: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("producer: the server's URL %q must begin with http:// or https://", u.Redacted())
	case u.Host == "":
		return nil, fmt.Errorf("producer: the server's URL %q names no host", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("producer: the server's URL %q must not have a query or a fragment", u.Redacted())
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Client{
		base:    strings.TrimRight(u.String(), "/"),
		http:    cfg.httpClient,
		header:  cfg.header,
		timeout: cfg.timeout,
		token:   cfg.token,
	}
	if c.http == nil {
		c.own = cfg.transport == nil
		c.http = &http.Client{Transport: cfg.roundTripper(), CheckRedirect: noRedirect}
	}
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	c.idPrefix = hex.EncodeToString(id[:]) + "-"
	return c, nil
}

// noRedirect hands a redirect to the caller: an append that is sent elsewhere by a
// proxy is a mistake in the URL, and its outcome would be anyone's guess.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// CloseIdleConnections closes the connections that are not in use, unless the
// transport was given by an option.
func (c *Client) CloseIdleConnections() {
	if c.own {
		c.http.CloseIdleConnections()
	}
}

// call is one request.
type call struct {
	method string
	path   string // from root on, escaped
	query  url.Values
	header http.Header
	body   []byte
	media  string        // of the body
	extra  time.Duration // on top of the timeout, for long polls
	fits   func() error  // nil, or says what is wrong with the decoded answer
}

// path joins segments to an escaped path.
func path(segments ...string) string {
	var s strings.Builder
	for _, p := range segments {
		s.WriteString("/" + url.PathEscape(p))
	}
	return s.String()
}

func partitionPath(topic string, partition int, more ...string) string {
	return path("topics", topic, "partitions", strconv.Itoa(partition)) + path(more...)
}

// answer is what came back with a 2xx.
type answer struct {
	status int
	header http.Header
}

// do sends r and decodes a 2xx answer into out, unless out is nil. Every failure is
// an [*Error].
func (c *Client) do(ctx context.Context, r call, out any) (answer, error) {
	id := c.idPrefix + strconv.FormatUint(c.idCount.Add(1), 10)
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout+r.extra, CodeRequestTimeout)
		defer cancel()
	}
	req, err := c.request(ctx, r, id)
	if err != nil {
		return answer{}, unsent(r, id, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, lost(ctx, r, id, err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("X-Request-Id"); got != "" {
		id = got
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return answer{}, problem(ctx, r, id, resp)
	}
	err = c.decode(resp, out)
	if err == nil && r.fits != nil {
		err = r.fits()
	}
	if err != nil {
		return answer{}, garbled(ctx, r, id, resp.StatusCode, err)
	}
	return answer{status: resp.StatusCode, header: resp.Header}, nil
}

func (c *Client) request(ctx context.Context, r call, id string) (*http.Request, error) {
	u := c.base + r.path
	if len(r.query) > 0 {
		u += "?" + r.query.Encode()
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, c.header)
	req.Header.Set("Accept", "application/json, application/problem+json")
	maps.Copy(req.Header, r.header)
	if r.media != "" {
		req.Header.Set("Content-Type", r.media)
	}
	req.Header.Set("X-Request-Id", id)
	if c.token != nil {
		t, err := c.token(ctx)
		if err != nil {
			return nil, fmt.Errorf("bearer token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+t)
	}
	return req, nil
}

// decode reads the whole body, so that the connection can be used again.
func (c *Client) decode(resp *http.Response, out any) error {
	switch out := out.(type) {
	case nil:
		_, err := io.Copy(io.Discard, resp.Body)
		return err
	case *[]byte:
		var err error
		*out, err = io.ReadAll(resp.Body)
		return err
	}
	return json.UnmarshalRead(resp.Body, out)
}

// get is a GET that decodes into a T.
func get[T any](ctx context.Context, c *Client, p string, q url.Values) (T, error) {
	var out T
	_, err := c.do(ctx, call{method: http.MethodGet, path: p, query: q}, &out)
	return out, err
}

// send is a request with a JSON body (none when body is nil) that decodes into a T.
func send[T any](ctx context.Context, c *Client, method, p string, body any) (T, answer, error) {
	var out T
	r := call{method: method, path: p}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return out, answer{}, unsent(r, "", err)
		}
		r.body, r.media = b, "application/json"
	}
	a, err := c.do(ctx, r, &out)
	return out, a, err
}
