package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzConfigFile: whatever a configuration file holds, a command that is given it is carried
// out, or refused with the exit code for bad settings and a line that says why.
func FuzzConfigFile(f *testing.F) {
	for _, text := range []string{
		`{"listen":"127.0.0.1:0","reorder-wait":"20ms"}`, `{"corsOrigin":["https://a","https://b"],"auto_create_topics":3}`,
		`{"max-body-bytes":"16MiB","maxBodyBytes":1}`, `{"url":null}`, `{"nothing":1}`, `[]`, `{`, ``, `{"listen":[["x"]]}`,
		`{"queue-length":1e400}`, `{"log-level":"loud"}`, `{"data":"\u0000"}`, `{"insecure":true,"insecure":false}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"version", "--config", path}, strings.NewReader(""), &stdout, &stderr)
		switch code {
		case exitOK:
		case exitUsage:
			if stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "oncelog: ") {
				t.Errorf("%q: %s%s", text, &stdout, &stderr)
			}
		default:
			t.Errorf("%q: exit code %d, %s", text, code, &stderr)
		}
	})
}
