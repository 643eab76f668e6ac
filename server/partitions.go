package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// describePartition describes a partition.
//
//	@Summary		Describe a partition
//	@ID				describePartition
//	@Tags			partitions
//	@Description	Gives the ends of the partition, its segments, and how many producers it knows.
//	@Produce		json
//	@Param			topic		path		string				true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path		int					true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Success		200			{object}	openapi.Partition	"The partition"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[produce]
//	@Security	bearer[consume]
//	@Router			/topics/{topic}/partitions/{partition} [get]
func (s *Server) describePartition(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	p, err := partitionParam(r)
	if err != nil {
		return err
	}
	info, err := st.Partition(r.Context(), p)
	if err != nil {
		return err
	}
	return writeJSON(x, http.StatusOK, partitionBody(&info))
}

// rollPartition closes the active segment.
//
//	@Summary		Roll a partition
//	@ID				rollPartition
//	@Tags			partitions
//	@Description	Closes the active segment and opens a new one, with a snapshot of producer state between them. An empty segment is left as it is.
//	@Produce		json
//	@Param			topic		path		string				true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path		int					true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Success		200			{object}	openapi.Partition	"The partition as it is now"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition"
//	@Failure	413	{object}	openapi.Problem	"too-large"
//	@Failure	415	{object}	openapi.Problem	"unsupported-media-type"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/topics/{topic}/partitions/{partition}/roll [post]
func (s *Server) rollPartition(x *exchange, r *http.Request, st store.Store) error {
	if err := s.noInput(r); err != nil {
		return err
	}
	p, err := partitionParam(r)
	if err != nil {
		return err
	}
	info, err := st.Roll(r.Context(), p)
	if err != nil {
		return err
	}
	return writeJSON(x, http.StatusOK, partitionBody(&info))
}

// listBatches lists batch headers.
//
//	@Summary		List batch headers
//	@ID				listBatches
//	@Tags			partitions
//	@Description	Lists the headers of stored batches, beginning with the batch that holds the offset.
//	@Produce		json
//	@Param			topic		path		string					true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path		int						true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			offset		query		string					false	"An offset, earliest, latest, or -N for N below the end"	default(earliest)
//	@Param			limit		query		int						false	"Most items to give"	minimum(1)	maximum(1000)	default(100)
//	@Success		200			{object}	openapi.BatchHeaderList	"Batch headers"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition"
//	@Failure	410	{object}	openapi.Problem	"records-trimmed"
//	@Failure	416	{object}	openapi.Problem	"offset-out-of-range"
//	@Failure	500	{object}	openapi.Problem	"records-damaged"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[consume]
//	@Router			/topics/{topic}/partitions/{partition}/batches [get]
func (s *Server) listBatches(x *exchange, r *http.Request, st store.Store) error {
	q := parseQuery(r.URL.RawQuery)
	from := q.position()
	limit := int(q.integer("limit", defaultPage, 1, maxPage))
	if err := q.done(); err != nil {
		return err
	}
	p, err := partitionParam(r)
	if err != nil {
		return err
	}
	var headers []store.BatchHeader
	at, err := from.resolve(r.Context(), st, p, func(offset int64) (err error) {
		headers, err = st.Headers(r.Context(), p, offset, limit)
		return err
	})
	if err != nil {
		return err
	}
	bounds, err := st.Bounds(r.Context(), p) // after the headers, so that it is not below them
	if err != nil {
		return err
	}
	list := openapi.BatchHeaderList{Items: make([]openapi.BatchHeader, len(headers)), NextOffset: at, HighWatermark: bounds.HighWatermark}
	for i := range headers {
		list.Items[i] = headerBody(&headers[i])
		list.NextOffset = headers[i].LastOffset + 1
	}
	return writeJSON(x, http.StatusOK, list)
}

