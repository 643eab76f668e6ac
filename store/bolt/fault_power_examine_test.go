//go:build linux

package bolt_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/bolt"
)

func firstText(a store.Append) string {
	rd, err := batch.NewReader(a.Batch.Bytes)
	if err != nil {
		panic(err)
	}
	var rec batch.Record
	if _, err := rd.Next(&rec); err != nil {
		panic(err)
	}
	return string(rec.Value)
}

// examination compares an image with what had been acknowledged and begun by then.
type examination struct {
	run    *powerRun
	img    *image
	s      *bolt.Store
	acked  []*op
	begun  []*op // and not acknowledged
	faults []string
}

func (e *examination) fault(format string, args ...any) {
	if len(e.faults) < 10 {
		e.faults = append(e.faults, fmt.Sprintf(format, args...))
	}
}

// examine returns what is wrong with an image.
func (run *powerRun) examine(img *image) []string {
	e := &examination{run: run, img: img}
	for _, o := range run.ops {
		switch {
		case o.acked <= img.at:
			e.acked = append(e.acked, o)
		case o.begun <= img.at:
			e.begun = append(e.begun, o)
		}
	}
	if img.missing {
		if len(e.acked) > 0 {
			e.fault("the file may be lost when something has been acknowledged")
		}
	} else {
		e.check()
	}
	opts, now := run.opts, run.then(img.at)
	opts.Now = func() time.Time { return now }
	s, err := bolt.Open(img.dir, opts)
	if err != nil {
		e.fault("open: %v", err)
		return e.faults
	}
	e.s = s
	e.topics()
	e.ids()
	if exists(s, powerTopic) {
		for n := range powerPartitions {
			e.log(store.Partition{Topic: powerTopic, Number: n})
		}
		e.retries()
		e.states()
	}
	if err := s.Close(); err != nil {
		e.fault("close: %v", err)
	}
	e.check()
	return e.faults
}

func (e *examination) check() {
	rep, err := bolt.Check(e.img.dir, nil)
	if err != nil {
		e.fault("check: %v", err)
		return
	}
	for _, p := range rep.Problems {
		e.fault("check: %s", p)
	}
}

func exists(s *bolt.Store, topic string) bool {
	_, err := s.Topic(context.Background(), topic)
	return err == nil
}

// topics expects what was created to be there, and what was deleted not to be.
func (e *examination) topics() {
	want := map[string]bool{}
	for _, o := range e.acked {
		switch o.kind {
		case "create":
			want[o.p.Topic] = true
		case "delete":
			want[o.p.Topic] = false
		}
	}
	for _, o := range e.begun {
		delete(want, o.p.Topic) // may be either
	}
	for name, is := range want {
		if name != powerTopic && exists(e.s, name) != is {
			e.fault("topic %s is there: %v", name, !is)
		}
	}
	if want[powerTopic] && !exists(e.s, powerTopic) {
		e.fault("the topic has gone")
	}
}

// ids expects a new producer id to be new.
func (e *examination) ids() {
	id, err := e.s.AllocateProducer(context.Background(), "")
	if err != nil {
		e.fault("allocate: %v", err)
	}
	for _, o := range e.acked {
		if o.kind == "pid" && o.pid >= id.ID {
			e.fault("producer id %d is given again after %d", id.ID, o.pid)
		}
	}
}

// log reads a partition: what was acknowledged is at its place, everything is there once,
// and what was trimmed stays so.
func (e *examination) log(p store.Partition) {
	b, err := e.s.Bounds(context.Background(), p)
	if err != nil {
		e.fault("%v: %v", p, err)
		return
	}
	most := int64(0) // up to where it may have been trimmed
	for _, o := range slices.Concat(e.acked, e.begun) {
		if o.kind == "trim" && o.p == p {
			most = max(most, o.offset)
		}
	}
	if b.Earliest > most {
		e.fault("%v: trimmed to %d, nobody has asked for more than %d", p, b.Earliest, most)
	}
	at := e.batches(p, b)
	for _, o := range e.acked {
		switch {
		case o.p != p:
		case o.kind == "trim" && b.Earliest < o.offset:
			e.fault("%v: trimmed to %d, not to %d", p, b.Earliest, o.offset)
		case o.kind != "append" || o.base+int64(o.append.Batch.Count) <= b.Earliest:
		default:
			if got, ok := at[o.payload]; !ok || got != o.base {
				e.fault("%v: %.40q was acknowledged at %d, it is at %d (%v)", p, o.payload, o.base, got, ok)
			}
		}
	}
}

