package access

import (
	"fmt"
	"strings"
)

// Scope is a set of rights.
type Scope uint8

// The scopes. Admin has the others in it.
const (
	// Produce allocates producer ids and appends.
	Produce Scope = 1 << iota
	// Consume reads records, and what there is to know of topics, partitions,
	// producers and snapshots.
	Consume
	adminOnly
	// Admin changes topics, trims, expires producers, takes and deletes snapshots.
	Admin = Produce | Consume | adminOnly
)

// ParseScope reads the name of one scope.
func ParseScope(name string) (Scope, error) {
	switch name {
	case "produce":
		return Produce, nil
	case "consume":
		return Consume, nil
	case "admin":
		return Admin, nil
	}
	return 0, fmt.Errorf("%q is no scope; scopes are produce, consume and admin", name)
}

// ParseScopes reads names of scopes.
func ParseScopes(names []string) (Scope, error) {
	var all Scope
	for _, name := range names {
		s, err := ParseScope(name)
		if err != nil {
			return 0, err
		}
		all |= s
	}
	return all, nil
}

// Names lists the scopes in s, and admin alone when that is in it.
func (s Scope) Names() []string {
	if s&adminOnly != 0 {
		return []string{"admin"}
	}
	names := []string{}
	if s&Produce != 0 {
		names = append(names, "produce")
	}
	if s&Consume != 0 {
		names = append(names, "consume")
	}
	return names
}

// String joins the names with a comma.
func (s Scope) String() string { return strings.Join(s.Names(), ",") }
