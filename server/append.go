package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// appendBatch appends one batch, whole or not at all.
//
//	@Summary		Append a batch
//	@ID				appendBatch
//	@Tags			records
//	@Description	Appends one batch, whole or not at all. With pid, epoch and baseSeq the append is idempotent: the same batch sent again is stored once and answered alike, with duplicate set. Without them it is at-least-once.
//	@Description	The body is a JSON batch; NDJSON, one record object a line; a binary batch (application/vnd.oncelog.batch); or, under any other media type, the value of one record. The last three take pid, epoch and baseSeq from the query or from the Producer headers. Bodies may be coded with gzip or zstd.
//	@Accept			json,application/x-ndjson,application/vnd.oncelog.batch,*/*
//	@Produce		json
//	@Param			topic				path		string					true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition			path		int						true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			pid					query		int						false	"Producer id, for bodies that are not JSON"			minimum(0)	maximum(9007199254740991)	format(int64)
//	@Param			epoch				query		int						false	"Producer epoch, for bodies that are not JSON"		minimum(0)	maximum(9007199254740991)	format(int64)
//	@Param			baseSeq				query		int						false	"Sequence of the first record, for bodies that are not JSON"	minimum(0)	maximum(9007199254740991)	format(int64)
//	@Param			Producer-Id			header		int						false	"Like the query parameter pid"		minimum(0)	maximum(9007199254740991)	format(int64)
//	@Param			Producer-Epoch		header		int						false	"Like the query parameter epoch"	minimum(0)	maximum(9007199254740991)	format(int64)
//	@Param			Producer-Seq		header		int						false	"Like the query parameter baseSeq"	minimum(0)	maximum(9007199254740991)	format(int64)
//	@Param			Record-Key			header		string					false	"Key of a record whose value is the body"
//	@Param			Prefer				header		string					false	"wait=0: do not hold a batch that is ahead of its predecessors"	example(wait=0)
//	@Param			body				body		openapi.AppendRequest	true	"The batch"
//	@Success		200					{object}	openapi.AppendResponse	"Stored, now or before"
//	@Header			200					{string}	Idempotent-Replayed		"true for a duplicate"
//	@Failure	400	{object}	openapi.Problem	"malformed-request, idempotence-required"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition, unknown-producer-id"
//	@Failure	409	{object}	openapi.Problem	"out-of-order-sequence, sequence-overlap, producer-fenced, producer-expired, topic-deleting"
//	@Failure	413	{object}	openapi.Problem	"too-large"
//	@Failure	415	{object}	openapi.Problem	"unsupported-media-type"
//	@Failure	422	{object}	openapi.Problem	"invalid-argument, sequence-reused"
//	@Failure	503	{object}	openapi.Problem	"overloaded, draining, storage-failed"
//	@Failure	504	{object}	openapi.Problem	"commit-timeout"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[produce]
//	@Router			/topics/{topic}/partitions/{partition}/batches [post]
func (s *Server) appendBatch(x *exchange, r *http.Request, st store.Store) error {
	if s.draining.Err() != nil {
		return &problem{code: string(store.CodeDraining), detail: "the server is shutting down"}
	}
	p, err := partitionParam(r)
	if err != nil && store.CodeOf(err) != store.CodeUnknownTopic {
		return err
	}
	known := err
	a, err := s.decodeAppend(r)
	switch {
	case isCode(err, store.CodeTooLarge): // comes after topic and partition
		if known == nil {
			known = checkPartition(r.Context(), st, p)
		}
		if known != nil {
			return known
		}
		return err
	case err != nil:
		return err
	case known != nil:
		return known
	}
	a.Partition, a.Principal = p, x.caller.Name
	preferred := a.NoHold
	done, may := x.meter.Hold()
	defer done()
	a.NoHold = a.NoHold || !may
	ack, err := s.commit(r.Context(), st, a)
	if err != nil {
		return err
	}
	if preferred {
		x.Header()["Preference-Applied"] = preferenceNoWait
	}
	return writeAck(x, p, ack)
}

