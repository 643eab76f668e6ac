package access_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/server/access"
)

// live reports whether a caller's streams go on.
func live(c *access.Caller) bool { return c.Context().Err() == nil }

// TestAnonymousUntilThereAreGrants: without a file everybody may do everything; the first
// grant ends that, for streams too; and nothing brings it back.
func TestAnonymousUntilThereAreGrants(t *testing.T) {
	e := newEnv(t)
	everybody := e.caller(request())
	if !e.Anonymous() || everybody.Name != "" || everybody.MayAll(access.Admin) != nil {
		t.Fatalf("without a file: %+v", everybody)
	}
	if c := e.caller(bearer("whatever")); c != everybody {
		t.Error("credentials make a difference where none are asked for")
	}
	token := e.token(produce("alice"))
	if e.Anonymous() || live(everybody) {
		t.Error("still anonymous after the first grant")
	}
	e.refused(request(), access.CodeUnauthenticated)
	e.caller(bearer(token))
	if err := os.Remove(e.file.Path); err != nil {
		t.Fatal(err)
	}
	if err := e.Reload(); err == nil {
		t.Error("nothing is said of a file that is gone")
	}
	if err := e.Reload(); err != nil {
		t.Errorf("it is said twice: %v", err)
	}
	e.refused(request(), access.CodeUnauthenticated)
	e.caller(bearer(token))
	e.token(produce("bob")) // a new file: alice is not in it
	e.refused(bearer(token), access.CodeUnauthenticated)
	e.revoke("bob")
	e.refused(request(), access.CodeUnauthenticated) // an empty file lets nobody in
	if err := os.Remove(e.file.Path); err != nil {
		t.Fatal(err)
	}
	if c, err := access.New(access.Options{File: e.file.Path}); err == nil {
		c.Close()
		t.Error("a server whose file is gone starts, and is open to everybody")
	} else if !strings.Contains(err.Error(), "is gone") {
		t.Error(err)
	}
}

