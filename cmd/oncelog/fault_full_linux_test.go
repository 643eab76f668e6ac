package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// fullProbe is the size of the records that fill a store.
const fullProbe = 200_000

// TestStoreIsFull fills a store up to --max-store-bytes and expects appends to be refused
// with storage-full, reads to go on and duplicates to be recognised; appends are taken again
// when records have been trimmed, without a restart.
func TestStoreIsFull(t *testing.T) {
	g := newGateway(t, "--max-store-bytes", "6MiB", "--retention-interval", "10ms")
	p := newProbe(t, g, "probe", fullProbe)
	first := int64(0)
	for range 3 {
		p.refused(t, 100, http.StatusInsufficientStorage, producer.CodeStorageFull, openapi.NotApplied)
		p.whole(t, first)
		first = p.next
		freedBy(t, p, func() {
			if _, err := g.client.Trim(t.Context(), p.topic, 0, first); err != nil {
				t.Fatal(err)
			}
		})
	}
	p.whole(t, first)
	g.restart(true)
	p.whole(t, first)
}

// freedBy makes room and expects the probe to be taken again.
func freedBy(t *testing.T, p *probe, free func()) {
	t.Helper()
	free()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := until(ctx, func() error { return p.send(ctx) }); err != nil {
		t.Fatalf("there is room and nothing is taken: %v", err)
	}
}

// TestDiskIsFull fills a real file system, small and in memory, to its last byte. The room
// is given back by deleting a file that lies beside the store. A server that is to keep a
// reserve takes nothing there, and reads all the same.
func TestDiskIsFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("mount: %v", err)
		}
		t.Skipf("a file system of 12 MiB cannot be mounted (it takes root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	g := unstarted(t, "--retention-interval", "10ms")
	g.data = filepath.Join(dir, "data")
	g.start()
	p := newProbe(t, g, "probe", fullProbe)
	p.refused(t, 100, http.StatusInsufficientStorage, producer.CodeStorageFull, openapi.NotApplied)
	p.whole(t, 0)
	full := p.next
	freedBy(t, p, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
	p.refused(t, 100, http.StatusInsufficientStorage, producer.CodeStorageFull, openapi.NotApplied)
	if p.next < full+10 {
		t.Errorf("full with %d records, with 4 MiB more with %d", full, p.next)
	}
	p.whole(t, 0)
	g.kill()
	checkData(t, g.data)
	g.flags = append(g.flags, "--disk-reserve", "64MiB")
	g.launch()
	waitUntilOpen(t, g, "probe")
	p.refused(t, 1, http.StatusInsufficientStorage, producer.CodeStorageFull, openapi.NotApplied)
	p.whole(t, 0)
}
