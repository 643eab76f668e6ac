package access_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/server/access"
)

// TestTokenForm: what a secret scanner looks for.
func TestTokenForm(t *testing.T) {
	form := regexp.MustCompile(`^oncelog_[A-Z2-7]{43}$`)
	e := newFile(t)
	seen := map[string]bool{}
	for range 50 {
		token, g, err := e.file.CreateToken(produce("p"), e.now())
		if err != nil {
			t.Fatal(err)
		}
		if !form.MatchString(token) || seen[token] || seen[g.ID] {
			t.Fatalf("token %q, id %q", token, g.ID)
		}
		if !strings.HasPrefix(token, "oncelog_"+g.ID) {
			t.Fatalf("the id %q is not in front", g.ID)
		}
		seen[token], seen[g.ID] = true, true
	}
}

// TestTokenIsStoredHashed: neither a token nor its secret part is in the file; its
// SHA-256 is.
func TestTokenIsStoredHashed(t *testing.T) {
	e := newFile(t)
	token := e.token(produce("p"))
	text, err := os.ReadFile(e.file.Path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(token))
	if !bytes.Contains(text, []byte(hex.EncodeToString(sum[:]))) {
		t.Errorf("the hash is not in %s", text)
	}
	for n := len("oncelog_") + 10; n < len(token)-8; n++ {
		if bytes.Contains(text, []byte(token[n:n+8])) {
			t.Fatalf("a part of the secret is in %s", text)
		}
	}
}

// TestWrongTokens: nothing but the whole token as it was made lets anybody in.
func TestWrongTokens(t *testing.T) {
	e := newEnv(t)
	token := e.token(produce("alice"))
	other := e.token(produce("bob"))
	if c := e.caller(bearer(token)); c.Name != "alice" {
		t.Fatalf("let in as %q", c.Name)
	}
	if c := e.caller(request("Authorization", "bearer  "+token+" ")); c.Name != "alice" {
		t.Fatalf("the scheme has no case: let in as %q", c.Name)
	}
	swap := func(i int) string {
		c := byte('A')
		if token[i] == c {
			c = 'B'
		}
		return token[:i] + string(c) + token[i+1:]
	}
	for i := range token {
		// The checksum tells without a look at what there is.
		if refusal := e.refused(bearer(swap(i)), access.CodeUnauthenticated); !strings.Contains(refusal.Detail, "mistyped") {
			t.Errorf("character %d: refused for %q", i, refusal.Detail)
		}
	}
	foreign, _, err := access.File{Path: t.TempDir() + "/f"}.CreateToken(produce("alice"), e.now())
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{
		"", "x", token[:len(token)-1], token + "A", strings.ToLower(token), " ", "Bearer " + token,
		// The id of one with the secret of another; the checksum gives it away, and the
		// hash would.
		token[:18] + other[18:], other[:18] + token[18:],
		foreign, // well made, and not from here
	} {
		e.refused(bearer(wrong), access.CodeUnauthenticated)
	}
	for _, r := range []struct{ headers []string }{
		{nil},
		{[]string{"Authorization", token}},
		{[]string{"Authorization", "Basic " + token}},
		{[]string{"Authorization", ""}},
		{[]string{"Authorization", "Bearer " + token, "Authorization", "Bearer " + token}},
		{[]string{"X-Token", token}},
	} {
		e.refused(request(r.headers...), access.CodeUnauthenticated)
	}
}

// TestRightIDWrongSecret makes a token whose id and checksum are right: the hash decides.
func TestRightIDWrongSecret(t *testing.T) {
	e := newEnv(t)
	token := e.token(produce("alice"))
	forged := access.WithChecksum(token[:18] + strings.Repeat("A", 26))
	if len(forged) != len(token) {
		t.Fatalf("%q is not of the form of %q", forged, token)
	}
	refusal := e.refused(bearer(forged), access.CodeUnauthenticated)
	if !strings.Contains(refusal.Detail, "unknown, expired or revoked") {
		t.Errorf("refused for %q", refusal.Detail)
	}
}

// TestChallenge: RFC 6750 section 3, and no secret in any refusal.
func TestChallenge(t *testing.T) {
	e := newEnv(t)
	token := e.token(produce("alice"))
	if got := e.refused(request(), access.CodeUnauthenticated).Challenge; got != `Bearer realm="oncelog"` {
		t.Errorf("without credentials: %s", got)
	}
	e.revoke("alice")
	refusal := e.refused(bearer(token), access.CodeUnauthenticated)
	if !strings.HasPrefix(refusal.Challenge, `Bearer realm="oncelog", error="invalid_token", error_description="`) {
		t.Errorf("with a revoked token: %s", refusal.Challenge)
	}
	if text := refusal.Error() + refusal.Challenge; strings.Contains(text, token[20:40]) {
		t.Errorf("the secret is in %s", text)
	}
}
