package server

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store/sequence"
)

// query takes the parameters of a request one by one. What is wrong with any of them,
// and what nobody asked for, comes out of done, all at once.
type query struct {
	params []param
	errs   []openapi.MemberError
}

type param struct {
	name, value string
	taken       bool
}

// parseQuery reads a raw query. Every name may be given once.
func parseQuery(raw string) query {
	var q query
	if raw != "" {
		q.params = make([]param, 0, 1+strings.Count(raw, "&"))
	}
	for raw != "" {
		var part string
		part, raw, _ = strings.Cut(raw, "&")
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		n, errName := url.QueryUnescape(name)
		v, errValue := url.QueryUnescape(value)
		if errName != nil || errValue != nil || !utf8.ValidString(n) || !utf8.ValidString(v) || strings.Contains(part, ";") {
			q.fault(strconv.QuoteToASCII(part), "is not a query parameter")
			continue
		}
		if _, doubled := q.find(n); doubled {
			q.fault(n, "is given more than once")
			continue
		}
		q.params = append(q.params, param{name: n, value: v})
	}
	return q
}

func (q *query) fault(name, detail string) {
	q.errs = append(q.errs, openapi.MemberError{Pointer: name, Detail: detail})
}

func (q *query) find(name string) (*param, bool) {
	for i := range q.params {
		if q.params[i].name == name {
			return &q.params[i], true
		}
	}
	return nil, false
}

// text takes a parameter as it is.
func (q *query) text(name string) (string, bool) {
	p, ok := q.find(name)
	if !ok {
		return "", false
	}
	p.taken = true
	return p.value, true
}

// integer takes a number from low to high, or gives def when there is none.
func (q *query) integer(name string, def, low, high int64) int64 {
	v, ok := q.text(name)
	if !ok {
		return def
	}
	n, ok := parseInteger(v)
	if !ok || n < low || n > high {
		q.fault(name, "must be an integer from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
		return def
	}
	return n
}

// boolean takes true or false; there being none means false.
func (q *query) boolean(name string) bool {
	v, ok := q.text(name)
	if ok && v != "true" && v != "false" {
		q.fault(name, "must be true or false")
	}
	return v == "true"
}

// done returns the malformed-request problem of everything that was wrong, or nil.
func (q *query) done() error {
	for i := range q.params {
		if !q.params[i].taken {
			q.fault(q.params[i].name, "is not a parameter of this operation")
		}
	}
	if len(q.errs) > 0 {
		return memberProblem(codeMalformed, q.errs)
	}
	return nil
}

// noQuery refuses any parameter.
func noQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	q := parseQuery(r.URL.RawQuery)
	return q.done()
}

// parseInteger reads an integer as the wire has it: digits alone, no leading zero,
// 0 … 2^53−1.
func parseInteger[T ~string | ~[]byte](v T) (int64, bool) {
	const maxDigits = 16 // of 2^53−1
	if len(v) == 0 || len(v) > maxDigits || (v[0] == '0' && len(v) > 1) {
		return 0, false
	}
	var n int64
	for i := range len(v) {
		c := v[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, n <= sequence.Max
}
