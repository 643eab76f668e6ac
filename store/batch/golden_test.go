package batch_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/store/batch"
)

const batchDoc = "../../openapi/BATCH.md"

// The examples of BATCH.md, by the heading above them. The bytes lie on disks and
// come from encoders that others have written: a change of them needs a new version.
func golden() map[string][]batch.Record {
	tombstone := batch.Record{Key: []byte("user-7"), KeyForm: batch.FormText, ValueForm: batch.FormJSON, Timestamp: batch.NoTimestamp}
	everything := batch.Record{
		Key: []byte{0x00, 0xff}, Value: []byte(`{"n":1}`), ValueForm: batch.FormJSON, Timestamp: 1767323045678,
		Headers: []batch.Header{{Name: "trace", Value: "é"}, {Name: "trace", Value: ""}},
	}
	photo := value(batch.FormRaw, "\x89PNG")
	photo.ContentType = "image/png"
	return map[string][]batch.Record{
		"One text value":     {value(batch.FormText, "hello")},
		"A tombstone":        {tombstone},
		"Everything at once": {everything},
		"Runs of forms":      {value(batch.FormText, "a"), value(batch.FormText, ""), value(batch.FormBytes, "a"), photo},
	}
}

// example is what BATCH.md shows under a heading.
type example struct{ Bytes, Digest string }

// examples reads the hex blocks of BATCH.md: bytes, then what they are after a #.
func examples(t *testing.T) map[string]example {
	t.Helper()
	doc, err := os.ReadFile(batchDoc)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]example{}
	for _, section := range strings.Split(string(doc), "\n### ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		_, block, found := strings.Cut(text, "```hex\n")
		if !found {
			continue
		}
		block, _, _ = strings.Cut(block, "```")
		var e example
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(line, "#")
			line = strings.ReplaceAll(strings.TrimSpace(line), " ", "")
			if d, ok := strings.CutPrefix(line, "digest"); ok {
				e.Digest = d
				continue
			}
			e.Bytes += line
		}
		all[heading] = e
	}
	return all
}

func TestGolden(t *testing.T) {
	want := map[string]example{}
	for name, records := range golden() {
		b := build(records...)
		want[name] = example{Bytes: hex.EncodeToString(b.Bytes), Digest: hex.EncodeToString(b.Digest[:])}
	}
	if d := cmp.Diff(examples(t), want); d != "" {
		t.Errorf("BATCH.md (−) and the encoder (+):\n%s", d)
	}
}

func TestGoldenIsRead(t *testing.T) {
	for name, e := range examples(t) {
		data, err := hex.DecodeString(e.Bytes)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b, err := batch.Parse(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := hex.EncodeToString(b.Digest[:]); got != e.Digest {
			t.Errorf("%s: digest %s, BATCH.md says %s", name, got, e.Digest)
		}
		if d := cmp.Diff(golden()[name], read(t, data)); d != "" {
			t.Errorf("%s (−) is read as (+):\n%s", name, d)
		}
	}
}

// The numbers that the text of BATCH.md gives.
func TestDocumentedNumbers(t *testing.T) {
	doc, err := os.ReadFile(batchDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		batch.ContentType,
		fmt.Sprintf("`0x%08X`", crc32.Checksum([]byte("123456789"), crc32.MakeTable(crc32.Castagnoli))),
		fmt.Sprintf("`%d`", int64(batch.MaxTimestamp)),
		fmt.Sprintf("| %d | forms |", batch.HeaderLen),
	} {
		if !bytes.Contains(doc, []byte(want)) {
			t.Errorf("BATCH.md does not say %q", want)
		}
	}
}
