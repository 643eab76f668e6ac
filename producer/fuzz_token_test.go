package producer_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/producer"
)

// FuzzTokenFile: what a token file holds is sent as it stands but for white space around
// it, or the request fails before it is sent; and no error tells the token.
func FuzzTokenFile(f *testing.F) {
	for _, text := range []string{"onc_abc\n", "  token  ", "", "\n", "two\nlines", "ü", "\x00", "a\tb", strings.Repeat("x", 1<<16)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		seen := &lastHeader{next: canned{status: http.StatusOK, media: "application/json", body: []byte(`{"pid":0,"epoch":0}`)}}
		client, err := producer.NewClient("http://oncelog.test", producer.WithTransport(seen), producer.WithTokenFile(path))
		if err != nil {
			t.Fatal(err)
		}
		token := strings.TrimSpace(string(text))
		_, err = client.AllocateProducer(t.Context())
		switch {
		case err == nil && (token == "" || seen.authorization != "Bearer "+token):
			t.Errorf("of %q, %q is sent", text, seen.authorization)
		case err != nil && seen.authorization != "":
			t.Errorf("it is sent and fails: %v", err)
		case err != nil && len(token) > 3 && strings.Contains(err.Error(), token):
			t.Errorf("the error tells the token %q: %v", token, err)
		}
	})
}

// lastHeader notes what a request is sent with.
type lastHeader struct {
	next          canned
	authorization string
}

func (l *lastHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	l.authorization = r.Header.Get("Authorization")
	return l.next.RoundTrip(r)
}
