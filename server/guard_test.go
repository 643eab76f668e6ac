package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory"
)

// batch1 is a batch of one record.
func batch1(pid, epoch, seq int64) string {
	return fmt.Sprintf(`{"pid":%d,"epoch":%d,"baseSeq":%d,"records":[{"value":1}]}`, pid, epoch, seq)
}

func (l *lockedEnv) pid(header string) int64 {
	l.t.Helper()
	return as[openapi.ProducerID](l.json("POST", "/producers", "", header).is(201)).PID
}

// TestUnauthenticated: a complete problem with a challenge, for everything that is no
// token in force.
func TestUnauthenticated(t *testing.T) {
	l := newLockedEnv(t)
	a := l.get("/topics")
	a.problem("unauthenticated")
	if got := a.header.Get("WWW-Authenticate"); got != `Bearer realm="oncelog"` {
		t.Errorf("challenge %q", got)
	}
	token := l.token(t, "gone", "admin")
	l.get("/topics", token).is(200)
	l.revoke(t, "gone")
	a = l.get("/topics", token)
	a.problem("unauthenticated")
	if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got, `error="invalid_token"`) {
		t.Errorf("challenge %q", got)
	}
	a = l.get("/topics/x", l.token(t, "x", "produce", "y"))
	a.problem("forbidden")
	if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got, `error="insufficient_scope", scope="produce consume"`) {
		t.Errorf("challenge %q", got)
	}
}

// TestRefusedBeforeTheBody: who may not append does not get to send the body, and the
// server reads none of it.
func TestRefusedBeforeTheBody(t *testing.T) {
	l := newLockedEnv(t)
	l.topic("t")
	conn, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /topics/t/partitions/0/batches HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
		"Content-Length: 16000000\r\nExpect: 100-continue\r\n\r\n")
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestTwoPrincipalsFightOverAProducer: nobody can append with another's id, fence it, or
// learn from the answer whose it is or where it stands.
func TestTwoPrincipalsFightOverAProducer(t *testing.T) {
	l := newLockedEnv(t)
	p := l.topic("t")
	alice, mallory := l.token(t, "alice", "produce"), l.token(t, "mallory", "produce")
	pid := l.pid(alice)
	l.json("POST", p+"/batches", batch1(pid, 0, 0), alice).is(200)
	for _, attack := range []string{
		batch1(pid, 0, 1), batch1(pid, 1, 0), batch1(pid, 1<<50, 0), batch1(pid, 0, 0), batch1(pid, 0, 7),
	} {
		problem := l.json("POST", p+"/batches", attack, mallory).problem("forbidden")
		if strings.Contains(problem.Detail, "alice") || problem.CurrentEpoch.Present || problem.ExpectedSeq != nil {
			t.Errorf("%s tells too much: %+v", attack, problem)
		}
	}
	l.json("POST", p+"/batches", batch1(pid, 0, 1), l.root).problem("forbidden") // no admin can either
	l.json("POST", p+"/batches", batch1(pid, 0, 1), alice).is(200)
	path := fmt.Sprintf("%s/producers/%d", p, pid)
	l.get(path, alice).is(200)
	l.get(path, mallory).problem("forbidden")
	l.get(fmt.Sprintf("/producers/%d", pid), alice).is(200)
	l.get(fmt.Sprintf("/producers/%d", pid), mallory).problem("forbidden")
	l.do("DELETE", path, "", alice).problem("forbidden")
	l.get(path, l.root).is(200)

	// Another token of alice goes on where the first one was.
	l.json("POST", p+"/batches", batch1(pid, 0, 2), l.token(t, "alice", "produce")).is(200)
	// Ids from before there were tokens belong to nobody in particular, so to no token.
	anonymous, err := l.store.AllocateProducer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	l.json("POST", p+"/batches", batch1(anonymous.ID, 0, 0), alice).problem("forbidden")
}

