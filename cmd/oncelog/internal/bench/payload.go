package bench

import (
	"math/rand/v2"
	"strconv"

	"github.com/oncelog/oncelog/store/batch"
)

// variants is how many different payloads take turns, so that a server that mixes up
// batches is found out. They are few because their memory should stay in the cache, as
// that of a program which has just made its records does.
const variants = 8

// payload is what requests have in common.
type payload struct {
	format Format
	media  string
	// tails are the ends of bodies. A JSON body begins with the producer's sequence, the
	// others are a tail as it is.
	tails [variants][]byte
}

func newPayload(l *Load) *payload {
	p := &payload{format: l.Format}
	random := rand.New(rand.NewPCG(1, 2)) // the same bytes in each run
	for i := range p.tails {
		value := make([]byte, l.RecordBytes)
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		for at := range value {
			value[at] = letters[random.IntN(len(letters))]
		}
		p.tails[i] = p.encode(value, l.BatchRecords)
	}
	return p
}

// encode makes a batch of n records with the same value.
func (p *payload) encode(value []byte, n int) []byte {
	var out []byte
	switch p.format {
	case JSON:
		p.media = "application/json"
		out = append(out, `"records":[`...)
		for i := range n {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendObject(out, value)
		}
		return append(out, "]}"...)
	case NDJSON:
		p.media = "application/x-ndjson"
		for range n {
			out = append(appendObject(out, value), '\n')
		}
		return out
	case Binary:
		p.media = batch.ContentType
		var b batch.Builder
		r := batch.Record{Value: value, ValueForm: batch.FormText, Timestamp: batch.NoTimestamp}
		for range n {
			b.Add(&r)
		}
		return b.Build().Bytes
	default:
		p.media = "application/octet-stream"
		return value
	}
}

// appendObject appends a record whose value needs no escapes.
func appendObject(out, value []byte) []byte {
	out = append(out, `{"valueText":"`...)
	out = append(out, value...)
	return append(out, `"}`...)
}

// tail is the end of the body of the batch that begins at a sequence: always the same
// for the same one.
func (p *payload) tail(seq int64, records int) []byte {
	return p.tails[seq/int64(records)%variants]
}

// requests makes the heads of requests of one connection.
type requests struct {
	*payload
	start   []byte // up to the partition
	between []byte // from behind the query to Content-Length
	buf     []byte
	plain   bool
}

func newRequests(p *payload, t *Target, a address, topic string, plain bool) *requests {
	r := &requests{payload: p, plain: plain}
	r.start = []byte("POST " + a.path + "/topics/" + topic + "/partitions/")
	r.between = []byte(" HTTP/1.1\r\nHost: " + a.host + "\r\nContent-Type: " + p.media + "\r\n" + authorization(t) + "Content-Length: ")
	return r
}

func authorization(t *Target) string {
	if t.Token == "" {
		return ""
	}
	return "Authorization: Bearer " + t.Token + "\r\n"
}

// copied is up to what length the end of a body is copied to its head, to be written in
// one piece.
const copied = 16 << 10

// build gives the request for the next batch of s. Both parts are valid until the next
// call.
func (r *requests) build(s *stream, records int) (head, tail []byte) {
	tail = r.tail(s.next, records)
	b := append(r.buf[:0], r.start...)
	b = strconv.AppendInt(b, int64(s.partition), 10)
	b = append(b, "/batches"...)
	inQuery := !r.plain && r.format != JSON
	if inQuery {
		b = append(b, "?pid="...)
		b = strconv.AppendInt(b, s.pid, 10)
		b = append(b, "&epoch=0&baseSeq="...)
		b = strconv.AppendInt(b, s.next, 10)
	}
	b = append(b, r.between...)
	if r.format != JSON {
		b = strconv.AppendInt(b, int64(len(tail)), 10)
		b = append(b, "\r\n\r\n"...)
	} else {
		b = r.jsonStart(b, s, len(tail))
	}
	if len(tail) <= copied {
		b, tail = append(b, tail...), nil
	}
	r.buf = b
	return b, tail
}

// jsonStart appends the length of a JSON body and its beginning.
func (r *requests) jsonStart(b []byte, s *stream, tail int) []byte {
	var space [96]byte
	start := append(space[:0], '{')
	if !r.plain {
		start = append(start, `"pid":`...)
		start = strconv.AppendInt(start, s.pid, 10)
		start = append(start, `,"epoch":0,"baseSeq":`...)
		start = strconv.AppendInt(start, s.next, 10)
		start = append(start, ',')
	}
	b = strconv.AppendInt(b, int64(len(start)+tail), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, start...)
}
