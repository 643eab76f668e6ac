package access

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// hosts says by which names the server may be asked for. A page of another site can make
// its own name point to 127.0.0.1 (DNS rebinding), and is then of the same origin as a
// server there, for the browser. What gives it away is the Host field, which has the
// name of that site. Tokens make this harmless: the page has none. An anonymous server on
// loopback has nothing but the name to go by.
type hosts struct {
	names    []string // lower case
	loopback bool
	last     atomic.Pointer[string] // that was let through, to spare the next one the look
}

func (h *hosts) init(names []string, loopback bool) {
	h.loopback = loopback
	for _, n := range names {
		h.names = append(h.names, strings.ToLower(strings.TrimSuffix(n, ".")))
	}
}

// CheckHost fails with CodeForbidden when the server is asked for by a name that is not
// its own.
func (c *Control) CheckHost(r *http.Request) error {
	h := &c.hosts
	switch {
	case len(h.names) == 0 && !(h.loopback && c.Anonymous()):
		return nil
	case r.Host == "": // HTTP/1.0: no browser
		return nil
	}
	if last := h.last.Load(); last != nil && *last == r.Host {
		return nil
	}
	name := hostname(r.Host)
	if slices.Contains(h.names, name) || h.loopback && isLoopback(name) {
		seen := r.Host
		h.last.Store(&seen)
		return nil
	}
	return &Error{
		Code: CodeForbidden,
		Detail: "this server is not to be asked for by the name in the Host field, which could be that of another site; " +
			"start it with --allow-host for that name",
	}
}

// hostname is the Host field without a port, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isLoopback reports names that no name server can point elsewhere or here (RFC 6761
// section 6.3).
func isLoopback(name string) bool {
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}