// TestAutoCreateAsksTheOwner: an append that is refused changes nothing, so it creates no
// topic; and a producer can create none outside its prefixes.
func TestAutoCreateAsksTheOwner(t *testing.T) {
	l := newLockedEnvOver(t, memory.Open(memory.Options{}), access.Options{}, func(o *server.Options) { o.AutoCreateTopics = 1 })
	alice, mallory := l.token(t, "alice", "produce", "a."), l.token(t, "mallory", "produce", "a.")
	pid := l.pid(alice)
	l.json("POST", "/topics/a.t/partitions/0/batches", batch1(pid, 0, 0), mallory).problem("forbidden")
	l.json("POST", "/topics/b.t/partitions/0/batches", batch1(pid, 0, 0), alice).problem("forbidden")
	if list := as[openapi.TopicList](l.get("/topics", l.root).is(200)); len(list.Items) != 0 {
		t.Errorf("there are topics: %+v", list)
	}
	l.json("POST", "/topics/a.t/partitions/0/batches", batch1(pid, 0, 0), alice).is(200)
}

// TestRevokedWhileItWaits: a long poll is answered with 401, an event stream ends, and
// neither gets a record that came later.
func TestRevokedWhileItWaits(t *testing.T) {
	waiting := make(chan struct{}, 10)
	l := newLockedEnvOver(t, &waitSpy{Store: memory.Open(memory.Options{}), called: waiting}, access.Options{})
	p := l.topic("t")
	spy := l.token(t, "spy", "consume")
	other := l.token(t, "other", "consume")

	polled := make(chan *answer)
	go func() { polled <- l.get(p+"/records?waitMs=60000", spy, "X-Request-Id: poll") }()
	<-waiting
	next, _ := l.follow(t.Context(), p+"/records", spy)
	if ev, err := next(); err != nil || ev.comment != "from 0" {
		t.Fatalf("%+v, %v", ev, err)
	}
	<-waiting
	stays, _ := l.follow(t.Context(), p+"/records", other)
	if _, err := stays(); err != nil {
		t.Fatal(err)
	}
	<-waiting

	l.revoke(t, "spy")
	(<-polled).problem("unauthenticated")
	l.json("POST", p+"/batches", `{"records":[{"valueText":"later"}]}`, l.root).is(200)
	for _, line := range l.log.lines(t) { // a client may ask again by itself when it is just cut off
		if line["request.id"] == "poll" && line["status"] != 401.0 {
			t.Errorf("the poll ended with %v", line)
		}
	}
	for {
		ev, err := next()
		if err == io.EOF { //nolint:errorlint // bufio gives it as it is
			break
		}
		if err != nil || strings.Contains(ev.data, "later") {
			t.Fatalf("after revocation: %+v, %v", ev, err)
		}
	}
	if ev, err := stays(); err != nil || !strings.Contains(ev.data, "later") {
		t.Errorf("the other stream: %+v, %v", ev, err)
	}
}

// TestTicketLetsAStreamIn: once, without any header, and without a trace in the log.
func TestTicketLetsAStreamIn(t *testing.T) {
	l := newLockedEnv(t)
	p := l.topic("t")
	l.json("POST", p+"/batches", `{"records":[{"valueText":"x"}]}`, l.root).is(200)
	reader := l.token(t, "reader", "consume", "t")
	path := p + "/records"
	made := l.json("POST", "/tickets", fmt.Sprintf(`{"path":%q}`, path), reader).is(201)
	if made.header.Get("Cache-Control") != "no-store" {
		t.Error("a ticket may be cached")
	}
	ticket := as[openapi.Ticket](made)
	if until, err := time.Parse(time.RFC3339, ticket.ExpiresAt); err != nil || time.Until(until) > time.Minute {
		t.Errorf("good until %s", ticket.ExpiresAt)
	}
	// The document does not tell of the parameter on every path that takes it.
	next, resp := l.unchecked().follow(t.Context(), path+"?offset=0&ticket="+ticket.Ticket)
	if resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}
	if _, err := next(); err != nil {
		t.Fatal(err)
	}
	if ev, err := next(); err != nil || !strings.Contains(ev.data, `"valueText":"x"`) {
		t.Errorf("%+v, %v", ev, err)
	}
	l.unchecked().get(path+"?ticket="+ticket.Ticket, "Accept: text/event-stream").problem("unauthenticated")
	if strings.Contains(string(l.logText()), ticket.Ticket) {
		t.Error("the ticket is in the log")
	}

	// What the caller may not do, the ticket does not let in.
	foreign := as[openapi.Ticket](l.json("POST", "/tickets", `{"path":"/events"}`, reader).is(201))
	l.unchecked().get("/events?ticket=" + foreign.Ticket).problem("forbidden")
	for _, bad := range []string{"/topics", "/events?x=1", "events", "//events", "http://x/events", "/events#x", "", "/metrics", "/topics/t/partitions/0/batches"} {
		l.json("POST", "/tickets", fmt.Sprintf(`{"path":%q}`, bad), reader).problem("invalid-argument")
	}
	l.json("POST", "/tickets", `{}`, reader).problem(malformed)
	l.json("POST", "/tickets", `{"path":"/events"}`).problem("unauthenticated")
	l.json("POST", "/tickets", `{"path":"/events"}`, reader, "Sec-Fetch-Site: cross-site").problem("cross-origin")
	// Only where a browser can send no header.
	post := as[openapi.Ticket](l.json("POST", "/tickets", fmt.Sprintf(`{"path":%q}`, path), reader).is(201))
	l.unchecked().do("DELETE", path+"?before=0&ticket="+post.Ticket, "").problem("unauthenticated")
}

