package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestAnyConfigFile: whatever a configuration file holds, a command that is given it is
// carried out, or refused with the exit code for bad settings and a line that says why. It
// is no fuzz test, for those have all packages compiled anew, and here those are many.
func TestAnyConfigFile(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "config.json")
	try := func(t rapid.TB, text []byte) (code int) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		code = run(ctx, []string{"version", "--config", path}, strings.NewReader(""), &stdout, &stderr)
		switch {
		case code == exitOK:
		case code != exitUsage:
			t.Errorf("%q: exit code %d, %s", text, code, &stderr)
		case stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "oncelog: "):
			t.Errorf("%q: %s%s", text, &stdout, &stderr)
		}
		return code
	}
	for text, want := range map[string]int{"{}": exitOK, `{"reorder-wait":"20ms"}`: exitOK, "": exitUsage, "[]": exitUsage, `{"listen":["x"],"listen":"y"}`: exitUsage} {
		if code := try(t, []byte(text)); code != want {
			t.Errorf("%q: exit code %d", text, code)
		}
	}
	const most = 30 // each takes a while with the race detector
	files, n, failed := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Custom(configText)), 0, false
	rapid.Check(t, func(t *rapid.T) {
		if n++; n > most && !failed { // a failed one is tried again, to make it smaller
			return
		}
		try(t, files.Draw(t, "file"))
		failed = failed || t.Failed()
	})
}

// configText draws what is nearly a configuration file.
func configText(t *rapid.T) []byte {
	names := rapid.SampledFrom([]string{
		"listen", "reorder-wait", "reorderWait", "cors_origin", "max-body-bytes", "url", "log-level", "queue-length", "insecure", "config", "nothing", "\\u0000",
	})
	values := rapid.SampledFrom([]string{
		`"127.0.0.1:0"`, `"20ms"`, `["https://a","https://b"]`, `[["x"]]`, `"16MiB"`, `1`, `1e400`, `-1`, `null`, `true`, `{}`, `"\ud800"`, `"`, "\"\xff\"",
	})
	var members []string
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		members = append(members, `"`+names.Draw(t, "name")+`":`+values.Draw(t, "value"))
	}
	end := rapid.SampledFrom([]string{"}", "}", "}", "", ",}", "}{}"}).Draw(t, "end")
	return []byte("{" + strings.Join(members, ",") + end)
}
