package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store/storetest/faultfs"
)

// tally is what became of appends.
type tally struct {
	stored, refused, failed atomic.Int64
	late                    atomic.Int64 // arrivals that found no connection free
	mu                      sync.Mutex
	took                    []time.Duration // of those refused
	err                     error
}

func (a *tally) fail(err error) {
	a.failed.Add(1)
	a.mu.Lock()
	a.err = err
	a.mu.Unlock()
}

// appender is a connection that appends one record again and again.
type appender struct {
	conn net.Conn
	read *bufio.Reader
}

// append sends one append and counts what becomes of it. A refusal must say when to come
// again.
func (a *appender) append(request string, t *tally) {
	start := time.Now()
	if _, err := a.conn.Write([]byte(request)); err != nil {
		t.fail(err)
		return
	}
	resp, body, err := hear(a.conn, a.read, 20*time.Second)
	switch {
	case err != nil:
		t.fail(err)
	case resp.StatusCode == http.StatusOK:
		t.stored.Add(1)
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") != "" &&
		strings.Contains(string(body), `"overloaded"`) && strings.Contains(string(body), `"not-applied"`):
		t.refused.Add(1)
		t.mu.Lock()
		t.took = append(t.took, time.Since(start))
		t.mu.Unlock()
	default:
		t.fail(fmt.Errorf("%s, Retry-After %q: %s", resp.Status, resp.Header.Get("Retry-After"), body))
	}
}

func appenders(t *testing.T, g *gateway, n int) []*appender {
	t.Helper()
	all := make([]*appender, n)
	for i := range all {
		conn := g.connect()
		all[i] = &appender{conn, bufio.NewReader(conn)}
	}
	return all
}

// closed lets every connection send its next append as soon as the last one is answered.
func closed(all []*appender, request string, period time.Duration) (*tally, time.Duration) {
	var t tally
	var wait sync.WaitGroup
	start := time.Now()
	for _, a := range all {
		wait.Go(func() {
			for time.Since(start) < period {
				a.append(request, &t)
			}
		})
	}
	wait.Wait()
	return &t, time.Since(start)
}

// open sends appends at a rate, whatever becomes of those before.
func open(all []*appender, request string, rate float64, period time.Duration) (*tally, time.Duration) {
	var t tally
	var wait sync.WaitGroup
	arrivals := make(chan struct{})
	for _, a := range all {
		wait.Go(func() {
			for range arrivals {
				a.append(request, &t)
			}
		})
	}
	start := time.Now()
	for sent := 0; time.Since(start) < period; time.Sleep(time.Millisecond) {
		for due := int(time.Since(start).Seconds() * rate); sent < due; sent++ {
			select {
			case arrivals <- struct{}{}:
			default:
				t.late.Add(1)
			}
		}
	}
	took := time.Since(start)
	close(arrivals)
	wait.Wait()
	return &t, took
}

// TestOverload: a disk that takes its time bounds what the server can store. At ten times
// that rate it stores as much as before, and tells the others early to come again. Those
// have changed nothing.
func TestOverload(t *testing.T) {
	const queue, factor = 32, 10
	fs := faultfs.New(t)
	g := unstarted(t, "--queue-length", strconv.Itoa(queue), "--log-successes", "1")
	g.program, g.data = plainBinary(t), fs.Dir+"/data"
	t.Cleanup(func() { fs.Inject() })
	g.start()
	g.createTopic("t", 1, openapi.TopicConfig{})
	fs.Inject(faultfs.Fault{Kind: faultfs.Sync, Delay: 100 * time.Millisecond})
	all := appenders(t, g, 600)
	request := rawAppend(strings.Repeat("v", 1000))
	period := time.Duration(crowdOf(t, 1500)) * time.Millisecond
	warm, _ := closed(all[:queue], request, 200*time.Millisecond)
	stored, share := warm.stored.Load(), 0.0
	for range 3 { // the machine may have had something else to do
		calm, took := closed(all[:queue], request, period)
		peak := float64(calm.stored.Load()) / took.Seconds()
		storm, took := open(all, request, factor*peak, period)
		goodput := float64(storm.stored.Load()) / took.Seconds()
		offered := float64(storm.stored.Load()+storm.refused.Load()+storm.failed.Load()) / took.Seconds()
		stored += calm.stored.Load() + storm.stored.Load()
		share = goodput / peak
		slices.Sort(storm.took)
		t.Logf("peak %.0f appends a second; at %.1f times that %.0f stored (%.0f %%), %.0f refused a second; %d found no connection free",
			peak, offered/peak, goodput, 100*share, float64(storm.refused.Load())/took.Seconds(), storm.late.Load())
		if len(storm.took) > 0 {
			t.Logf("a refusal took %v, the slowest hundredth %v", storm.took[len(storm.took)/2].Round(time.Microsecond),
				storm.took[len(storm.took)*99/100].Round(time.Microsecond))
		}
		if err := errors.Join(calm.err, storm.err); err != nil {
			t.Fatalf("%d appends were neither stored nor refused properly: %v", calm.failed.Load()+storm.failed.Load(), err)
		}
		if share >= 0.8 && storm.refused.Load() > 0 && offered > factor/2*peak {
			break
		}
		share = 0
	}
	if share == 0 {
		t.Error("goodput went below 80 % of the peak, or the load could not be made")
	}
	fs.Inject()
	g.givenBack(t)
	if p, err := g.client.Partition(t.Context(), "t", 0); err != nil || p.NextOffset != stored {
		t.Errorf("%v: %d records, and %d were acknowledged", err, p.NextOffset, stored)
	}
	g.bounded(t, "overload", 400<<20)
}

// TestTooManyClients: with ten times the connections that it takes to keep the server busy
// all its processors have to do, it stores as much as with those.
func TestTooManyClients(t *testing.T) {
	g := crowded(t)
	all := appenders(t, g, 640)
	request := rawAppend(strings.Repeat("v", 1000))
	measure := func() float64 {
		calm, took := closed(all[:64], request, time.Second)
		if calm.err != nil {
			t.Fatal(calm.err)
		}
		return float64(calm.stored.Load()) / took.Seconds()
	}
	share, after := 0.0, measure()
	for range 3 {
		before := after
		storm, took := closed(all, request, time.Second)
		goodput := float64(storm.stored.Load()) / took.Seconds()
		after = measure()
		peak := min(before, after) // the machine may have had something else to do
		share = goodput / peak
		t.Logf("64 connections: %.0f appends a second; 640: %.0f stored (%.0f %%), %.0f refused", peak, goodput, 100*share,
			float64(storm.refused.Load())/took.Seconds())
		if err := storm.err; err != nil {
			t.Fatal(err)
		}
		if share >= 0.8 {
			break
		}
	}
	if share < 0.8 {
		t.Errorf("goodput went down to %.0f %% of the peak", 100*share)
	}
	g.givenBack(t)
}
