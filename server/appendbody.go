package server

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

const mediaNDJSON = "application/x-ndjson"

// decodeAppend reads the body of an append, whatever its form, and its producer.
func (s *Server) decodeAppend(r *http.Request) (store.Append, error) {
	media, stored, err := appendMedia(r)
	if err != nil {
		return store.Append{}, err
	}
	a := store.Append{NoHold: noHold(r)}
	if media == batch.ContentType {
		a.Producer, a.Batch, err = s.binaryBatch(r)
		return a, err
	}
	d := s.decoders.get()
	defer s.decoders.put(d)
	switch media {
	case mediaJSON:
		a.Producer, err = s.jsonBatch(d, r)
	case mediaNDJSON:
		a.Producer, err = s.ndjsonBatch(d, r)
	default:
		a.Producer, err = s.rawBatch(d, r, stored)
	}
	if err != nil {
		return store.Append{}, err
	}
	a.Batch = d.builder.Build()
	return a, nil
}

// appendMedia returns the media type in lower case and the Content-Type as it was
// sent. No Content-Type is as good as an unknown one.
func appendMedia(r *http.Request) (media, field string, err error) {
	v := r.Header["Content-Type"]
	if len(v) == 0 {
		return "", "", nil
	}
	refused := func(detail string) error {
		return &problem{code: codeUnsupportedMediaType, detail: detail}
	}
	if len(v) > 1 {
		return "", "", refused("there is more than one Content-Type")
	}
	switch v[0] { // the frequent ones, spared the parsing
	case mediaJSON, mediaNDJSON, batch.ContentType:
		return v[0], v[0], nil
	case "":
		return "", "", nil
	}
	if !printable(v[0]) {
		return "", "", refused("Content-Type holds characters other than printable ASCII")
	}
	media, params, err := mime.ParseMediaType(v[0])
	if err != nil || !strings.Contains(media, "/") {
		return "", "", refused("Content-Type is not a media type")
	}
	if media == mediaJSON || media == mediaNDJSON {
		if c, ok := params["charset"]; ok && !strings.EqualFold(c, "utf-8") {
			return "", "", refused("JSON must be in UTF-8")
		}
	}
	return media, v[0], nil
}

func (s *Server) jsonBatch(d *appendDecoder, r *http.Request) (*store.ProducerSeq, error) {
	if r.URL.RawQuery != "" {
		q := parseQuery(r.URL.RawQuery)
		for _, name := range queryNames {
			if _, ok := q.text(name); ok {
				q.fault(name, "belongs into the body of a JSON batch")
			}
		}
		if err := q.done(); err != nil {
			return nil, err
		}
	}
	for _, name := range [...]string{headerProducerID, headerProducerEpoch, headerProducerSeq, headerRecordKey} {
		if _, ok := r.Header[name]; ok {
			return nil, malformed(name, "belongs into the body of a JSON batch")
		}
	}
	var err error
	if d.body, err = s.bodies.read(r, d.body); err != nil {
		return nil, err
	}
	return d.jsonBatch()
}

func (s *Server) ndjsonBatch(d *appendDecoder, r *http.Request) (*store.ProducerSeq, error) {
	id, err := identify(r)
	if err != nil {
		return nil, err
	}
	if err := noRecordKey(r); err != nil {
		return nil, err
	}
	if d.body, err = s.bodies.read(r, d.body); err != nil {
		return nil, err
	}
	if err := d.lines(); err != nil {
		return nil, err
	}
	return id.producer(int64(d.builder.Len()), queryNames)
}

// rawBatch makes one record of the body.
func (s *Server) rawBatch(d *appendDecoder, r *http.Request, contentType string) (*store.ProducerSeq, error) {
	id, err := identify(r)
	if err != nil {
		return nil, err
	}
	rec := batch.Record{Timestamp: batch.NoTimestamp, ValueForm: batch.FormRaw, ContentType: contentType}
	if len(contentType) > store.MaxContentType {
		return nil, invalid("Content-Type", "must be at most "+strconv.Itoa(store.MaxContentType)+" bytes")
	}
	if key := r.Header[headerRecordKey]; len(key) > 0 {
		if rec.Key, err = recordKey(key); err != nil {
			return nil, err
		}
		rec.KeyForm = batch.FormText
	}
	if d.body, err = s.bodies.read(r, d.body); err != nil {
		return nil, err
	}
	if rec.Value = d.body; rec.Value == nil {
		rec.Value = []byte{} // nil would be a tombstone
	}
	d.builder.Add(&rec)
	return id.producer(1, queryNames)
}

