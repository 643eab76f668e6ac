package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
)

// TestRealInput sends the source of the standard library, real text that every Go
// machine has, with `oncelog produce` while the server is killed, and expects
// `oncelog consume` to give it back byte for byte.
func TestRealInput(t *testing.T) {
	const kills, leastLines = 6, 100_000
	source := filepath.Join(t.TempDir(), "source.txt")
	// More would take minutes under the race detector.
	lines, size := concatenateStandardLibrary(t, source, 4*leastLines)
	if lines < leastLines {
		t.Fatalf("the standard library has %d lines, %d are needed", lines, leastLines)
	}
	g := newGateway(t)
	segment := int64(4 << 20)
	g.createTopic("source", 1, openapi.TopicConfig{SegmentBytes: &segment})

	done := make(chan error, 1)
	start := time.Now()
	go func() { done <- produceFile(t, g.url, source) }()
	for kill := range int64(kills) {
		waitForOffset(t, g, "source", lines*(kill+1)/(kills+1), done)
		g.restart(true)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)

	want, got := sha256.New(), sha256.New()
	f, err := os.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(want, f); err != nil {
		t.Fatal(err)
	}
	read := &counter{w: got}
	cmd := exec.Command("oncelog", "consume", "--url", g.url, "--topic", "source", "--exit")
	cmd.Stdout, cmd.Stderr = read, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if read.n != size || !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
		t.Errorf("sent %d bytes with SHA-256 %x, read back %d with %x", size, want.Sum(nil), read.n, got.Sum(nil))
	}
	t.Logf("%d lines, %d bytes, sent in %v through %d kills, read back identical", lines, size, took.Round(time.Millisecond), kills)
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// concatenateStandardLibrary writes all .go files below GOROOT/src into one file that
// ends with a line feed, save for those with a line that does not fit into a record. It stops at most lines.
func concatenateStandardLibrary(t *testing.T, to string, most int64) (lines, size int64) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	err = filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		if lines >= most {
			return fs.SkipAll
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		for line := range bytes.Lines(text) {
			if len(line) > store.MaxRecordBytes { // a table in one line
				return nil
			}
		}
		lines += int64(bytes.Count(text, []byte("\n")))
		size += int64(len(text))
		_, err = out.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines, size
}

func produceFile(t *testing.T, url, path string) error {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	cmd := exec.Command("oncelog", "produce", "--url", url, "--topic", "source")
	cmd.Stdin = in
	out, err := cmd.CombinedOutput()
	t.Logf("produce: %s", out)
	if err != nil {
		return fmt.Errorf("oncelog produce: %w", err)
	}
	return nil
}

// waitForOffset waits until a partition has so many records. It fails when whoever
// writes them has ended before.
func waitForOffset(t *testing.T, g *gateway, topic string, offset int64, done chan error) {
	t.Helper()
	for {
		p, err := g.client.Partition(t.Context(), topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.NextOffset >= offset {
			return
		}
		select {
		case err := <-done:
			t.Fatalf("the producer has ended at offset %d: %v", p.NextOffset, err)
		case <-time.After(time.Millisecond):
		}
	}
}
