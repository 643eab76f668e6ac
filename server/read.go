package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"time"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
)

const (
	defaultReadRecords = 100
	defaultReadBytes   = 1 << 20
	maxWait            = 60_000 // milliseconds
)

// readRequest is a read as it was asked for.
type readRequest struct {
	partition store.Partition
	from      position
	limit     int
	maxBytes  int
	wait      time.Duration
	base64    bool
	media     string
}

// readRecords reads records.
//
//	@Summary		Read records
//	@ID				readRecords
//	@Tags			records
//	@Description	Reads records from an offset on, as a JSON list, as NDJSON (one record a line), or as an event stream that follows the partition for ever: the id of an event is the record's offset, so that Last-Event-ID resumes behind it, and limit, maxBytes and waitMs do not apply. Each value comes back in the form it was stored in. A raw body comes back as valueText when its media type is text/*, application/json, another +json type or application/x-www-form-urlencoded, in UTF-8, and as valueBase64 otherwise.
//	@Description	As application/vnd.oncelog.batch come the batches as they are stored, undecoded, the fastest form (openapi/BATCH.md, section Reading). Such an answer begins and ends with whole batches: the first may begin below offset, and the last one may exceed limit.
//	@Description	Every answer says in the headers Next-Offset, High-Watermark and Earliest-Offset what the members of the JSON list say, except the event stream.
//	@Produce		json,application/x-ndjson,text/event-stream,application/vnd.oncelog.batch
//	@Param			topic			path		string				true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition		path		int					true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			offset			query		string				false	"An offset, earliest, latest, or -N for N below the end"	default(earliest)
//	@Param			limit			query		int					false	"Most records to give"	minimum(1)	maximum(10000)	default(100)
//	@Param			maxBytes		query		int					false	"Most bytes of keys, values and headers to give; at least one record is given"	minimum(1)	maximum(67108864)	default(1048576)
//	@Param			waitMs			query		int					false	"How long to wait for a record at the end"	minimum(0)	maximum(60000)	default(0)
//	@Param			values			query		string				false	"base64: every value as valueBase64"	Enums(base64)
//	@Param			Last-Event-ID	header		int					false	"Event streams only: the offset of the last record seen; overrides offset"	minimum(0)	maximum(9007199254740991)	format(int64)
//	@Param			If-None-Match	header		string				false	"ETag that the client has"
//	@Success		200				{object}	openapi.RecordList	"Records"
//	@Header			200				{string}	ETag				"Of a read that ended below the high watermark"
//	@Header			200				{integer}	Next-Offset			"Where to go on"
//	@Header			200				{integer}	High-Watermark		"Offset that the next record will get"
//	@Header			200				{integer}	Earliest-Offset		"First offset that is kept"
//	@Success		304				"Still as the client has it"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition"
//	@Failure	406	{object}	openapi.Problem	"not-acceptable"
//	@Failure	410	{object}	openapi.Problem	"records-trimmed"
//	@Failure	416	{object}	openapi.Problem	"offset-out-of-range"
//	@Failure	500	{object}	openapi.Problem	"records-damaged"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[consume]
//	@Security	ticket
//	@Router			/topics/{topic}/partitions/{partition}/records [get]
func (s *Server) readRecords(x *exchange, r *http.Request, st store.Store) error {
	q, err := parseRead(r)
	if err != nil {
		return err
	}
	x.Header()["Vary"] = append(x.Header()["Vary"], "Accept")
	if q.media == mediaEventStream {
		return s.follow(x, r, st, q)
	}
	recs, from, err := s.fetch(r.Context(), x, st, q)
	if err != nil {
		return err
	}
	var end int64
	if q.media == batch.ContentType {
		end = endOfBatches(&recs, from)
	} else if end, err = cutRecords(&recs, from, q); err != nil {
		return err
	}
	h := x.Header()
	h["Next-Offset"] = []string{decimal(end)}
	h["High-Watermark"] = []string{decimal(recs.HighWatermark)}
	h["Earliest-Offset"] = []string{decimal(recs.Earliest)}
	if end >= recs.HighWatermark {
		h["Cache-Control"] = noStore
	} else {
		// No max-age: a topic created again under the name would be answered from the
		// cache, and only asking again shows that the tag is of another topic.
		h["Cache-Control"] = privateImmutable
		tag := recordsTag(&recs, q, from, end)
		h["Etag"] = []string{tag}
		if matchesTag(r.Header["If-None-Match"], tag) {
			x.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	h["Content-Type"] = []string{q.media}
	if q.media == batch.ContentType {
		h["Content-Length"] = []string{decimal(lengthOf(&recs))}
	}
	x.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	w := s.newRecordWriter(x, q)
	defer w.close()
	switch q.media {
	case mediaJSON:
		return w.list(&recs, from, end)
	case batch.ContentType:
		return w.batches(&recs)
	}
	if err := w.records(&recs, from, end); err != nil {
		return err
	}
	return w.flush()
}

func parseRead(r *http.Request) (readRequest, error) {
	q := parseQuery(r.URL.RawQuery)
	req := readRequest{
		from:     q.position(),
		limit:    int(q.integer("limit", defaultReadRecords, 1, store.MaxReadRecords)),
		maxBytes: int(q.integer("maxBytes", defaultReadBytes, 1, store.MaxReadBytes)),
		wait:     time.Duration(q.integer("waitMs", 0, 0, maxWait)) * time.Millisecond,
	}
	if v, ok := q.text("values"); ok {
		req.base64 = true
		if v != "base64" {
			q.fault("values", "must be base64")
		}
	}
	var err error
	if err = q.done(); err != nil {
		return req, err
	}
	if req.media, err = readMedia(r); err != nil {
		return req, err
	}
	req.partition, err = partitionParam(r)
	return req, err
}

// fetch reads, and at the end of the partition waits for records as long as was asked.
func (s *Server) fetch(ctx context.Context, x *exchange, st store.Store, q readRequest) (recs store.Records, from int64, err error) {
	read := func(offset int64) (err error) {
		recs, err = s.read(ctx, x, st, q, offset)
		return err
	}
	from, err = q.from.resolve(ctx, st, q.partition, read)
	if err != nil || len(recs.Batches) > 0 || q.wait == 0 {
		return recs, from, err
	}
	until, done := s.untilDrain(ctx)
	defer done()
	until, cancel := context.WithTimeout(until, q.wait)
	defer cancel()
	x.release() // what waits holds nothing
	err = st.Wait(until, q.partition, from)
	switch {
	case ctx.Err() != nil:
		return recs, from, ctx.Err()
	case until.Err() != nil && (err == nil || isContext(err)):
		// Too late, or draining: the client gets what there is.
	case err != nil:
		return recs, from, err
	}
	return recs, from, read(from)
}

// usualRead is what a read may hold in any case: the default of maxBytes, and a batch of
// the default size goes beyond it at most.
const usualRead = defaultReadBytes + 1<<20

// read reads within what answers may hold. When memory is short a large read gets less
// than it has asked for, and has to wait for a moment.
func (s *Server) read(ctx context.Context, x *exchange, st store.Store, q readRequest, offset int64) (store.Records, error) {
	x.answer.budget = s.readMemory
	r := store.Read{Partition: q.partition, Offset: offset, MaxRecords: q.limit, MaxBytes: q.maxBytes, Buffer: x.buffer()}
	if r.MaxBytes > defaultReadBytes && !x.answer.grow(int64(r.MaxBytes)+1<<20) {
		r.MaxBytes = defaultReadBytes
	}
	err := x.answer.await(ctx, min(int64(r.MaxBytes)+1<<20, usualRead))
	var recs store.Records
	size := int64(0)
	if err == nil {
		recs, err = st.Read(ctx, r)
		if recs.Buffer != nil {
			*x.lent = recs.Buffer
		}
		for i := range recs.Batches {
			size += int64(len(recs.Batches[i].Bytes))
		}
		size = max(size, int64(cap(*x.lent))) // it is held whole, however little is in it
	}
	if err == nil {
		err = x.answer.await(ctx, size) // a batch may be larger than was thought
	}
	if errors.Is(err, errNoRoom) {
		err = overloaded("too many answers are in memory")
	}
	if err != nil {
		recs, size = store.Records{}, 0
	}
	x.answer.shrink(size)
	return recs, err
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// cutRecords finds where an answer ends: behind the last record that limit and maxBytes
// allow, of which there is at least one.
func cutRecords(recs *store.Records, from int64, q readRequest) (end int64, err error) {
	if end, ok := wholeBatches(recs, from, q); ok {
		return end, nil
	}
	end = from
	var count, bytes int
	var rd batch.Reader
	var rec batch.Record
	for i := range recs.Batches {
		b := &recs.Batches[i]
		if err := rd.ResetVerified(b.Bytes); err != nil {
			return 0, err
		}
		for offset := b.BaseOffset; ; offset++ {
			ok, err := rd.Next(&rec)
			if err != nil {
				return 0, err
			}
			if !ok {
				break
			}
			if offset < from {
				continue
			}
			bytes += rec.PayloadBytes()
			if count == q.limit || (count > 0 && bytes > q.maxBytes) {
				return end, nil
			}
			count++
			end = offset + 1
		}
	}
	return end, nil
}

// wholeBatches is cutRecords for the frequent case that nothing is to be cut, as can be
// told without decoding: keys, values and headers take less than the encoded batches.
func wholeBatches(recs *store.Records, from int64, q readRequest) (end int64, ok bool) {
	end = from
	var bytes int
	var rd batch.Reader
	for i := range recs.Batches {
		if rd.ResetVerified(recs.Batches[i].Bytes) != nil { // no batch: it is to be found before the answer begins
			return 0, false
		}
		bytes += len(recs.Batches[i].Bytes)
		end = recs.Batches[i].LastOffset + 1
	}
	return end, bytes <= q.maxBytes && end-from <= int64(q.limit)
}

// recordsTag is the entity tag of a stretch of records, which never changes. What a
// JSON list says of the partition's ends is as of when it was read.
func recordsTag(recs *store.Records, q readRequest, from, end int64) string {
	form := "json"
	switch q.media {
	case mediaNDJSON:
		form = "ndjson"
	case batch.ContentType:
		form = "batch"
	}
	if q.base64 && q.media != batch.ContentType {
		form += "-base64"
	}
	return fmt.Sprintf(`"%s-%d-%d-%d-%08x-%s"`, recs.TopicID, q.partition.Number, from, end, imprint(recs, end), form)
}

// imprint is of the batches below an offset. Where a store has been restored from a backup,
// records that came after the backup are gone and others get their offsets; what a client
// has kept of the first ones must not pass for the others.
func imprint(recs *store.Records, end int64) uint32 {
	var sum uint32
	var b [12]byte
	for i := range recs.Batches {
		if recs.Batches[i].BaseOffset >= end {
			break
		}
		binary.BigEndian.PutUint32(b[:], recs.Batches[i].CRC)
		binary.BigEndian.PutUint64(b[4:], uint64(recs.Batches[i].AppendedAt.UnixMilli()))
		sum = crc32.Update(sum, crc32.IEEETable, b[:])
	}
	return sum
}
