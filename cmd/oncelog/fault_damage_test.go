package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

const (
	damagedBatches = 6 // of topic "ill", each of some pages
	pageSize       = 4096
)

// illValue is the record of a batch; each word in it says where it belongs.
func illValue(n int) string {
	var s strings.Builder
	for word := range 3000 {
		fmt.Fprintf(&s, "b%d-%04d ", n, word)
	}
	return s.String()
}

// middle finds the pages that hold nothing but the middle of a batch, wherever the file
// has copies of it.
func middle(t *testing.T, file []byte, n int) (pages [][]byte) {
	t.Helper()
	for _, at := range places(file, fmt.Appendf(nil, "b%d-1500 ", n)) {
		start := at / pageSize * pageSize
		pages = append(pages, file[start:start+pageSize])
	}
	if len(pages) == 0 {
		t.Fatalf("batch %d is not in the file", n)
	}
	return pages
}

// places lists where a text is in a file.
func places(file, text []byte) (at []int) {
	for from := 0; ; from++ {
		i := bytes.Index(file[from:], text)
		if i < 0 {
			return at
		}
		from += i
		at = append(at, from)
	}
}

// damages are what may happen to a file, with the batches that it hits.
var damages = []struct {
	name  string
	spoil func(t *testing.T, file []byte)
	bad   []int
}{
	{"flipped bit", func(t *testing.T, file []byte) {
		for _, p := range middle(t, file, 2) {
			p[1234] ^= 4
		}
	}, []int{2}},
	{"torn page", func(t *testing.T, file []byte) {
		for _, p := range middle(t, file, 2) { // some sectors of it are as they were before
			clear(p[512:1024])
			clear(p[2048:3584])
		}
	}, []int{2}},
	{"swapped pages", func(t *testing.T, file []byte) {
		a, b := middle(t, file, 1), middle(t, file, 4)
		wasA, wasB := bytes.Clone(a[0]), bytes.Clone(b[0])
		for _, p := range a {
			copy(p, wasB)
		}
		for _, p := range b {
			copy(p, wasA)
		}
	}, []int{1, 4}},
	{"lost page", func(t *testing.T, file []byte) {
		for _, p := range middle(t, file, damagedBatches-1) {
			clear(p)
		}
	}, []int{damagedBatches - 1}},
}

// TestDamagedFile damages the file of a server: `oncelog check` names each batch that is
// damaged, and no other; the server says so to whoever reads one, in each form of reading,
// and gives all others as they were stored; everything else goes on.
func TestDamagedFile(t *testing.T) {
	g := newGateway(t)
	g.createTopic("ill", 1, openapi.TopicConfig{})
	for n := range damagedBatches {
		appendText(t, g, "ill", illValue(n))
	}
	well := newProbe(t, g, "well", 10)
	for range 20 {
		well.must(t)
	}
	g.stop()
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			s := spoiled(t, g, func(file []byte) []byte { d.spoil(t, file); return file })
			text := checkOf(t, s.data)
			for n := range damagedBatches {
				if named := strings.Contains(text, fmt.Sprintf(`topic "ill" partition 0: the batch at offset %d:`, n)); named != slices.Contains(d.bad, n) {
					t.Errorf("check names batch %d: %v\n%s", n, named, text)
				}
			}
			s.start()
			for n := range damagedBatches {
				s.readIll(t, n, slices.Contains(d.bad, n))
			}
			s.streamIll(t, d.bad[0])
			p := *well
			p.g = s.gateway
			p.whole(t, 0)
			p.must(t)
			p.whole(t, 0)
			appendText(t, s.gateway, "ill", illValue(damagedBatches))
			s.readIll(t, damagedBatches, false)
			s.stop()
		})
	}
	t.Run("truncated", func(t *testing.T) {
		s := spoiled(t, g, func(file []byte) []byte { return file[:places(file, []byte("b5-1500 "))[0]] })
		if text := checkOf(t, s.data); !strings.Contains(text, "is cut off: it has") {
			t.Errorf("check: %s", text)
		}
		ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
		defer cancel()
		out, err := exec.CommandContext(ctx, "oncelog", "serve", "--data", s.data, "--listen", "127.0.0.1:0").CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != exitFailure || !strings.Contains(string(out), "is cut off") {
			t.Errorf("serve: %v\n%s", err, out)
		}
	})
}

// spoiledGateway is a server on a damaged copy of another one's data. What it leaves is
// not checked.
type spoiledGateway struct{ *gateway }