// binaryBatch checks an encoded batch, which is kept as it is.
func (s *Server) binaryBatch(r *http.Request) (*store.ProducerSeq, batch.Batch, error) {
	id, err := identify(r)
	if err != nil {
		return nil, batch.Batch{}, err
	}
	if err := noRecordKey(r); err != nil {
		return nil, batch.Batch{}, err
	}
	body, err := s.bodies.read(r, nil)
	if err != nil {
		return nil, batch.Batch{}, err
	}
	if cap(body)-len(body) > len(body)/2 { // the engine may keep it for long
		body = bytes.Clone(body)
	}
	var l limiter
	b, err := batch.ParseEach(body, l.record)
	switch {
	case errors.Is(err, batch.ErrMalformed), errors.Is(err, batch.ErrChecksum):
		return nil, batch.Batch{}, malformed("", err.Error())
	case err != nil:
		return nil, batch.Batch{}, err
	}
	if err := l.err(); err != nil {
		return nil, batch.Batch{}, err
	}
	p, err := id.producer(int64(b.Count), queryNames)
	return p, b, err
}

// record holds a record of an encoded batch to the limits that the other forms keep while
// they are decoded.
func (l *limiter) record(i int, rec *batch.Record) error {
	at := func(member string) string { return "/records/" + strconv.Itoa(i) + member }
	if rec.ValueForm == batch.FormJSON && rec.Value != nil {
		// The codec knows JSON less strictly: a value such as {"a":1,"a":2} could be
		// stored, and then no strict reader could read the page that holds it.
		if !jsontext.Value(rec.Value).IsValid() {
			return malformed(at("/value"), "is not valid JSON")
		}
		l.json(rec.Value, at)
	}
	l.key(rec.Key, at)
	l.headers(len(rec.Headers), at)
	for j := range rec.Headers {
		h := &rec.Headers[j]
		l.header(len(h.Name), len(h.Value), func(member string) string {
			return at("/headers/" + strconv.Itoa(j) + member)
		})
	}
	if len(rec.ContentType) > store.MaxContentType {
		l.refuse(at("/contentType"), "must be at most "+strconv.Itoa(store.MaxContentType)+" bytes")
	}
	return nil
}

func noRecordKey(r *http.Request) error {
	if _, ok := r.Header[headerRecordKey]; ok {
		return malformed(headerRecordKey, "goes with a body that is the value of one record only")
	}
	return nil
}

// Headers of an append whose body has no place for what they say.
const (
	headerProducerID    = "Producer-Id"
	headerProducerEpoch = "Producer-Epoch"
	headerProducerSeq   = "Producer-Seq"
	headerRecordKey     = "Record-Key"
)

// identity is who appends, as far as the request says. Members that are not given are
// −1.
type identity [3]int64

// Constants that Go cannot write as such.
var (
	queryNames       = [3]string{"pid", "epoch", "baseSeq"}
	memberNames      = [3]string{"/pid", "/epoch", "/baseSeq"}
	headerNames      = [3]string{headerProducerID, headerProducerEpoch, headerProducerSeq}
	valueTrue        = []string{"true"}
	preferenceNoWait = []string{"wait=0"}
)

// identify reads pid, epoch and baseSeq from query and headers.
func identify(r *http.Request) (identity, error) {
	id := identity{-1, -1, -1}
	q := parseQuery(r.URL.RawQuery)
	for i, name := range queryNames {
		id[i] = q.integer(name, -1, 0, sequence.Max)
		v := r.Header[headerNames[i]]
		if len(v) == 0 {
			continue
		}
		n, ok := parseInteger(v[0])
		switch {
		case !ok || len(v) > 1:
			q.fault(headerNames[i], "must be one integer from 0 to 9007199254740991")
		case id[i] >= 0 && id[i] != n:
			q.fault(headerNames[i], "says something else than the query parameter "+name)
		default:
			id[i] = n
		}
	}
	return id, q.done()
}

// producer returns the producer that the identity names for a batch of count records,
// nil for none. The names say where the members are.
func (id identity) producer(count int64, names [3]string) (*store.ProducerSeq, error) {
	if id == (identity{-1, -1, -1}) {
		return nil, nil // a plain append
	}
	var missing []openapi.MemberError
	for i, n := range id {
		if n < 0 {
			missing = append(missing, openapi.MemberError{Pointer: names[i], Detail: "is missing; pid, epoch and baseSeq come together or not at all"})
		}
	}
	if len(missing) > 0 {
		return nil, memberProblem(codeMalformed, missing)
	}
	if id[2] > sequence.Max-count+1 {
		return nil, invalid(names[2], "the last of "+strconv.FormatInt(count, 10)+" records would have a sequence above 9007199254740991")
	}
	return &store.ProducerSeq{ID: id[0], Epoch: id[1], BaseSeq: id[2]}, nil
}