// TestQuotas: refused with a time to wait, told in the fields of the draft, and of one
// principal only.
func TestQuotas(t *testing.T) {
	now := time.Now() // what has been used does not come back by itself
	l := newLockedEnvOver(t, memory.Open(memory.Options{}), access.Options{Now: func() time.Time { return now }})
	p := l.topic("t")
	slow := l.grant(t, access.Grant{Name: "slow", Scopes: []string{"admin"}, Quota: access.Quota{Requests: 3}})
	for left := range 3 {
		a := l.get("/topics", slow).is(200)
		if got, want := a.header.Get("RateLimit-Policy"), `"requests";q=3;w=1`; got != want {
			t.Errorf("RateLimit-Policy %q", got)
		}
		if got, want := a.header.Get("RateLimit"), fmt.Sprintf(`"requests";r=%d;t=1`, 2-left); got != want {
			t.Errorf("RateLimit %q, want %q", got, want)
		}
	}
	l.get("/topics", slow).problem("rate-limited")
	if a := l.get("/topics", l.root).is(200); a.header.Get("RateLimit") != "" {
		t.Error("somebody without a quota is told of one")
	}

	heavy := l.grant(t, access.Grant{Name: "heavy", Scopes: []string{"admin"}, Quota: access.Quota{Bytes: 1 << 20}})
	big := strings.Repeat("x", 1<<20)
	l.unchecked().do("POST", p+"/batches", big, heavy).is(200)
	l.unchecked().do("POST", p+"/batches", big, heavy).problem("rate-limited") // the first one has used it all up
	reader := l.grant(t, access.Grant{Name: "reader", Scopes: []string{"admin"}, Quota: access.Quota{Bytes: 1 << 10}})
	l.unchecked().get(p+"/records?limit=1", reader).is(200) // the answer counts, too
	after := l.get(p+"/records?limit=1", reader)
	after.problem("rate-limited")
	if wait := after.header.Get("Retry-After"); len(wait) < 4 {
		t.Errorf("a debt of a MiB at a KiB a second is to be paid in %s s", wait)
	}

	few := l.grant(t, access.Grant{Name: "few", Scopes: []string{"produce"}, Quota: access.Quota{Producers: 2}})
	for range 2 {
		l.pid(few)
	}
	a := l.json("POST", "/producers", "", few)
	a.problem("rate-limited")
	if wait := a.header.Get("Retry-After"); wait != "1800" {
		t.Errorf("Retry-After %s", wait)
	}
}

// TestHeldQuotaRefusesAtOnce: beyond the quota a batch is not held. The server says so to
// the engine by NoHold, and not to the client by Preference-Applied.
func TestHeldQuotaRefusesAtOnce(t *testing.T) {
	block := make(chan struct{})
	appended := make(chan store.Append, 2)
	engine := &failingStore{Store: memory.Open(memory.Options{})}
	l := newLockedEnvOver(t, engine, access.Options{})
	p := l.topic("t")
	engine.append = func(_ context.Context, a store.Append) (store.Ack, error) {
		appended <- a
		if !a.NoHold {
			<-block
		}
		return store.Ack{NextSeq: -1}, nil
	}
	one := l.grant(t, access.Grant{Name: "one", Scopes: []string{"produce"}, Quota: access.Quota{Held: 1}})
	done := make(chan *answer)
	go func() { done <- l.json("POST", p+"/batches", `{"records":[{"value":1}]}`, one) }()
	if a := <-appended; a.NoHold {
		t.Error("the first may not be held")
	}
	a := l.json("POST", p+"/batches", `{"records":[{"value":1}]}`, one).is(200)
	if second := <-appended; !second.NoHold || a.header.Get("Preference-Applied") != "" {
		t.Errorf("the second: %+v, %v", second, a.header)
	}
	close(block)
	(<-done).is(200)
	l.json("POST", p+"/batches", `{"records":[{"value":1}]}`, one).is(200)
	if third := <-appended; third.NoHold {
		t.Error("the third may not be held, though the first has gone")
	}
}

