package access

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// ErrEnded is the cause with which the context of a [Caller] ends.
var ErrEnded = errors.New("the caller's right has ended")

// Caller is somebody who has been let in. It does not change; when what it may do does,
// its context ends and another Caller takes its place.
type Caller struct {
	// Name is the principal, "" for everybody of an anonymous server.
	Name string
	// Grant is the id of the grant, for the log; "" for none.
	Grant string
	// Meter is nil when nothing is bounded.
	Meter *Meter

	scopes   Scope
	prefixes []string
	grant    *Grant
	ctx      context.Context //nolint:containedctx // ends with the caller's right, not with a request
	end      context.CancelCauseFunc
}

// Context ends when the caller's right does: revoked, expired, or changed.
func (c *Caller) Context() context.Context { return c.ctx }

// Ended refuses a caller whose right has ended.
func (c *Caller) Ended() error {
	if c.ctx.Err() == nil {
		return nil
	}
	return Ended()
}

// Ended is the refusal of a caller whose right has ended.
func Ended() *Error { return unauthenticated("the credentials have expired or were revoked", true) }

// Limited reports whether the caller may not see all topics.
func (c *Caller) Limited() bool { return len(c.prefixes) > 0 }

// Covers reports whether the topic is among those that the caller may do anything with.
func (c *Caller) Covers(topic string) bool {
	if len(c.prefixes) == 0 {
		return true
	}
	for _, p := range c.prefixes {
		if strings.HasPrefix(topic, p) {
			return true
		}
	}
	return false
}

// May fails with CodeForbidden unless the caller has one of the scopes in need, for some
// topic.
func (c *Caller) May(need Scope) error {
	enough := need
	if need&adminOnly != 0 {
		enough = adminOnly // the other scopes that admin has in it are not
	}
	if c.scopes&enough == 0 {
		return forbidden(need, "this takes the scope "+orList(need)+", and the caller has "+c.scopes.String())
	}
	return nil
}

// MayTopic is May for one topic. It does not tell whether there is such a topic.
func (c *Caller) MayTopic(need Scope, topic string) error {
	if err := c.May(need); err != nil {
		return err
	}
	if !c.Covers(topic) {
		return forbidden(need, "the caller's topic prefixes do not cover topic "+strconv.QuoteToASCII(topic))
	}
	return nil
}

// MayAll is May for what concerns all topics.
func (c *Caller) MayAll(need Scope) error {
	if err := c.May(need); err != nil {
		return err
	}
	if c.Limited() {
		return forbidden(need, "this concerns all topics, and the caller is limited to some prefixes")
	}
	return nil
}

// orList names the scopes, any of which is enough.
func orList(need Scope) string { return strings.Join(need.Names(), " or ") }

// newCaller makes the caller of a grant, whose context ends when the grant does.
func newCaller(g *Grant, scopes Scope, prefixes []string, m *Meter) *Caller {
	c := &Caller{Name: g.Name, Grant: g.ID, Meter: m, scopes: scopes, prefixes: prefixes, grant: g}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c
}