// commit asks the engine for the append, for as long as the client is there and the
// commit timeout allows, and creates the topic if that is switched on.
func (s *Server) commit(ctx context.Context, st store.Store, a store.Append) (store.Ack, error) {
	limited, cancel := context.WithTimeout(ctx, s.options.CommitTimeout)
	defer cancel()
	ack, err := st.Append(limited, a)
	if s.options.AutoCreateTopics > 0 && store.CodeOf(err) == store.CodeUnknownTopic {
		if err = s.autoCreate(limited, st, a); err == nil {
			ack, err = st.Append(limited, a)
		}
	}
	if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return ack, &problem{
			code:   string(store.CodeCommitTimeout),
			detail: "the commit was not confirmed within " + s.options.CommitTimeout.String(),
			cause:  err,
		}
	}
	return ack, err
}

// autoCreate creates the topic of an append. An append that is refused changes
// nothing, so it first makes sure that a new topic would take this one.
func (s *Server) autoCreate(ctx context.Context, st store.Store, a store.Append) error {
	config, n := store.DefaultConfig(), s.options.AutoCreateTopics
	if a.Partition.Number >= n {
		return unknownPartition(a.Partition)
	}
	if err := store.CheckSize(config, &a.Batch); err != nil {
		return err
	}
	if err := st.Ready(); err != nil {
		return err
	}
	if a.Producer != nil {
		owner, err := st.ProducerOwner(ctx, a.Producer.ID)
		if err == nil && owner != a.Principal {
			err = store.NotOwner(a.Producer.ID)
		}
		if err != nil {
			return err
		}
		var nothing sequence.State
		at := a.Attempt()
		if v := sequence.Check(&nothing, at); v.Kind != sequence.Append {
			return store.Refusal(&nothing, v, at)
		}
	}
	s.topicChanges.Lock()
	defer s.topicChanges.Unlock()
	_, err := st.CreateTopic(ctx, a.Partition.Topic, n, config)
	if store.CodeOf(err) == store.CodeTopicExists { // another append was first
		return nil
	}
	return err
}

// writeAck writes an openapi.AppendResponse. It is spelled out because every append
// ends here.
func writeAck(x *exchange, p store.Partition, a store.Ack) error {
	h := x.Header()
	h["Content-Type"] = typeJSON
	if a.Duplicate {
		h["Idempotent-Replayed"] = valueTrue
	}
	b := append(x.scratch[:0], `{"topic":"`...)
	b = append(b, p.Topic...) // of characters that need no quoting
	b = append(b, `","partition":`...)
	b = strconv.AppendInt(b, int64(p.Number), 10)
	if a.BaseOffset < 0 {
		b = append(b, `,"baseOffset":null,"lastOffset":null`...)
	} else {
		b = append(b, `,"baseOffset":`...)
		b = strconv.AppendInt(b, a.BaseOffset, 10)
		b = append(b, `,"lastOffset":`...)
		b = strconv.AppendInt(b, a.LastOffset, 10)
	}
	if a.NextSeq >= 0 {
		b = append(b, `,"nextSeq":`...)
		b = strconv.AppendInt(b, a.NextSeq, 10)
	}
	b = append(b, `,"duplicate":`...)
	b = strconv.AppendBool(b, a.Duplicate)
	b = append(b, `,"appendedAt":`...)
	b = appendTimeOrNull(b, a.AppendedAt)
	b = append(b, '}', '\n')
	x.WriteHeader(http.StatusOK)
	_, err := x.Write(b)
	return gone(err)
}

func appendTimeOrNull(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, timeLayout)
	return append(b, '"')
}

// isCode reports whether err is a problem or an engine's error of the code.
func isCode(err error, c store.Code) bool {
	if p, ok := errors.AsType[*problem](err); ok {
		return p.code == string(c)
	}
	return err != nil && store.CodeOf(err) == c
}

// noHold reports whether the client prefers (RFC 7240) not to wait.
func noHold(r *http.Request) bool {
	for _, field := range r.Header["Prefer"] {
		for part := range strings.SplitSeq(field, ",") {
			name, value, _ := strings.Cut(part, "=")
			value, _, _ = strings.Cut(value, ";")
			if strings.EqualFold(strings.TrimSpace(name), "wait") && strings.Trim(value, ` "`) == "0" {
				return true
			}
		}
	}
	return false
}
