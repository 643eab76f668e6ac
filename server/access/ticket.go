package access

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A browser's EventSource sends no headers, and a token in a URL ends up in logs and
// histories. So who has a token gets a ticket with it, which is good once, for a moment,
// for one path, and is worth nothing when it turns up in a log.

const (
	// TicketLife is how long a ticket is good.
	TicketLife = 30 * time.Second
	// maxTickets bounds the tickets that are out.
	maxTickets  = 10_000
	ticketParam = "ticket="
)

type ticket struct {
	caller *Caller
	path   string // escaped
	until  time.Time
}

// tickets are kept under their hashes, so that finding one takes a time that says nothing
// about the others.
type tickets struct {
	mu   sync.Mutex
	held map[Hash]ticket
}

// Ticket makes a ticket with which the caller may send one GET for path, escaped as in a
// URL. It fails with CodeRateLimited when too many are out.
func (c *Control) Ticket(caller *Caller, path string) (text string, until time.Time, err error) {
	now := c.now()
	t := &c.tickets
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held) >= maxTickets {
		for h, old := range t.held {
			if !now.Before(old.until) {
				delete(t.held, h)
			}
		}
	}
	if len(t.held) >= maxTickets {
		return "", time.Time{}, &Error{
			Code: CodeRateLimited, Detail: "too many tickets are out", RetryAfter: int64(TicketLife / time.Second),
		}
	}
	text, until = rand.Text(), now.Add(TicketLife).Truncate(time.Millisecond)
	t.held[Hash(sha256.Sum256([]byte(text)))] = ticket{caller, path, until}
	return text, until, nil
}

// redeem gives the caller of a ticket, which is spent whatever becomes of it.
func (c *Control) redeem(text, path string) (*Caller, error) {
	h := Hash(sha256.Sum256([]byte(text)))
	t := &c.tickets
	t.mu.Lock()
	found, ok := t.held[h]
	delete(t.held, h)
	t.mu.Unlock()
	if !ok || !c.now().Before(found.until) || found.path != path {
		return nil, unauthenticated("the ticket is unknown, used, expired or for another path; POST /tickets gives one", true)
	}
	return c.current(found.caller)
}

// takeTicket takes the ticket out of a query, so that neither the handler nor any log
// sees it.
func takeTicket(r *http.Request) (text string, ok bool) {
	rest := make([]string, 0, 4)
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		value, is := strings.CutPrefix(part, ticketParam)
		if !is {
			rest = append(rest, part)
			continue
		}
		if ok { // two tickets are none
			text = ""
			continue
		}
		text, _ = url.QueryUnescape(value)
		ok = true
	}
	r.URL.RawQuery = strings.Join(rest, "&")
	return text, ok
}