func spoiled(t *testing.T, g *gateway, spoil func(file []byte) []byte) spoiledGateway {
	t.Helper()
	s := &gateway{tb: t, data: t.TempDir(), listen: "127.0.0.1:0"}
	file, err := os.ReadFile(filepath.Join(g.data, "oncelog.db"))
	if err == nil {
		err = os.WriteFile(filepath.Join(s.data, "oncelog.db"), spoil(written(file)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.running() {
			s.kill()
		}
	})
	return spoiledGateway{s}
}

// written leaves out the end of a file that was never written to, which is long.
func written(file []byte) []byte {
	const step = 1 << 20
	nothing := make([]byte, step)
	for len(file) > 2*step && bytes.Equal(file[len(file)-step:], nothing) {
		file = file[:len(file)-step]
	}
	return file
}

// checkOf expects `oncelog check` to find damage and gives what it says.
func checkOf(t *testing.T, data string) string {
	t.Helper()
	out, err := exec.Command("oncelog", "check", data).CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != exitDamaged {
		t.Errorf("check: %v\n%s", err, out)
	}
	return string(out)
}

// readIll reads one batch of topic "ill", which is damaged or not.
func (s spoiledGateway) readIll(t *testing.T, n int, bad bool) {
	t.Helper()
	list, err := s.client.Records(t.Context(), "ill", 0, producer.Read{Offset: strconv.Itoa(n), Limit: 1})
	e, ok := errors.AsType[*producer.Error](err)
	switch {
	case !bad && err != nil:
		t.Errorf("batch %d: %v", n, err)
	case !bad && (len(list.Records) != 1 || *list.Records[0].ValueText != illValue(n)):
		t.Errorf("what is read at %d is not what was stored", n)
	case bad && (!ok || e.Code != producer.CodeRecordsDamaged || e.Status != http.StatusInternalServerError || e.Retryable || e.Outcome != openapi.NotApplied):
		t.Errorf("damaged batch %d: %v, %v", n, list.Records, err)
	}
}

// streamIll reads topic "ill" as a stream: what comes before the damage comes, as it was
// stored, and nothing of or after it.
func (s spoiledGateway) streamIll(t *testing.T, bad int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/topics/ill/partitions/0/records", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body) // it may be cut off
	if resp.StatusCode != http.StatusOK {
		return
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for n, line := range lines[:min(len(lines), bad)] {
		if !strings.Contains(line, illValue(n)) {
			t.Errorf("line %d of the stream is not record %d", n, n)
		}
	}
	if len(lines) > bad || err == nil && resp.StatusCode == http.StatusOK && len(lines) == damagedBatches {
		t.Errorf("the stream has %d records, that at %d is damaged", len(lines), bad)
	}
}

// TestDamagedHeader damages what a start needs of one partition. That one takes nothing
// and says why; what is whole of it is read; the other one goes on.
func TestDamagedHeader(t *testing.T) {
	g := newGateway(t)
	ill, well := newProbe(t, g, "ill", 10), newProbe(t, g, "well", 11) // other checksums
	for range 5 {
		ill.must(t)
		well.must(t)
	}
	list, err := g.client.Batches(t.Context(), "ill", 0, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	crc, err := strconv.ParseUint(list.Items[0].CRC, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	g.kill() // so that the next start has to replay the headers
	s := spoiled(t, g, func(file []byte) []byte { return spoilHeader(t, file, uint32(crc)) })
	if text := checkOf(t, s.data); !strings.Contains(text, `topic "ill" partition 0: batch at offset 4: damaged batch header`) {
		t.Errorf("check: %s", text)
	}
	s.start()
	if err := s.client.Ready(t.Context()); err != nil {
		t.Errorf("one damaged partition keeps the server from being ready: %v", err)
	}
	p, q := *ill, *well
	p.g, q.g = s.gateway, s.gateway
	e, ok := errors.AsType[*producer.Error](p.send(t.Context()))
	if !ok || e.Code != producer.CodeRecordsDamaged || e.Status != http.StatusInternalServerError || e.Outcome != openapi.NotApplied || !strings.Contains(e.Detail, "out of service") {
		t.Errorf("append to the damaged partition: %v", e)
	}
	if list, err := s.client.Records(t.Context(), "ill", 0, producer.Read{Limit: 4}); err != nil || len(list.Records) != 4 {
		t.Errorf("what is whole of it: %d records, %v", len(list.Records), err)
	}
	q.whole(t, 0)
	q.must(t)
	q.whole(t, 0)
}

// spoilHeader changes the header of the batch with a checksum, wherever the file has
// copies of it.
func spoilHeader(t *testing.T, file []byte, crc uint32) []byte {
	t.Helper()
	changed := 0
	for _, at := range places(file, binary.BigEndian.AppendUint32(nil, crc)) {
		if at < 16 || string(file[at-16:at-14]) != "OL" { // not in the batch itself
			file[at] ^= 1
			changed++
		}
	}
	if changed == 0 {
		t.Fatal("the header is not in the file")
	}
	return file
}
