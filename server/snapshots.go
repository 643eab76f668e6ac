package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
)

// takeSnapshots takes snapshots.
//
//	@Summary		Take snapshots
//	@ID				takeSnapshots
//	@Tags			snapshots
//	@Description	Snapshots the producer state of a partition, of all partitions of a topic, or of all partitions there are.
//	@Accept			json
//	@Produce		json
//	@Param			body	body		openapi.SnapshotRequest	false	"Which partitions"
//	@Success		201		{object}	openapi.SnapshotsTaken	"The snapshots"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition"
//	@Failure	413	{object}	openapi.Problem	"too-large"
//	@Failure	415	{object}	openapi.Problem	"unsupported-media-type"
//	@Failure	422	{object}	openapi.Problem	"invalid-argument"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/snapshots [post]
func (s *Server) takeSnapshots(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body openapi.SnapshotRequest
	if _, err := s.decode(r, &body, bodyRules{optional: true}); err != nil {
		return err
	}
	f, err := snapshotFilter(body.Topic, body.Partition, "/topic")
	if err != nil {
		return err
	}
	if body.Topic == nil {
		err = x.caller.MayAll(access.Admin)
	} else {
		err = x.caller.MayTopic(access.Admin, *body.Topic)
	}
	if err != nil {
		return err
	}
	taken, err := st.TakeSnapshots(r.Context(), f)
	if err != nil {
		return err
	}
	return writeJSON(x, http.StatusCreated, openapi.SnapshotsTaken{Items: snapshotBodies(taken)})
}

// listSnapshots lists snapshots.
//
//	@Summary		List snapshots
//	@ID				listSnapshots
//	@Tags			snapshots
//	@Description	Lists snapshots by topic, partition and offset.
//	@Produce		json
//	@Param			topic		query		string					false	"Those of this topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	query		int						false	"Those of this partition of the topic"	minimum(0)	maximum(1023)	example(0)
//	@Param			limit		query		int						false	"Most items to give"	minimum(1)	maximum(1000)	default(100)
//	@Param			pageToken	query		string					false	"nextPageToken of the page before"
//	@Success		200			{object}	openapi.SnapshotList	"A page of snapshots"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[consume]
//	@Router			/snapshots [get]
func (s *Server) listSnapshots(x *exchange, r *http.Request, st store.Store) error {
	q := parseQuery(r.URL.RawQuery)
	limit, after := q.page(snapshotTokens)
	var topic *string
	var partition *int
	if t, ok := q.text("topic"); ok {
		topic = &t
	}
	if n := int(q.integer("partition", -1, 0, store.MaxPartitions-1)); n >= 0 {
		partition = &n
	}
	from, ok := parseSnapshotKey(after)
	if !ok {
		q.fault("pageToken", "is not a token of this list")
	}
	if err := q.done(); err != nil {
		return err
	}
	f, err := snapshotFilter(topic, partition, "topic")
	if err != nil {
		return err
	}
	all, err := st.Snapshots(r.Context(), f)
	if err != nil {
		return err
	}
	if after != "" {
		n, found := slices.BinarySearchFunc(all, from, compareSnapshots)
		if found {
			n++
		}
		all = all[n:]
	}
	all, next := cutPage(all, limit, snapshotTokens, snapshotKey)
	return writeJSON(x, http.StatusOK, openapi.SnapshotList{Items: snapshotBodies(all), NextPageToken: next})
}

// describeSnapshot gives a snapshot with the producers in it.
//
//	@Summary		Describe a snapshot
//	@ID				describeSnapshot
//	@Tags			snapshots
//	@Description	Gives a snapshot and a page of the producers in it, by pid. Tombstones are left out.
//	@Produce		json
//	@Param			topic		path		string					true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path		int						true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			offset		path		int						true	"Offset of the snapshot"	minimum(0)	maximum(9007199254740991)	format(int64)	example(3)
//	@Param			limit		query		int						false	"Most producers to give"	minimum(1)	maximum(1000)	default(100)
//	@Param			pageToken	query		string					false	"nextPageToken of the page before"
//	@Success		200			{object}	openapi.SnapshotDetail	"The snapshot"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition, unknown-snapshot"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[consume]
//	@Router			/snapshots/{topic}/{partition}/{offset} [get]
func (s *Server) describeSnapshot(x *exchange, r *http.Request, st store.Store) error {
	q := parseQuery(r.URL.RawQuery)
	limit, after := q.pidPage()
	if err := q.done(); err != nil {
		return err
	}
	p, offset, err := snapshotParams(r)
	if err != nil {
		return err
	}
	sn, states, err := st.Snapshot(r.Context(), p, offset)
	if err != nil {
		return err
	}
	n, found := slices.BinarySearchFunc(states, after, func(s store.ProducerState, id int64) int { return cmp.Compare(s.ID, id) })
	if found {
		n++
	}
	states, next := cutPage(states[n:], limit, producerTokens, func(p *store.ProducerState) string { return decimal(p.ID) })
	b := snapshotBody(&sn)
	detail := openapi.SnapshotDetail{
		Topic: b.Topic, Partition: b.Partition, Offset: b.Offset, CreatedAt: b.CreatedAt, Reason: b.Reason,
		Producers: b.Producers, Bytes: b.Bytes, CRC: b.CRC,
		Items: make([]openapi.SnapshotProducer, len(states)), NextPageToken: next,
	}
	for i := range states {
		q := &states[i]
		detail.Items[i] = openapi.SnapshotProducer{
			PID: q.ID, Epoch: q.State.Epoch(), FirstSeq: q.State.FirstSeq(), LastSeq: q.State.LastSeq(),
			LastOffset: q.State.LastOffset(), LastTimestamp: formatMillis(q.State.LastTimestamp()),
			Recent: remembered(&q.State),
		}
	}
	return writeJSON(x, http.StatusOK, detail)
}