// trimRecords removes the oldest records.
//
//	@Summary		Trim a partition
//	@ID				trimRecords
//	@Tags			records
//	@Description	Removes all records below an offset. Producer state is kept: a batch that was stored once is a duplicate for ever.
//	@Produce		json
//	@Param			topic		path		string					true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path		int						true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			before		query		int						true	"First offset that is kept"	minimum(0)	maximum(9007199254740991)	format(int64)	example(3)
//	@Success		200			{object}	openapi.TrimResponse	"Where the partition begins now"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition"
//	@Failure	416	{object}	openapi.Problem	"offset-out-of-range"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/topics/{topic}/partitions/{partition}/records [delete]
func (s *Server) trimRecords(x *exchange, r *http.Request, st store.Store) error {
	q := parseQuery(r.URL.RawQuery)
	before := q.integer("before", -1, 0, sequence.Max)
	if before < 0 && len(q.errs) == 0 {
		q.fault("before", "is missing")
	}
	if err := q.done(); err != nil {
		return err
	}
	p, err := partitionParam(r)
	if err != nil {
		return err
	}
	earliest, err := st.Trim(r.Context(), p, before)
	if err != nil {
		return err
	}
	return writeJSON(x, http.StatusOK, openapi.TrimResponse{EarliestOffset: earliest})
}

// position is where a read begins: an offset, or a place relative to the ends.
type position struct {
	offset   int64 // when fromStart and fromEnd are unset
	earliest bool
	fromEnd  bool // offset below the end
}

// position takes the parameter offset.
func (q *query) position() position {
	v, ok := q.text("offset")
	switch {
	case !ok, v == "earliest":
		return position{earliest: true}
	case v == "latest":
		return position{fromEnd: true}
	}
	digits, back := strings.CutPrefix(v, "-")
	n, ok := parseInteger(digits)
	if !ok || (back && n == 0) {
		q.fault("offset", "must be an offset, earliest, latest, or -N for N below the end")
	}
	return position{offset: n, fromEnd: back}
}

// resolve calls read with the offset that p is. A place relative to the ends is looked
// up again when trimming was faster than the read.
func (p position) resolve(ctx context.Context, st store.Store, part store.Partition, read func(offset int64) error) (int64, error) {
	const attempts = 5
	for i := 1; ; i++ {
		offset := p.offset
		if p.earliest || p.fromEnd {
			b, err := st.Bounds(ctx, part)
			if err != nil {
				return 0, err
			}
			offset = b.Earliest
			if p.fromEnd {
				offset = max(b.Earliest, b.HighWatermark-p.offset)
			}
		}
		err := read(offset)
		if store.CodeOf(err) == store.CodeRecordsTrimmed && (p.earliest || p.fromEnd) && i < attempts {
			continue
		}
		return offset, err
	}
}

func partitionBody(info *store.PartitionInfo) openapi.Partition {
	segments := make([]openapi.Segment, len(info.Segments))
	for i, g := range info.Segments {
		segments[i] = openapi.Segment{
			BaseOffset: g.BaseOffset, NextOffset: g.NextOffset, Bytes: g.Bytes,
			Batches: g.Batches, CreatedAt: formatTime(g.CreatedAt),
		}
	}
	return openapi.Partition{
		Topic: info.Topic, Partition: info.Number,
		EarliestOffset: info.Earliest, NextOffset: info.HighWatermark,
		Bytes: info.Bytes, Segments: segments, Producers: info.Producers, Parked: info.Parked,
	}
}

func headerBody(h *store.BatchHeader) openapi.BatchHeader {
	b := openapi.BatchHeader{
		BaseOffset: h.BaseOffset, LastOffset: h.LastOffset, Count: h.Count(), Bytes: h.Bytes,
		AppendedAt: formatTime(h.AppendedAt), CRC: formatCRC(h.CRC),
	}
	if p := h.Producer; p != nil {
		b.PID, b.Epoch, b.BaseSeq = &p.ID, &p.Epoch, &p.BaseSeq
	}
	return b
}
