package server

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/oncelog/oncelog/store/batch"
)

const mediaEventStream = "text/event-stream"

// readMedia picks what a read answers with, by the client's Accept (RFC 9110 section
// 12.5.1): the best of JSON, NDJSON, an event stream and binary batches, in this order
// when they are equally welcome.
func readMedia(r *http.Request) (string, error) {
	fields := r.Header["Accept"]
	if len(fields) == 0 {
		return mediaJSON, nil
	}
	best, bestQ := "", 0.0
	for _, offer := range [...]string{mediaJSON, mediaNDJSON, mediaEventStream, batch.ContentType} {
		if q := quality(fields, offer); q > bestQ {
			best, bestQ = offer, q
		}
	}
	if best == "" {
		return "", &problem{code: codeNotAcceptable, detail: "records come as application/json, application/x-ndjson, text/event-stream or " + batch.ContentType}
	}
	return best, nil
}

// quality is how welcome an offer is: the weight of the most specific range that
// covers it. Ranges that cannot be read count for nothing.
func quality(fields []string, offer string) float64 {
	family, _, _ := strings.Cut(offer, "/")
	q, specific := 0.0, 0
	for _, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			media, params, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			match := 0
			switch media {
			case offer:
				match = 3
			case family + "/*":
				match = 2
			case "*/*":
				match = 1
			}
			if match <= specific {
				continue
			}
			weight := 1.0
			if v, ok := params["q"]; ok {
				if weight, err = strconv.ParseFloat(v, 64); err != nil || weight < 0 || weight > 1 {
					continue
				}
			}
			q, specific = weight, match
		}
	}
	return q
}
