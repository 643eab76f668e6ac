package access_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncelog/oncelog/server/access"
)

func limited(name string, q access.Quota) access.Grant {
	return access.Grant{Name: name, Scopes: []string{"admin"}, Quota: q}
}

// TestNoQuotaNoMeter: what is not bounded is not counted, and nil counts nothing.
func TestNoQuotaNoMeter(t *testing.T) {
	e := newEnv(t)
	m := e.caller(request()).Meter
	if m != nil {
		t.Fatal("there is a meter")
	}
	for range 1000 {
		if m.Request() != nil || m.Producer() != nil {
			t.Fatal("refused")
		}
		m.Used(1 << 40)
		if _, may := m.Hold(); !may {
			t.Fatal("refused")
		}
	}
	m.Pace(t.Context())
	if p, l := m.Fields(); p != nil || l != nil {
		t.Errorf("fields %q, %q", p, l)
	}
}

func TestRequestQuota(t *testing.T) {
	e := newEnv(t)
	m := e.caller(bearer(e.token(limited("a", access.Quota{Requests: 5})))).Meter
	spend := func() (n int) {
		for m.Request() == nil {
			n++
		}
		return n
	}
	if n := spend(); n != 5 {
		t.Errorf("%d requests at once, the quota is 5", n)
	}
	if refusal := isError(t, m.Request(), access.CodeRateLimited); refusal.RetryAfter != 1 {
		t.Errorf("Retry-After %d", refusal.RetryAfter)
	}
	policy, limit := m.Fields()
	if policy[0] != `"requests";q=5;w=1` || limit[0] != `"requests";r=0;t=1` {
		t.Errorf("fields %s and %s", policy, limit)
	}
	e.pass(400 * time.Millisecond)
	if n := spend(); n != 2 {
		t.Errorf("%d requests after 0.4 s", n)
	}
	e.pass(time.Hour)
	if n := spend(); n != 5 {
		t.Errorf("%d requests after an hour", n)
	}
}

// TestByteQuota: what has gone through is owed, and waited for.
func TestByteQuota(t *testing.T) {
	e := newEnv(t)
	m := e.caller(bearer(e.token(limited("a", access.Quota{Bytes: 1000})))).Meter
	if err := m.Request(); err != nil {
		t.Fatal(err)
	}
	m.Used(4500) // the quota does not keep a body out, the debt keeps the next one out
	if refusal := isError(t, m.Request(), access.CodeRateLimited); refusal.RetryAfter != 4 {
		t.Errorf("Retry-After %d s for a debt of 3500 bytes", refusal.RetryAfter)
	}
	policy, limit := m.Fields()
	if policy[0] != `"bytes";q=1000;w=1;qu="content-bytes"` || limit[0] != `"bytes";r=0;t=5` {
		t.Errorf("fields %s and %s", policy, limit)
	}
	e.pass(3400 * time.Millisecond)
	isError(t, m.Request(), access.CodeRateLimited)
	e.pass(200 * time.Millisecond)
	if err := m.Request(); err != nil {
		t.Error(err)
	}
}

func TestProducerQuota(t *testing.T) {
	e := newEnv(t)
	m := e.caller(bearer(e.token(limited("a", access.Quota{Producers: 2})))).Meter
	for range 2 {
		if err := m.Producer(); err != nil {
			t.Fatal(err)
		}
	}
	if refusal := isError(t, m.Producer(), access.CodeRateLimited); refusal.RetryAfter != 1800 {
		t.Errorf("Retry-After %d", refusal.RetryAfter)
	}
	e.pass(31 * time.Minute)
	if err := m.Producer(); err != nil {
		t.Error(err)
	}
}

func TestHeldQuota(t *testing.T) {
	e := newEnv(t)
	m := e.caller(bearer(e.token(limited("a", access.Quota{Held: 2})))).Meter
	one, ok := m.Hold()
	if !ok {
		t.Fatal("the first is refused")
	}
	if _, ok := m.Hold(); !ok {
		t.Fatal("the second is refused")
	}
	third, ok := m.Hold()
	if ok {
		t.Fatal("the third is let in")
	}
	third() // was never counted
	if _, ok := m.Hold(); ok {
		t.Fatal("giving up the third has made room")
	}
	one()
	if _, ok := m.Hold(); !ok {
		t.Error("there is no room after one has gone")
	}
}

// TestQuotasBelongToPrincipals: two tokens of one name share what there is; the newest
// says how much; a reload forgets nothing; others are not touched.
func TestQuotasBelongToPrincipals(t *testing.T) {
	e := newEnv(t, func(o *access.Options) { o.Quota = access.Quota{Requests: 100, Bytes: 7} })
	old := e.token(limited("a", access.Quota{Requests: 50}))
	e.pass(time.Millisecond)
	next := e.token(limited("a", access.Quota{Requests: 3}))
	bob := e.token(limited("b", access.Quota{}))
	m := e.caller(bearer(old)).Meter
	if m != e.caller(bearer(next)).Meter {
		t.Fatal("two tokens of one name have two meters")
	}
	for range 3 {
		if err := m.Request(); err != nil {
			t.Fatal(err)
		}
	}
	isError(t, m.Request(), access.CodeRateLimited)
	e.token(limited("c", access.Quota{}))
	isError(t, e.caller(bearer(next)).Meter.Request(), access.CodeRateLimited)
	policy, _ := e.caller(bearer(bob)).Meter.Fields()
	if policy[0] != `"requests";q=100;w=1, "bytes";q=7;w=1;qu="content-bytes"` {
		t.Errorf("the default is %s", policy)
	}
	policy, _ = m.Fields()
	if !strings.Contains(policy[0], `"requests";q=3;w=1, "bytes";q=7`) {
		t.Errorf("what a grant leaves open comes from the default: %s", policy)
	}
	if err := os.Remove(e.file.Path); err != nil {
		t.Fatal(err)
	}
}

// TestPaceWaitsForTheDebt: a stream goes on when it is paid, or its client has gone.
func TestPaceWaitsForTheDebt(t *testing.T) {
	file := access.File{Path: t.TempDir() + "/access.json"}
	token, _, err := file.CreateToken(limited("a", access.Quota{Bytes: 1000}), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := access.New(access.Options{File: file.Path})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		caller, err := c.Authenticate(bearer(token), false)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		caller.Meter.Pace(t.Context())
		if time.Since(start) != 0 {
			t.Error("waited without a debt")
		}
		caller.Meter.Used(3000)
		caller.Meter.Pace(t.Context())
		if took := time.Since(start); took < 1900*time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("waited %v for 2000 bytes", took)
		}
		caller.Meter.Used(1 << 20)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		start = time.Now()
		caller.Meter.Pace(gone)
		if time.Since(start) != 0 {
			t.Error("waited for somebody who has gone")
		}
	})
}
