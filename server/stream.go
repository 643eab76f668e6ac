package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/oncelog/oncelog/store"
)

// Bounds of one look into the partition while following it: what a stream holds in
// memory while it writes to a slow client.
const (
	followRecords = 1000
	followBytes   = 256 << 10
)

// follow answers with an event stream: every record from the position on, then each
// new one as it becomes durable. It ends when the client goes, the server drains, the
// topic is deleted, or trimming overtakes it; the client then asks again with
// Last-Event-ID, and gets the problem if there is one.
func (s *Server) follow(x *exchange, r *http.Request, st store.Store, q readRequest) error {
	if err := resumeFrom(r, &q); err != nil {
		return err
	}
	q.limit, q.maxBytes = followRecords, followBytes
	ctx, done := s.untilDrain(r.Context())
	defer done()
	if s.draining.Err() != nil {
		return &problem{code: string(store.CodeDraining), detail: "the server is shutting down"}
	}
	q.wait = 0
	recs, from, err := s.fetch(ctx, x, st, q)
	if err != nil {
		return err
	}
	h := x.Header()
	h["Content-Type"] = []string{mediaEventStream}
	h["Cache-Control"] = noStore
	h["X-Accel-Buffering"] = []string{"no"} // nginx would hold events back
	x.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	s.streaming.Add(1)
	defer s.streaming.Add(-1)
	w := s.newRecordWriter(x, q)
	defer w.close()
	w.buf = append(w.buf, ": from "+decimal(from)+"\n\n"...)
	for {
		if err := w.event(&recs, from); err != nil {
			return err
		}
		if n := len(recs.Batches); n > 0 {
			from = recs.Batches[n-1].LastOffset + 1
		}
		recs.Batches = nil
		x.release()
		if !s.waitForRecords(ctx, st, q, from, w) {
			return nil
		}
		x.meter.Pace(ctx)
		topicID := recs.TopicID
		recs, err = s.read(ctx, x, st, q, from)
		if err != nil {
			return s.endOfStream(err)
		}
		if recs.TopicID != topicID { // deleted and created again: its offsets are others
			return nil
		}
	}
}

// event writes all records of recs from an offset on, and sends them on their way.
func (w *recordWriter) event(recs *store.Records, from int64) error {
	end := from
	if n := len(recs.Batches); n > 0 {
		end = recs.Batches[n-1].LastOffset + 1
	}
	if err := w.records(recs, from, end); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return gone(err)
	}
	return nil
}

// waitForRecords returns true when there is a record at offset from, and false when
// the stream is over. Meanwhile it writes a comment now and then, so that neither side
// nor anything between them takes the connection for dead.
func (s *Server) waitForRecords(ctx context.Context, st store.Store, q readRequest, from int64, w *recordWriter) bool {
	for {
		beat, cancel := context.WithTimeout(ctx, s.options.Heartbeat)
		err := st.Wait(beat, q.partition, from)
		late := beat.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			return true
		case !late || !isContext(err):
			return false
		}
		w.buf = append(w.buf, ": still here\n\n"...)
		if w.event(&store.Records{}, from) != nil {
			return false
		}
	}
}

// endOfStream says whether a failed read in the middle of a stream is worth a line in
// the log: not when the client, the server or the topic has gone, or trimming was
// faster.
func (s *Server) endOfStream(err error) error {
	switch store.CodeOf(err) {
	case store.CodeUnknownTopic, store.CodeUnknownPartition, store.CodeRecordsTrimmed, store.CodeTopicDeleting,
		store.CodeOffsetOutOfRange, store.CodeDraining:
		return nil
	default:
		if isContext(err) {
			return nil
		}
		return err
	}
}

// resumeFrom lets Last-Event-ID override the offset: the client has seen that record.
func resumeFrom(r *http.Request, q *readRequest) error {
	v := r.Header["Last-Event-Id"]
	if len(v) == 0 || v[0] == "" {
		return nil
	}
	n, ok := parseInteger(strings.TrimSpace(v[0]))
	if !ok || len(v) > 1 {
		return malformed("Last-Event-ID", "must be the offset of a record")
	}
	q.from = position{offset: n + 1}
	return nil
}
