package access_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/server/access"
)

// FuzzParse: whatever a file of grants holds, it is refused or understood in full: written
// again it says the same.
func FuzzParse(f *testing.F) {
	file := access.File{Path: f.TempDir() + "/access.json"}
	g := produce("orders", "orders.")
	g.ExpiresAt, g.Quota = time.Now().Add(time.Hour), access.Quota{Requests: 5, Bytes: 6, Producers: 7, Held: 8}
	if _, _, err := file.CreateToken(g, time.Now()); err != nil {
		f.Fatal(err)
	}
	g = access.Grant{Certificate: "CN=x", Scopes: []string{"admin"}}
	if _, err := file.AllowCertificate(g, time.Now()); err != nil {
		f.Fatal(err)
	}
	grants, err := file.Grants()
	if err != nil {
		f.Fatal(err)
	}
	for n := range len(grants) + 1 {
		text, err := access.Format(grants[:n])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"version":1,"grants":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		grants, err := access.Parse(text)
		if err != nil {
			return
		}
		once, err := access.Format(grants)
		if err != nil {
			t.Fatalf("it cannot be written again: %v", err)
		}
		again, err := access.Parse(once)
		if err != nil {
			t.Fatalf("it cannot be read again: %v\n%s", err, once)
		}
		if twice, err := access.Format(again); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%v: %s\nand then %s", err, once, twice)
		}
	})
}

// FuzzCredentials: no header and no query lets anybody in but the token itself, and
// nothing in them makes the server panic.
func FuzzCredentials(f *testing.F) {
	file := access.File{Path: f.TempDir() + "/access.json"}
	token, _, err := file.CreateToken(produce("orders"), time.Now())
	if err != nil {
		f.Fatal(err)
	}
	c, err := access.New(access.Options{File: file.Path})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Close)
	f.Add("Bearer "+token, "a=1&ticket=x")
	f.Add("bearer   "+token+" ", "ticket=%zz&ticket=")
	f.Add("Basic eDp5", "")
	f.Fuzz(func(t *testing.T, authorization, query string) {
		r := httptest.NewRequest(http.MethodGet, "/events", nil)
		r.URL.RawQuery = query
		r.Header["Authorization"] = []string{authorization}
		caller, err := c.Authenticate(r, true)
		scheme, given, _ := strings.Cut(authorization, " ")
		right := strings.EqualFold(scheme, "Bearer") && strings.TrimSpace(given) == token
		asked := false
		for part := range strings.SplitSeq(query, "&") {
			asked = asked || strings.HasPrefix(part, "ticket=")
		}
		if (err == nil) != (right && !asked) {
			t.Fatalf("%q with query %q: %v, %v", authorization, query, caller, err)
		}
		if _, err := url.ParseQuery(r.URL.RawQuery); err == nil && asked && strings.Contains("&"+r.URL.RawQuery, "&ticket=") {
			t.Errorf("the ticket is left in %q", r.URL.RawQuery)
		}
	})
}
