package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/openapi"
)

// TestCheckFindsDamage changes one byte of a record on disk.
func TestCheckFindsDamage(t *testing.T) {
	const payload = "a payload that is found nowhere else in the file"
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	cmd := exec.Command("oncelog", "produce", "--url", g.url, "--topic", "t")
	cmd.Stdin = strings.NewReader("before\n" + payload + "\nafter\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.stop()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(g.data)); err != nil {
		t.Fatal(err)
	}
	changed := 0
	err := filepath.WalkDir(copied, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed += bytes.Count(text, []byte(payload))
		return os.WriteFile(path, bytes.ReplaceAll(text, []byte(payload), []byte("A"+payload[1:])), 0o644)
	})
	if err != nil || changed == 0 {
		t.Fatalf("%d changes, %v", changed, err)
	}
	out, err := exec.Command("oncelog", "check", copied).CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != exitDamaged || !strings.Contains(string(out), " found\n") {
		t.Errorf("check: %v\n%s", err, out)
	}
	t.Logf("check: %s", out)
}
