package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/oncelog/oncelog/store"
)

// Grant says what the holder of a token or a certificate may do.
type Grant struct {
	// ID names the grant in lists and logs. It is part of the token.
	ID string `json:"id"`
	// Name is the principal: the owner of producer ids and of quotas. Grants of one name
	// share both.
	Name string `json:"name"`
	// Hash is that of the token; nil for a certificate.
	Hash *Hash `json:"hash,omitzero"`
	// Certificate is the name in a client certificate, as [CertificateName] gives it; ""
	// for a token.
	Certificate string `json:"certificate,omitzero"`
	// Scopes are names of scopes, at least one.
	Scopes []string `json:"scopes"`
	// TopicPrefixes are what the names of topics must begin with; none: all topics.
	TopicPrefixes []string  `json:"topicPrefixes,omitzero"`
	CreatedAt     time.Time `json:"createdAt"`
	// ExpiresAt is when the grant ends; zero: never.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Quota replaces the server's defaults member by member.
	Quota Quota `json:"quota,omitzero"`
}

const (
	maxName     = 128
	maxPrefixes = 100
)

// Prefixes of the names of principals that nobody has named: a name that somebody gives
// must not be mistaken for one of those.
const (
	tokenPrincipal       = "token:"
	certificatePrincipal = "cert:"
)

// check holds a grant to what the file may say. What cannot be understood must not be
// taken for less than it says.
func (g *Grant) check() error {
	switch {
	case len(g.ID) != idLength:
		return fmt.Errorf("the id %q is not of %d characters", g.ID, idLength)
	case (g.Hash == nil) == (g.Certificate == ""):
		return errors.New("exactly one of hash and certificate is needed")
	case g.Name == "" || len(g.Name) > store.MaxOwner || strings.ContainsFunc(g.Name, unprintable):
		return fmt.Errorf("the name %q must be 1 to %d bytes of printable text", g.Name, store.MaxOwner)
	case len(g.Scopes) == 0:
		return errors.New("no scope is given")
	case len(g.TopicPrefixes) > maxPrefixes:
		return fmt.Errorf("there are more than %d topic prefixes", maxPrefixes)
	}
	if _, err := ParseScopes(g.Scopes); err != nil {
		return err
	}
	for _, p := range g.TopicPrefixes {
		if p == "" || len(p) > store.MaxTopicName || strings.ContainsFunc(p, notInTopic) {
			return fmt.Errorf("%q cannot be the beginning of a topic's name", p)
		}
	}
	return g.Quota.check()
}

// checkName holds a name that somebody has chosen to the rules.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxName || strings.ContainsFunc(name, unprintable):
		return fmt.Errorf("the name %q must be 1 to %d bytes of printable text", name, maxName)
	case strings.HasPrefix(name, tokenPrincipal), strings.HasPrefix(name, certificatePrincipal):
		return fmt.Errorf("the name %q begins like those that are made up; choose another", name)
	}
	return nil
}

func unprintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

func notInTopic(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

// expired reports whether the grant has ended.
func (g *Grant) expired(now time.Time) bool { return !g.ExpiresAt.IsZero() && !now.Before(g.ExpiresAt) }

// equal reports whether two versions of a grant let their holder do the same.
func (g *Grant) equal(h *Grant) bool {
	sameHash := g.Hash == h.Hash || g.Hash != nil && h.Hash != nil && *g.Hash == *h.Hash
	return sameHash && g.ID == h.ID && g.Name == h.Name && g.Certificate == h.Certificate &&
		slices.Equal(g.Scopes, h.Scopes) && slices.Equal(g.TopicPrefixes, h.TopicPrefixes) &&
		g.ExpiresAt.Equal(h.ExpiresAt)
}
