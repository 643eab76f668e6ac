package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/storetest/faultfs"
)

// TestReadErrorOfTheDisk makes the disk refuse the page in which a batch lies: a read of it
// says so, and never gives other bytes; all other batches and partitions are read and
// written as ever; and when the disk gives the page again so does the server.
func TestReadErrorOfTheDisk(t *testing.T) {
	const batches, bad = 12, 2
	g, fs := faultyGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	value := func(n int) string { return strings.Repeat("batch "+strconv.Itoa(n)+" ", 3000) } // some pages
	for n := range batches {
		appendText(t, g, "t", value(n))
	}
	p := newProbe(t, g, "probe", 1)
	p.must(t)
	g.stop()
	file, err := os.ReadFile(filepath.Join(fs.Below, "data", "oncelog.db"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(file, []byte("batch "+strconv.Itoa(bad)+" "))
	if at < 0 {
		t.Fatal("the batch is not in the file")
	}
	at -= 5000 // a page that holds nothing else
	fs.Inject(faultfs.Fault{Kind: faultfs.Read, From: int64(at), To: int64(at) + 1, Errno: syscall.EIO})
	g.start()
	read := func(offset int) error {
		list, err := g.client.Records(t.Context(), "t", 0, producer.Read{Offset: strconv.Itoa(offset), Limit: 1})
		if err == nil && (len(list.Records) != 1 || *list.Records[0].ValueText != value(offset)) {
			t.Errorf("what is read at %d is not what was stored", offset)
		}
		return err
	}
	for n := range batches {
		err := read(n)
		e, ok := errors.AsType[*producer.Error](err)
		switch {
		case n != bad && err != nil:
			t.Errorf("batch %d: %v", n, err)
		case n == bad && (!ok || e.Code != producer.CodeStorageFailed || e.Status != http.StatusServiceUnavailable):
			t.Errorf("the batch that the disk does not give: %v", err)
		}
	}
	p.must(t)
	p.whole(t, 0)
	appendText(t, g, "t", value(batches))
	fs.Inject()
	for n := range batches + 1 {
		if err := read(n); err != nil {
			t.Errorf("batch %d when the disk is well: %v", n, err)
		}
	}
}

// appendText appends one record of a text, without a producer id.
func appendText(t *testing.T, g *gateway, topic, text string) {
	t.Helper()
	if _, err := g.client.Append(t.Context(), topic, 0, openapi.AppendRequest{Records: []openapi.AppendRecord{{ValueText: &text}}}); err != nil {
		t.Fatal(err)
	}
}
