package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
)

// TestLinesStayAsTheyAre sends what a line may consist of and reads it back.
func TestLinesStayAsTheyAre(t *testing.T) {
	g := newGateway(t)
	random := make([]byte, 100_000)
	_, _ = rand.Read(random) // never fails
	longest := strings.Repeat("x", store.MaxRecordBytes)
	inputs := map[string]string{
		"carriage-returns": "a\r\nb\r\r\n\r\n",
		"no-line-feed":     "first\nlast",
		"empty-lines":      "\n\n\na\n\n",
		"not-utf8":         "\xff\xfe\n\xc3\x28\nok\n\xed\xa0\x80\n",
		"zero-bytes":       "\x00\n\x00\x00\n",
		"json":             "{\"a\": 1}\nnull\n\"x\"\n\u2028<>&\n",
		"random":           string(random),
		"longest":          "short\n" + longest + "\nshort\n",
		"longest-alone":    longest,
	}
	for name, input := range inputs {
		g.createTopic(name, 1, openapi.TopicConfig{})
		cmd := exec.Command("oncelog", "produce", "--url", g.url, "--topic", name)
		cmd.Stdin = strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		want := input
		if !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if got := g.oncelog("consume", "--topic", name, "--exit"); got != want {
			t.Errorf("%s: sent %s, got %s", name, brief(want), brief(got))
		}
	}
}

// TestLineTooLong expects the lines before one that is too long to be stored, and a
// failure that names it.
func TestLineTooLong(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	cmd := exec.Command("oncelog", "produce", "--url", g.url, "--topic", "t")
	cmd.Stdin = strings.NewReader("a\nb\n" + strings.Repeat("x", store.MaxRecordBytes+1) + "\nc\n")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitFailure || !bytes.Contains(out, []byte("line 3 has")) {
		t.Errorf("%v\n%s", err, out)
	}
	if got := g.oncelog("consume", "--topic", "t", "--exit"); got != "a\nb\n" {
		t.Errorf("stored: %s", brief(got))
	}
}

func brief(s string) string {
	const most = 60
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{
		"0": 0, "17": 17, "17B": 17, "1KiB": 1 << 10, "16 MiB": 16 << 20, "3GiB": 3 << 30, "7TiB": 7 << 40,
	} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "1MB", "1K", "MiB", "9223372036854775808", "8388608TiB", "1 000"} {
		var got byteSize
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken for %d", text, got)
		}
	}
	for size, want := range map[byteSize]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 16 << 20: "16 MiB", 1<<30 + 1: "1.0 GiB"} {
		if got := size.String(); got != want {
			t.Errorf("%d: %q, not %q", int64(size), got, want)
		}
	}
}