// batches reads a partition and tells where each batch begins.
func (e *examination) batches(p store.Partition, b store.Bounds) map[string]int64 {
	sent := map[string]*op{}
	for _, o := range slices.Concat(e.acked, e.begun) {
		if o.kind == "append" && o.p == p {
			sent[o.payload] = o
		}
	}
	at := map[string]int64{}
	for offset := b.Earliest; offset < b.HighWatermark; {
		got, err := e.s.Read(context.Background(), store.Read{Partition: p, Offset: offset, MaxRecords: 1000, MaxBytes: 1 << 20})
		if err != nil {
			e.fault("%v: read at %d: %v", p, offset, err)
			return at
		}
		for _, sb := range got.Batches {
			text := firstText(store.Append{Batch: batch.Batch{Bytes: sb.Bytes}})
			was, twice := at[text]
			switch o := sent[text]; {
			case o == nil:
				e.fault("%v: nobody has sent %.40q", p, text)
			case twice:
				e.fault("%v: %.40q is at %d and at %d", p, text, was, sb.BaseOffset)
			case string(o.append.Batch.Bytes) != string(sb.Bytes):
				e.fault("%v: the batch at %d is not what was sent", p, sb.BaseOffset)
			}
			at[text] = sb.BaseOffset
			offset = sb.LastOffset + 1
		}
	}
	return at
}

// retries does what clients do: they send again what they have no answer for, and now and
// then what has been acknowledged.
func (e *examination) retries() {
	type place struct {
		p   store.Partition
		pid int64
	}
	last := map[place]*op{}
	for _, o := range e.acked {
		switch {
		case o.kind == "append" && o.append.Producer != nil:
			last[place{o.p, o.append.Producer.ID}] = o
		case o.kind == "expire":
			delete(last, place{o.p, o.pid})
			e.expired(o)
		}
	}
	for _, o := range e.begun {
		switch {
		case o.kind == "append" && o.append.Producer != nil:
			delete(last, place{o.p, o.append.Producer.ID})
			// The clock is that of the end of the run: the producer's time may be up.
			if _, err := e.s.Append(context.Background(), o.append); err != nil && store.CodeOf(err) != store.CodeProducerExpired {
				e.fault("%v: what was not acknowledged, sent again: %v", o.p, err)
			}
		case o.kind == "expire":
			delete(last, place{o.p, o.pid})
		}
	}
	for _, o := range last {
		ack, err := e.s.Append(context.Background(), o.append)
		switch {
		case store.CodeOf(err) == store.CodeProducerExpired: // its time was up
		case err != nil || !ack.Duplicate || ack.BaseOffset != o.base:
			e.fault("%v: %.40q, stored at %d, sent again: %+v, %v", o.p, o.payload, o.base, ack, err)
		}
	}
}

// expired expects a producer that was expired not to go on as before, unless it has begun
// anew since.
func (e *examination) expired(o *op) {
	for _, later := range slices.Concat(e.acked, e.begun) {
		if later.begun >= o.begun && later.kind == "append" && later.p == o.p && later.append.Producer != nil && later.append.Producer.ID == o.pid {
			return
		}
	}
	_, err := e.s.Append(context.Background(), app(o.p, o.pid, 0, 1<<40, 1))
	if code := store.CodeOf(err); code != store.CodeProducerExpired {
		e.fault("%v: producer %d was expired and is answered %v", o.p, o.pid, err)
	}
}

// states expects the producer state to be what the log gives.
func (e *examination) states() {
	ctx := context.Background()
	if _, err := e.s.TakeSnapshots(ctx, store.SnapshotFilter{}); err != nil {
		e.fault("snapshot: %v", err)
	}
	list, err := e.s.Snapshots(ctx, store.SnapshotFilter{})
	if err != nil {
		e.fault("snapshots: %v", err)
	}
	for _, s := range list {
		diff, err := e.s.VerifySnapshot(ctx, s.Partition, s.Offset)
		if err != nil || len(diff.Differences) > 0 {
			e.fault("%v: snapshot at %d: %v, %s", s.Partition, s.Offset, err, strings.Join(diff.Differences, "; "))
		}
	}
	if n := e.s.Stats().OutOfService; n > 0 {
		e.fault("%d partitions are out of service", n)
	}
}
