package server

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Header values that many answers share: constants that Go cannot write as such.
var (
	typeJSON         = []string{"application/json"}
	typeBytes        = []string{"application/octet-stream"}
	typeProblem      = []string{"application/problem+json"}
	noSniff          = []string{"nosniff"}
	sameOrigin       = []string{"same-origin"}
	noStore          = []string{"no-store"}
	privateImmutable = []string{"private, immutable"}
	noCache          = []string{"no-cache"}
)

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// formatMillis formats milliseconds since 1970.
func formatMillis(ms int64) string { return formatTime(time.UnixMilli(ms)) }

// writeJSON writes v, as application/json unless another type is set.
func writeJSON(x *exchange, status int, v any) error {
	// Text of a request may be in it, and an answer must never fail for that.
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	h := x.Header()
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = typeJSON
	}
	x.WriteHeader(status)
	_, err = x.Write(append(b, '\n'))
	return gone(err)
}

// noContent answers that it is done and there is nothing to say.
func noContent(x *exchange) error {
	x.WriteHeader(http.StatusNoContent)
	return nil
}
