package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

const (
	viewLines     = 12 // producers of a partition that are shown for having written lately
	viewRefused   = 4  // and for having been refused
	viewCandidate = 64 // a producer that is shown stays while it is among the latest of so many
	viewProducer  = 64 // partitions of a producer
	viewIncidents = 8  // of one line
)

// view is what a stream looks at besides the server as a whole: a partition or a
// producer.
type view struct {
	partition store.Partition
	pid       int64 // −1: look at the partition
	last      []byte
	shown     map[int64]bool // producers of the partition, so that a busy page stands still
}

// view takes the parameters topic and partition, or pid; nil when there are none.
func (q *query) view() *view {
	topic, hasTopic := q.text("topic")
	number := q.integer("partition", -1, 0, store.MaxPartitions-1)
	pid := q.integer("pid", -1, 0, sequence.Max)
	switch {
	case hasTopic != (number >= 0):
		q.fault("partition", "and topic come together")
	case hasTopic && pid >= 0:
		q.fault("pid", "cannot be given together with topic and partition")
	case hasTopic && !store.ValidTopicName(topic):
		q.fault("topic", "is no topic name")
	case hasTopic, pid >= 0:
		return &view{partition: store.Partition{Topic: topic, Number: int(number)}, pid: pid}
	}
	return nil
}

// changes gives an event if what is looked at has changed. Nothing is told of what does
// not exist, or not yet.
func (v *view) changes(ctx context.Context, s *Server) []byte {
	st, err := s.store()
	if err != nil {
		return nil
	}
	var body any
	kind := "partition"
	if v.pid >= 0 {
		kind = "producer"
		body, err = v.ofProducer(ctx, st)
	} else {
		body, err = v.ofPartition(ctx, st)
	}
	if err != nil {
		return nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil
	}
	return v.unless(kind, data)
}

func (v *view) ofPartition(ctx context.Context, st store.Store) (*openapi.PartitionEvent, error) {
	info, err := st.Partition(ctx, v.partition)
	if err != nil {
		return nil, err
	}
	lines, err := v.lines(ctx, st)
	if err != nil {
		return nil, err
	}
	return &openapi.PartitionEvent{
		Topic: info.Topic, Partition: info.Number, EarliestOffset: info.Earliest, NextOffset: info.HighWatermark,
		Bytes: info.Bytes, Segments: len(info.Segments), Producers: info.Producers, Parked: info.Parked, Lines: lines,
	}, nil
}

// lines picks the producers that wrote last, those that are shown already before others,
// and those that were refused last.
func (v *view) lines(ctx context.Context, st store.Store) ([]openapi.ProducerLine, error) {
	recent, err := st.RecentProducers(ctx, v.partition, viewCandidate)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(recent, func(a, b store.ProducerState) int {
		switch {
		case v.shown[a.ID] == v.shown[b.ID]:
			return 0
		case v.shown[a.ID]:
			return -1
		}
		return 1
	})
	recent = recent[:min(len(recent), viewLines)]
	v.shown = map[int64]bool{}
	for i := range recent {
		v.shown[recent[i].ID] = true
	}
	incidents := st.Incidents(0, maxIncidents)
	for _, in := range slices.Backward(incidents) {
		if in.Partition != v.partition || in.Code == "" || v.shown[in.Producer.ID] || len(recent) >= viewLines+viewRefused {
			continue
		}
		v.shown[in.Producer.ID] = true
		if state, err := st.PartitionProducer(ctx, v.partition, in.Producer.ID); err == nil {
			recent = append(recent, state)
		}
	}
	slices.SortFunc(recent, func(a, b store.ProducerState) int { return cmp.Compare(a.ID, b.ID) })
	return lineBodies(st, recent, incidents), nil
}

func (v *view) ofProducer(ctx context.Context, st store.Store) (*openapi.ProducerEvent, error) {
	states, err := st.Producer(ctx, v.pid)
	if err != nil {
		return nil, err
	}
	return &openapi.ProducerEvent{
		PID: v.pid, Partitions: len(states), Rejected: incidentBodies(st.Rejections(v.pid)),
		Lines: lineBodies(st, states[:min(len(states), viewProducer)], st.Incidents(0, maxIncidents)),
	}, nil
}

// lineBodies puts producers in partitions together with what happened to them lately.
func lineBodies(st store.Store, states []store.ProducerState, incidents []store.Incident) []openapi.ProducerLine {
	latest := map[producerAt][]store.Incident{}
	add := func(in *store.Incident) {
		at := producerAt{in.Partition, in.Producer.ID}
		if of := latest[at]; len(of) < viewIncidents && !slices.ContainsFunc(of, func(o store.Incident) bool { return o.Number == in.Number }) {
			latest[at] = append(of, *in)
		}
	}
	for i := range slices.Backward(incidents) {
		add(&incidents[i])
	}
	out := make([]openapi.ProducerLine, len(states))
	for i := range states {
		p := &states[i]
		// Refusals are remembered for longer than the rest.
		rejections := st.Rejections(p.ID)
		for r := range rejections {
			add(&rejections[r])
		}
		out[i] = openapi.ProducerLine{
			PartitionProducer: producerBody(st, p), Incidents: incidentBodies(latest[producerAt{p.Partition, p.ID}]),
		}
	}
	return out
}
