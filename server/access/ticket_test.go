package access_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/oncelog/oncelog/server/access"
)

func (e *env) ticket(c *access.Caller, path string) string {
	e.t.Helper()
	text, until, err := e.Ticket(c, path)
	if err != nil {
		e.t.Fatal(err)
	}
	if life := until.Sub(e.now()); life <= 0 || life > time.Minute {
		e.t.Fatalf("a ticket is good for %v", life)
	}
	if len(text) < 22 { // 128 bits in base64
		e.t.Fatalf("a ticket is as short as %q", text)
	}
	return text
}

func ask(target string) *http.Request { return httptest.NewRequest(http.MethodGet, target, nil) }

// TestTicketIsGoodOnce: for one request, for its path, for its caller, for a moment, and
// the query has nothing of it left.
func TestTicketIsGoodOnce(t *testing.T) {
	e := newEnv(t)
	alice := e.caller(bearer(e.token(produce("alice"))))
	ticket := e.ticket(alice, "/events")
	r := ask("/events?a=1&ticket=" + ticket + "&b=2")
	if c := e.caller(r); c != alice || r.URL.RawQuery != "a=1&b=2" {
		t.Errorf("let in as %q, query %q", c.Name, r.URL.RawQuery)
	}
	e.refused(ask("/events?ticket="+ticket), access.CodeUnauthenticated)

	for name, target := range map[string]string{
		"another path":   "/topics/t/partitions/0/records?ticket=",
		"below the path": "/events/x?ticket=",
		"encoded path":   "/%65vents?ticket=",
	} {
		ticket := e.ticket(alice, "/events")
		e.refused(ask(target+ticket), access.CodeUnauthenticated)
		if name == "another path" { // it is spent even so
			e.refused(ask("/events?ticket="+ticket), access.CodeUnauthenticated)
		}
	}
	twice := e.ticket(alice, "/events")
	e.refused(ask("/events?ticket="+twice+"&ticket="+twice), access.CodeUnauthenticated)
	for _, bad := range []string{"", "x", twice + "x", twice[1:], "%zz"} {
		e.refused(ask("/events?ticket="+bad), access.CodeUnauthenticated)
	}

	late := e.ticket(alice, "/events")
	e.pass(access.TicketLife)
	e.refused(ask("/events?ticket="+late), access.CodeUnauthenticated)
}

// TestTicketOfARevokedToken is worth nothing.
func TestTicketOfARevokedToken(t *testing.T) {
	e := newEnv(t)
	alice := e.caller(bearer(e.token(produce("alice"))))
	ticket := e.ticket(alice, "/events")
	e.revoke("alice")
	e.refused(ask("/events?ticket="+ticket), access.CodeUnauthenticated)
}

// TestAnonymousTicket: a page need not know whether there are tokens; a ticket from before
// there were is worth nothing.
func TestAnonymousTicket(t *testing.T) {
	e := newEnv(t)
	everybody := e.caller(request())
	if c := e.caller(ask("/events?ticket=" + e.ticket(everybody, "/events"))); c != everybody {
		t.Errorf("let in as %q", c.Name)
	}
	ticket := e.ticket(everybody, "/events")
	e.token(produce("alice"))
	e.refused(ask("/events?ticket="+ticket), access.CodeUnauthenticated)
}

// TestTicketOnlyWhereItIsTaken: elsewhere it is a query parameter like any other.
func TestTicketOnlyWhereItIsTaken(t *testing.T) {
	e := newEnv(t)
	alice := e.caller(bearer(e.token(produce("alice"))))
	r := ask("/topics?ticket=" + e.ticket(alice, "/topics"))
	if c, err := e.Authenticate(r, false); err == nil {
		t.Errorf("let in as %q", c.Name)
	}
	if r.URL.RawQuery == "" {
		t.Error("the query was touched")
	}
}

// TestTicketsAreBounded: nobody can fill the memory with them, and old ones make room.
func TestTicketsAreBounded(t *testing.T) {
	e := newEnv(t)
	alice := e.caller(bearer(e.token(produce("alice"))))
	n := 0
	for {
		if _, _, err := e.Ticket(alice, "/events"); err != nil {
			if refusal := isError(t, err, access.CodeRateLimited); refusal.RetryAfter == 0 {
				t.Error("no Retry-After")
			}
			break
		}
		if n++; n > 100_000 {
			t.Fatal("there is no bound")
		}
	}
	e.pass(access.TicketLife)
	e.ticket(alice, "/events")
}
