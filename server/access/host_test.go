package access_test

import (
	"testing"

	"github.com/oncelog/oncelog/server/access"
)

// TestHost: an anonymous server on loopback is asked for by names of its own machine.
func TestHost(t *testing.T) {
	anonymous := newEnv(t, func(o *access.Options) { o.Loopback = true })
	allowed := newEnv(t, func(o *access.Options) { o.Loopback, o.Hosts = true, []string{"Log.Example"} })
	open := newEnv(t)
	only := newEnv(t, func(o *access.Options) { o.Hosts = []string{"log.example"} })
	tokens := newEnv(t, func(o *access.Options) { o.Loopback = true })
	tokens.token(produce("alice"))
	for _, tc := range []struct {
		host                                   string
		anonymous, allowed, open, only, tokens bool
	}{
		{"127.0.0.1:8080", true, true, true, false, true},
		{"127.0.0.1", true, true, true, false, true},
		{"127.1.2.3:80", true, true, true, false, true},
		{"[::1]:8080", true, true, true, false, true},
		{"[::1]", true, true, true, false, true},
		{"[::ffff:127.0.0.1]:1", true, true, true, false, true},
		{"localhost:8080", true, true, true, false, true},
		{"LOCALHOST.", true, true, true, false, true},
		{"x.localhost:1", true, true, true, false, true},
		{"", true, true, true, true, true},
		{"evil.example:8080", false, false, true, false, true},
		{"evil.example", false, false, true, false, true},
		{"localhost.evil.example", false, false, true, false, true},
		{"127.0.0.1.evil.example", false, false, true, false, true},
		{"evillocalhost", false, false, true, false, true},
		{"192.168.1.1:8080", false, false, true, false, true},
		{"0.0.0.0:8080", false, false, true, false, true},
		{"[::]:8080", false, false, true, false, true},
		{"127.0.0.1:8080:1", false, false, true, false, true},
		{"log.example:8080", false, true, true, true, true},
		{"LOG.example.", false, true, true, true, true},
		{"x.log.example", false, false, true, false, true},
	} {
		for _, c := range []struct {
			name string
			e    *env
			ok   bool
		}{
			{"anonymous", anonymous, tc.anonymous},
			{"allowed", allowed, tc.allowed},
			{"open", open, tc.open},
			{"only", only, tc.only},
			{"tokens", tokens, tc.tokens},
		} {
			for range 2 { // the second time it may be remembered
				r := request()
				r.Host = tc.host
				if err := c.e.CheckHost(r); (err == nil) != c.ok {
					t.Errorf("%s, Host %q: %v", c.name, tc.host, err)
				} else if err != nil {
					isError(t, err, access.CodeForbidden)
				}
			}
		}
	}
}
