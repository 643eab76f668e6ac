package main

import (
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/storetest/faultfs"
)

// faultyGateway is a server whose data lies on a disk that fails when it is told to.
func faultyGateway(t *testing.T, flags ...string) (*gateway, *faultfs.FS) {
	t.Helper()
	fs := faultfs.New(t)
	g := unstarted(t, flags...)
	g.data = filepath.Join(fs.Dir, "data")
	t.Cleanup(func() { fs.Inject() }) // before the server is stopped
	g.start()
	return g, fs
}

// TestDiskFaults lets the disk of a busy server fail in each way in turn. Whatever it is:
// clients get the code of the contract, reads go on, a duplicate is recognised, and in the
// end each record that was acknowledged is there once, and those of all others too, for
// their producers have sent them again.
func TestDiskFaults(t *testing.T) {
	g, fs := faultyGateway(t, "--reorder-wait", "20ms")
	p := newProbe(t, g, "probe", 1)
	p.must(t)
	l := startLoad(t, g, 4, 5*time.Second)
	for _, c := range []struct {
		name  string
		fault faultfs.Fault
		want  producer.Code // "": the fault is not noticed
	}{
		{"write", faultfs.Fault{Kind: faultfs.Write, Times: 1, Errno: syscall.EIO}, producer.CodeStorageFailed},
		{"later write", faultfs.Fault{Kind: faultfs.Write, After: 3, Times: 1, Errno: syscall.EIO}, producer.CodeStorageFailed},
		{"short writes", faultfs.Fault{Kind: faultfs.Write, Times: 20, Short: 700}, ""},
		{"no space", faultfs.Fault{Kind: faultfs.Write, Errno: syscall.ENOSPC}, producer.CodeStorageFull},
		{"quota", faultfs.Fault{Kind: faultfs.Write, After: 2, Errno: syscall.EDQUOT}, producer.CodeStorageFull},
		{"fsync once", faultfs.Fault{Kind: faultfs.Sync, Times: 1, Errno: syscall.EIO}, producer.CodeStorageFailed},
		{"later fsync", faultfs.Fault{Kind: faultfs.Sync, After: 1, Times: 1, Errno: syscall.EIO}, producer.CodeStorageFailed},
		{"no space at fsync", faultfs.Fault{Kind: faultfs.Sync, Times: 1, Errno: syscall.ENOSPC}, producer.CodeStorageFailed},
		{"slow fsync", faultfs.Fault{Kind: faultfs.Sync, Delay: 100 * time.Millisecond}, ""},
	} {
		l.progress(t, 20)
		fs.Inject(c.fault)
		switch c.want {
		case producer.CodeStorageFailed:
			p.refused(t, 50, http.StatusServiceUnavailable, producer.CodeStorageFailed, openapi.Unknown)
			fs.Inject() // the disk works again, but nobody knows what is on it
			stoppedForGood(t, p)
			restartAfterFailure(t, g)
		case producer.CodeStorageFull:
			p.refused(t, 50, http.StatusInsufficientStorage, producer.CodeStorageFull, openapi.NotApplied)
			p.whole(t, 0)
			fs.Inject()
		default:
			start := time.Now()
			p.must(t)
			if took := time.Since(start); took < c.fault.Delay {
				t.Errorf("%s: acknowledged after %v, the fsync takes %v", c.name, took, c.fault.Delay)
			}
			if fs.Struck() == 0 {
				t.Errorf("%s: nothing has failed", c.name)
			}
			fs.Inject()
		}
		p.must(t)
		p.whole(t, 0)
		if t.Failed() {
			t.Fatalf("after: %s", c.name)
		}
	}
	l.progress(t, 20)
	l.end(t)
}

// stoppedForGood expects a server that has failed to take no writes, to say so, and to
// give what is stored.
func stoppedForGood(t *testing.T, p *probe) {
	t.Helper()
	for range 3 {
		p.refused(t, 1, http.StatusServiceUnavailable, producer.CodeStorageFailed, openapi.Unknown)
	}
	if err := p.g.client.Ready(t.Context()); err == nil {
		t.Error("a server that takes no writes says that it is ready")
	}
	p.whole(t, 0)
	for n := range crashPartitions {
		if _, err := p.g.client.Records(t.Context(), "t", n, producer.Read{Limit: 10}); err != nil {
			t.Errorf("read of partition %d: %v", n, err)
		}
	}
}

// restartAfterFailure ends the server, checks what it leaves, and starts it again.
func restartAfterFailure(t *testing.T, g *gateway) {
	t.Helper()
	g.signal(syscall.SIGTERM)
	if code := g.exitCode(); code != exitFailure { // the snapshot at the end could not be taken
		t.Errorf("a server that has failed ends with code %d", code)
	}
	if out, err := exec.Command("oncelog", "check", g.data).CombinedOutput(); err != nil {
		t.Errorf("oncelog check: %v\n%s", err, out)
	}
	g.start()
}

// TestFsyncFailsForGood expects a server on a disk that syncs nothing any more to give what
// is stored, to take nothing, and to be as before when the disk has been replaced.
func TestFsyncFailsForGood(t *testing.T) {
	g, fs := faultyGateway(t)
	p := newProbe(t, g, "probe", 1)
	for range 10 {
		p.must(t)
	}
	g.kill()
	fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Errno: syscall.EIO})
	for range 2 {
		g.launch()
		waitUntilOpen(t, g, "probe")
		p.refused(t, 1, http.StatusServiceUnavailable, producer.CodeStorageFailed, openapi.Unknown)
		p.whole(t, 0)
		g.kill()
	}
	fs.Inject()
	g.start()
	p.must(t)
	p.whole(t, 0)
}

// waitUntilOpen waits until the server, which may not be ready to take writes, has opened
// its store.
func waitUntilOpen(t *testing.T, g *gateway, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := until(ctx, func() error {
		_, err := g.client.Partition(ctx, topic, 0)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