// deleteSnapshot removes a snapshot.
//
//	@Summary		Delete a snapshot
//	@ID				deleteSnapshot
//	@Tags			snapshots
//	@Description	Removes a snapshot. Recovery falls back to an older one, or to the log.
//	@Produce		json
//	@Param			topic		path	string	true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path	int		true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			offset		path	int		true	"Offset of the snapshot"	minimum(0)	maximum(9007199254740991)	format(int64)	example(3)
//	@Success		204			"Removed"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition, unknown-snapshot"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/snapshots/{topic}/{partition}/{offset} [delete]
func (s *Server) deleteSnapshot(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	p, offset, err := snapshotParams(r)
	if err != nil {
		return err
	}
	if err := st.DeleteSnapshot(r.Context(), p, offset); err != nil {
		return err
	}
	return noContent(x)
}

// verifySnapshot compares a snapshot with the log.
//
//	@Summary		Verify a snapshot
//	@ID				verifySnapshot
//	@Tags			snapshots
//	@Description	Rebuilds the producer state from the log up to the snapshot's offset and compares. Differences are sentences, one a producer.
//	@Produce		json
//	@Param			topic		path		string							true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path		int								true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			offset		path		int								true	"Offset of the snapshot"	minimum(0)	maximum(9007199254740991)	format(int64)	example(3)
//	@Success		200			{object}	openapi.SnapshotVerification	"The comparison"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition, unknown-snapshot"
//	@Failure	413	{object}	openapi.Problem	"too-large"
//	@Failure	415	{object}	openapi.Problem	"unsupported-media-type"
//	@Failure	500	{object}	openapi.Problem	"records-damaged"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[admin]
//	@Router			/snapshots/{topic}/{partition}/{offset}/verify [post]
func (s *Server) verifySnapshot(x *exchange, r *http.Request, st store.Store) error {
	if err := s.noInput(r); err != nil {
		return err
	}
	p, offset, err := snapshotParams(r)
	if err != nil {
		return err
	}
	diff, err := st.VerifySnapshot(r.Context(), p, offset)
	if err != nil {
		return err
	}
	return writeJSON(x, http.StatusOK, openapi.SnapshotVerification{Match: len(diff.Differences) == 0, Differences: diff.Differences})
}

func snapshotParams(r *http.Request) (store.Partition, int64, error) {
	offset, err := integerParam(r, "offset")
	if err != nil {
		return store.Partition{}, 0, err
	}
	p, err := partitionParam(r)
	return p, offset, err
}

// snapshotFilter picks by topic and partition. The name is where the topic is missing.
func snapshotFilter(topic *string, partition *int, name string) (store.SnapshotFilter, error) {
	switch {
	case topic == nil && partition != nil:
		return store.SnapshotFilter{}, malformed(name, "is missing; a partition needs its topic")
	case topic == nil:
		return store.SnapshotFilter{}, nil
	case !store.ValidTopicName(*topic):
		return store.SnapshotFilter{}, unknownTopic(*topic)
	}
	return store.SnapshotFilter{Topic: *topic, Partition: partition}, nil
}

// snapshotKey is a snapshot's place in the list, for page tokens.
func snapshotKey(s *store.Snapshot) string {
	return fmt.Sprintf("%s/%d/%d", s.Partition.Topic, s.Partition.Number, s.Offset)
}

func parseSnapshotKey(key string) (store.Snapshot, bool) {
	if key == "" {
		return store.Snapshot{}, true
	}
	parts := strings.Split(key, "/")
	if len(parts) != 3 { // topic, partition, offset
		return store.Snapshot{}, false
	}
	number, ok1 := parseInteger(parts[1])
	offset, ok2 := parseInteger(parts[2])
	return store.Snapshot{Partition: store.Partition{Topic: parts[0], Number: int(number)}, Offset: offset}, ok1 && ok2
}

func compareSnapshots(a, b store.Snapshot) int {
	return cmp.Or(
		cmp.Compare(a.Partition.Topic, b.Partition.Topic),
		cmp.Compare(a.Partition.Number, b.Partition.Number),
		cmp.Compare(a.Offset, b.Offset),
	)
}

func snapshotBodies(list []store.Snapshot) []openapi.Snapshot {
	out := make([]openapi.Snapshot, len(list))
	for i := range list {
		out[i] = snapshotBody(&list[i])
	}
	return out
}

func snapshotBody(s *store.Snapshot) openapi.Snapshot {
	return openapi.Snapshot{
		Topic: s.Partition.Topic, Partition: s.Partition.Number, Offset: s.Offset,
		CreatedAt: formatTime(s.CreatedAt), Reason: string(s.Reason),
		Producers: s.Producers, Bytes: s.Bytes, CRC: formatCRC(s.CRC),
	}
}

func formatCRC(crc uint32) string { return fmt.Sprintf("%08x", crc) }