// TestForeignHost: a name that is not this machine's is refused everywhere, before
// anything is told.
func TestForeignHost(t *testing.T) {
	control, err := access.New(access.Options{Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	e := newEnv(t, func(o *server.Options) { o.Access = control })
	e.topic("t")
	for _, path := range []string{"/", "/docs", "/topics", "/metrics", "/livez", "/events", "/problems", "/nothing"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example"
		resp, err := e.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		(&answer{t, resp.StatusCode, resp.Header, body}).problem("forbidden")
	}
	e.get("/topics").is(200)
}

// TestPrincipalInTheLog: with the id of its grant, and never a secret, whatever is sent
// where.
func TestPrincipalInTheLog(t *testing.T) {
	l := newLockedEnv(t)
	alice := l.token(t, "alice", "admin")
	secret := strings.TrimPrefix(alice, "Authorization: Bearer ")
	l.get("/topics", alice, "X-Request-Id: one").is(200)
	l.get("/topics?token="+secret, alice)
	l.unchecked().get("/topics/t?access_token=" + secret)
	l.get("/topics", "Authorization: Basic "+secret)
	l.unchecked().get("/events?ticket=" + secret)
	l.json("POST", "/topics", `{"name":"`+secret+`x/"}`, alice)
	l.get("/topics", "X-Request-Id: x", "Authorization: Bearer "+secret+"x")
	text := string(l.logText())
	if strings.Contains(text, secret[20:44]) {
		t.Errorf("the secret is in the log:\n%s", text)
	}
	for _, line := range l.log.lines(t) {
		if line["request.id"] == "one" && (line["principal"] != "alice" || line["grant"] != secret[8:18]) {
			t.Errorf("%v", line)
		}
	}
}

// TestSecurityHeaders: pages may load from this server only and cannot be framed; nothing
// can be loaded by a page of another site.
func TestSecurityHeaders(t *testing.T) {
	e := newEnv(t)
	for _, path := range []string{"/", "/docs", "/problems", "/problems/internal"} {
		a := e.get(path).is(200)
		csp := a.header.Get("Content-Security-Policy")
		for _, part := range []string{"frame-ancestors 'none'", "base-uri 'none'", "default-src '"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: Content-Security-Policy %q lacks %s", path, csp, part)
			}
		}
		for _, hole := range []string{"script-src 'unsafe-inline'", "unsafe-eval", "http:", "https:", "*"} {
			if strings.Contains(csp, hole) {
				t.Errorf("%s: Content-Security-Policy %q has %s", path, csp, hole)
			}
		}
		if got := a.header.Get("Referrer-Policy"); got != "no-referrer" {
			t.Errorf("%s: Referrer-Policy %q", path, got)
		}
	}
	for _, path := range []string{"/", "/topics", "/nothing", "/metrics", "/openapi.json", "/livez"} {
		a := e.get(path)
		if got := a.header.Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
			t.Errorf("%s: Cross-Origin-Resource-Policy %q", path, got)
		}
		if a.header.Get("X-Request-Id") == "" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, a.header)
		}
	}
	l := newLockedEnv(t)
	if got := l.get("/topics", l.root).is(200).header.Values("Vary"); len(got) != 1 || got[0] != "Authorization" {
		t.Errorf("Vary %q", got)
	}
}

// TestStatusStreamEndsWithTheToken: the status page's stream, too.
func TestStatusStreamEndsWithTheToken(t *testing.T) {
	l := newLockedEnv(t)
	spy := l.token(t, "spy", "consume")
	next, resp := l.follow(t.Context(), "/events", spy)
	if resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}
	l.revoke(t, "spy")
	for {
		_, err := next()
		if err == io.EOF { //nolint:errorlint // bufio gives it as it is
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
