package access

import (
	"context"
	"log/slog"
	"os"
	"time"
)

// state is who may come in. It is replaced as a whole.
type state struct {
	anonymous *Caller            // nil: credentials are asked for
	tokens    map[string]*Caller // by the id of the grant
	certs     map[string]*Caller // by the name of the certificate
}

// callers calls f for each.
func (s *state) callers(f func(*Caller)) {
	if s.anonymous != nil {
		f(s.anonymous)
	}
	for _, c := range s.tokens {
		f(c)
	}
	for _, c := range s.certs {
		f(c)
	}
}

// find gives the caller of a grant as it is in force.
func (s *state) find(g *Grant) *Caller {
	if g.Certificate != "" {
		return s.certs[g.Certificate]
	}
	return s.tokens[g.ID]
}

// apply puts grants into force. A caller whose grant is as before stays, with its streams;
// all others end. The caller holds mu.
func (c *Control) apply(grants []Grant) {
	if c.closed {
		return
	}
	c.warnOfMode()
	old, quotas := c.state.Load(), c.quotas(grants)
	next := &state{tokens: map[string]*Caller{}, certs: map[string]*Caller{}}
	for i := range grants {
		g := &grants[i]
		if g.expired(c.now()) {
			continue
		}
		m := c.meter(g.Name, quotas[g.Name])
		caller := old.find(g)
		if caller == nil || !caller.grant.equal(g) || caller.Meter != m || caller.ctx.Err() != nil {
			caller = c.granted(g, m)
		}
		if g.Certificate != "" {
			next.certs[g.Certificate] = caller
		} else {
			next.tokens[g.ID] = caller
		}
	}
	if old.anonymous != nil && c.started {
		c.log.Info("access control is on from now: callers need a token or a client certificate")
	}
	c.replace(next)
	c.endUngranted(func(name string) bool { return next.certs[name] != nil })
	c.forgetMeters(quotas)
	c.log.Info("grants read", slog.String("file", c.options.File),
		slog.Int("tokens", len(next.tokens)), slog.Int("certificates", len(next.certs)))
}

func (c *Control) warnOfMode() {
	info, err := os.Stat(c.options.File)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		c.log.Warn("others can read the file of grants, it should have mode 0600",
			slog.String("file", c.options.File), slog.String("mode", info.Mode().Perm().String()))
	}
}

// granted makes the caller of a grant, which ends when the grant does.
func (c *Control) granted(g *Grant, m *Meter) *Caller {
	scopes, _ := ParseScopes(g.Scopes) // checked when it was read
	caller := newCaller(g, scopes, g.TopicPrefixes, m)
	if !g.ExpiresAt.IsZero() {
		timer := time.AfterFunc(g.ExpiresAt.Sub(c.now()), func() { caller.end(ErrEnded) })
		context.AfterFunc(caller.ctx, func() { timer.Stop() })
	}
	return caller
}

// replace puts a state into force, and ends the callers that are not in it.
func (c *Control) replace(next *state) {
	stay := map[*Caller]bool{}
	next.callers(func(c *Caller) { stay[c] = true })
	c.state.Swap(next).callers(func(c *Caller) {
		if !stay[c] {
			c.end(ErrEnded)
		}
	})
}

// endUngranted ends the callers of certificates without a grant whose names match.
func (c *Control) endUngranted(match func(name string) bool) {
	c.ungranted.Range(func(name, caller any) bool {
		if match(name.(string)) { //nolint:errcheck // nothing else is put there
			c.ungranted.Delete(name)
			caller.(*Caller).end(ErrEnded) //nolint:errcheck // nothing else is put there
		}
		return true
	})
}

// Distrust ends all callers of certificates: the authorities have changed, and each has
// to be verified anew.
func (c *Control) Distrust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.state.Load()
	next := &state{anonymous: old.anonymous, tokens: old.tokens, certs: map[string]*Caller{}}
	for name, caller := range old.certs {
		next.certs[name] = c.granted(caller.grant, caller.Meter)
	}
	c.replace(next)
	c.endUngranted(func(string) bool { return true })
}

// quotas are those of principals: of grants that share a name, the newest one says.
func (c *Control) quotas(grants []Grant) map[string]Quota {
	newest, out := map[string]time.Time{}, map[string]Quota{}
	for i := range grants {
		g := &grants[i]
		if at, ok := newest[g.Name]; !ok || !g.CreatedAt.Before(at) {
			newest[g.Name], out[g.Name] = g.CreatedAt, g.Quota.or(c.options.Quota)
		}
	}
	return out
}

// meter is the one of a principal. It is kept over reloads, with what it has counted.
func (c *Control) meter(name string, q Quota) *Meter {
	if m := c.meters[name]; m != nil && m.quota == q {
		return m
	}
	delete(c.meters, name)
	m := newMeter(q, c.now)
	if m != nil {
		c.meters[name] = m
	}
	return m
}

// forgetMeters drops those of principals that are no more.
func (c *Control) forgetMeters(quotas map[string]Quota) {
	used := map[string]bool{}
	c.ungranted.Range(func(_, caller any) bool {
		used[caller.(*Caller).Name] = true //nolint:errcheck // nothing else is put there
		return true
	})
	for name := range c.meters {
		if _, granted := quotas[name]; !granted && !used[name] {
			delete(c.meters, name)
		}
	}
}