// TestBrokenFile: at the start it stops the server, later it changes nothing.
func TestBrokenFile(t *testing.T) {
	e := newFile(t)
	token := e.token(produce("alice"))
	good, err := os.ReadFile(e.file.Path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(e.file.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"version": 1, "grants": [`)
	if c, err := access.New(access.Options{File: e.file.Path}); err == nil {
		c.Close()
		t.Fatal("a server starts with a file that it cannot read")
	}
	write(string(good))
	e.start()
	alice := e.caller(bearer(token))
	write(`{"version": 1, "grants": [{}]}`)
	if err := e.Reload(); err == nil || !strings.Contains(err.Error(), "stay as they were") {
		t.Fatalf("a broken file: %v", err)
	}
	if e.caller(bearer(token)) != alice || !live(alice) {
		t.Error("a broken file has ended a caller")
	}
	write(string(good) + " ")
	if err := e.Reload(); err != nil {
		t.Error(err)
	}
	if e.caller(bearer(token)) != alice || !live(alice) {
		t.Error("a grant that is the same has ended its caller")
	}
}

// TestRevocation ends one caller, with its streams, and leaves the others alone.
func TestRevocation(t *testing.T) {
	e := newEnv(t)
	a, b := e.token(produce("alice")), e.token(produce("bob"))
	alice, bob := e.caller(bearer(a)), e.caller(bearer(b))
	e.token(produce("carol"))
	if !live(alice) || !live(bob) {
		t.Fatal("a new grant has ended others")
	}
	e.revoke("alice")
	if live(alice) || !live(bob) {
		t.Errorf("after revocation alice is live: %t, bob: %t", live(alice), live(bob))
	}
	if cause := context.Cause(alice.Context()); !errors.Is(cause, access.ErrEnded) {
		t.Errorf("ended by %v", cause)
	}
	isError(t, alice.Ended(), access.CodeUnauthenticated)
	e.refused(bearer(a), access.CodeUnauthenticated)
	e.caller(bearer(b))
}

// TestNewTokenForAnOldName: two tokens of one name are one principal, and one of them can
// go, so that secrets are changed without a pause.
func TestNewTokenForAnOldName(t *testing.T) {
	e := newEnv(t)
	old := e.token(produce("orders"))
	next := e.token(produce("orders"))
	if e.caller(bearer(old)).Name != e.caller(bearer(next)).Name {
		t.Fatal("they are two principals")
	}
	first := e.caller(bearer(old)).Grant
	if _, err := e.file.Revoke(func(g access.Grant) bool { return g.ID == first }); err != nil {
		t.Fatal(err)
	}
	e.reload()
	e.refused(bearer(old), access.CodeUnauthenticated)
	e.caller(bearer(next))
}

// TestNamelessTokensAreApart: without a name each token is a principal of its own.
func TestNamelessTokensAreApart(t *testing.T) {
	e := newEnv(t)
	a, b := e.token(produce("")), e.token(produce(""))
	if x, y := e.caller(bearer(a)).Name, e.caller(bearer(b)).Name; x == y || !strings.HasPrefix(x, "token:") {
		t.Errorf("%q and %q", x, y)
	}
}

// TestExpiry: a token is refused from its last moment on, and its streams end.
func TestExpiry(t *testing.T) {
	e := newEnv(t)
	g := produce("alice")
	g.ExpiresAt = e.now().Add(time.Hour)
	token := e.token(g)
	e.pass(time.Hour - time.Millisecond)
	alice := e.caller(bearer(token))
	e.pass(time.Millisecond)
	if refusal := e.refused(bearer(token), access.CodeUnauthenticated); !strings.Contains(refusal.Detail, "expired") {
		t.Errorf("refused for %q", refusal.Detail)
	}
	e.token(produce("bob")) // read again, it is left out
	if live(alice) {
		t.Error("its streams go on")
	}
}

// TestExpiryEndsStreams by itself, when nothing is read and nobody asks.
func TestExpiryEndsStreams(t *testing.T) {
	file := access.File{Path: t.TempDir() + "/access.json"}
	synctest.Test(t, func(t *testing.T) {
		g := produce("alice")
		g.ExpiresAt = time.Now().Add(time.Hour)
		token, _, err := file.CreateToken(g, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		c, err := access.New(access.Options{File: file.Path})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		alice, err := c.Authenticate(bearer(token), false)
		if err != nil {
			t.Fatal(err)
		}
		r, done := access.Until(request(), alice)
		defer done()
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if r.Context().Err() != nil {
			t.Fatal("ended too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if context.Cause(r.Context()) != access.ErrEnded { //nolint:errorlint // as it is set
			t.Errorf("the request ends with %v", context.Cause(r.Context()))
		}
	})
}

// TestChangedGrantEndsItsCaller: what it may do is another now, so its streams are asked
// again.
func TestChangedGrantEndsItsCaller(t *testing.T) {
	e := newEnv(t)
	token := e.token(produce("alice", "a."))
	alice := e.caller(bearer(token))
	text, err := os.ReadFile(e.file.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.file.Path, []byte(strings.Replace(string(text), `"a."`, `"b."`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	e.reload()
	if live(alice) {
		t.Error("its streams go on")
	}
	if now := e.caller(bearer(token)); now.Covers("a.x") || !now.Covers("b.x") {
		t.Error("it may do what it might before")
	}
}

// TestScopesAndPrefixes is the table of who may do what.
func TestScopesAndPrefixes(t *testing.T) {
	e := newEnv(t)
	const p, c, a = access.Produce, access.Consume, access.Admin
	for _, tc := range []struct {
		scopes   string
		prefixes string
		need     access.Scope
		topic    string // "*": all topics
		ok       bool
	}{
		{"produce", "", p, "t", true},
		{"produce", "", c, "t", false},
		{"produce", "", a, "t", false},
		{"produce", "", p | c, "t", true},
		{"produce", "", p, "*", true},
		{"consume", "", p, "t", false},
		{"consume", "", c, "*", true},
		{"produce,consume", "", c, "t", true},
		{"produce,consume", "", a, "t", false},
		{"admin", "", a, "*", true},
		{"admin", "", p, "t", true},
		{"admin", "", c, "t", true},
		{"produce", "orders.", p, "orders.eu", true},
		{"produce", "orders.", p, "orders.", true},
		{"produce", "orders.", p, "orders", false},
		{"produce", "orders.", p, "ordersx", false},
		{"produce", "orders.", p, "xorders.", false},
		{"produce", "orders.", p, "Orders.eu", false},
		{"produce", "orders.", p, "*", false},
		{"admin", "orders.", a, "*", false},
		{"admin", "orders.", a, "orders.x", true},
		{"consume", "a.,b.", c, "b.x", true},
		{"consume", "a.,b.", c, "c.x", false},
	} {
		g := access.Grant{Name: "x", Scopes: strings.Split(tc.scopes, ",")}
		if tc.prefixes != "" {
			g.TopicPrefixes = strings.Split(tc.prefixes, ",")
		}
		caller := e.caller(bearer(e.token(g)))
		err := caller.MayTopic(tc.need, tc.topic)
		if tc.topic == "*" {
			err = caller.MayAll(tc.need)
		}
		if (err == nil) != tc.ok {
			t.Errorf("%+v: %v", tc, err)
		}
		if err != nil {
			if refusal := isError(t, err, access.CodeForbidden); !strings.Contains(refusal.Challenge, `error="insufficient_scope"`) {
				t.Errorf("%+v: challenge %s", tc, refusal.Challenge)
			}
		}
	}
}

// TestWatchNoticesAndComplainsOnce: a change is in force within the interval, at once
// after a signal, and what is wrong is said once.
func TestWatchNoticesAndComplainsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		ctx, cancel := context.WithCancel(t.Context())
		again := make(chan os.Signal)
		looks, wrong := 0, errors.New("it is broken")
		done := make(chan struct{})
		go func() {
			defer close(done)
			access.Watch(ctx, slog.New(slog.NewTextHandler(&log, nil)), time.Second, again, func() error {
				looks++
				return wrong
			})
		}()
		time.Sleep(5500 * time.Millisecond)
		synctest.Wait()
		if looks != 5 || strings.Count(log.String(), "it is broken") != 1 {
			t.Errorf("%d looks, log %s", looks, log.String())
		}
		again <- os.Interrupt
		synctest.Wait()
		if looks != 6 || strings.Count(log.String(), "it is broken") != 2 {
			t.Errorf("after a signal %d looks, log %s", looks, log.String())
		}
		cancel()
		<-done
	})
}
