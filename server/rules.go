package server

import (
	"net/http"
	"net/url"

	"github.com/oncelog/oncelog/server/access"
)

// rule says who may use a route.
type rule struct {
	// open: everybody, without credentials. The route tells nothing of what is stored.
	open bool
	// scopes are those of which the caller needs one; 0: any caller will do.
	scopes access.Scope
	// about is what the scope has to cover.
	about subject
	// stream: the answer may take for ever. It ends with the caller's right, and a ticket
	// lets a browser's EventSource in.
	stream bool
}

// subject is what a request is about, for callers who are limited to topic prefixes.
type subject uint8

const (
	anything   subject = iota // no topic, or the handler decides
	pathTopic                 // the topic of the path
	queryTopic                // the topic in the query; without one all topics
	bodyTopic                 // the handler asks, when it has read the body
	allTopics
)

// rules is what each route of the router needs. A route without a rule is a mistake that
// keeps the server from starting, as is a rule without a route.
func rules() map[string]rule {
	const (
		either    = access.Produce | access.Consume
		topic     = "/topics/{topic}"
		partition = "/topics/{topic}/partitions/{partition}"
		snapshot  = "/snapshots/{topic}/{partition}/{offset}"
	)
	open := rule{open: true}
	produce := rule{scopes: access.Produce, about: pathTopic}
	consume := rule{scopes: access.Consume, about: pathTopic}
	// What a producer has to know of a topic, too.
	describe := rule{scopes: either, about: pathTopic}
	admin := rule{scopes: access.Admin, about: pathTopic}
	return map[string]rule{
		"POST /producers":      {scopes: access.Produce},
		"GET /producers":       {scopes: access.Consume, about: queryTopic},
		"GET /producers/{pid}": {scopes: either}, // of one's own, or all topics: the handler asks

		"GET /topics":      {}, // the handler leaves out what the caller may not see
		"POST /topics":     {scopes: access.Admin, about: bodyTopic},
		"GET " + topic:     describe,
		"PUT " + topic:     admin,
		"PATCH " + topic:   admin,
		"DELETE " + topic:  admin,
		"GET " + partition: describe,

		"GET " + topic + "/partitions": describe,

		"POST " + partition + "/batches":   produce,
		"GET " + partition + "/batches":    consume,
		"GET " + partition + "/records":    {scopes: access.Consume, about: pathTopic, stream: true},
		"DELETE " + partition + "/records": admin,
		"POST " + partition + "/roll":      admin,
		"GET " + partition + "/producers":  consume,
		// Of one's own, or with consume: the handler asks.
		"GET " + partition + "/producers/{pid}":    describe,
		"DELETE " + partition + "/producers/{pid}": admin,

		"POST /snapshots":              {scopes: access.Admin, about: bodyTopic},
		"GET /snapshots":               {scopes: access.Consume, about: queryTopic},
		"GET " + snapshot:              consume,
		"DELETE " + snapshot:           admin,
		"POST " + snapshot + "/verify": admin,

		"GET /backup":   {scopes: access.Admin, about: allTopics},
		"POST /tickets": {},
		"GET /limits":   {},
		"GET /version":  {},
		// These tell of all topics, in sums and names.
		"GET /metrics": {scopes: access.Consume, about: allTopics},
		"GET /events":  {scopes: access.Consume, about: allTopics, stream: true},

		"GET /livez":            open,
		"GET /readyz":           open,
		"GET /openapi.json":     open,
		"GET /openapi-3.0.json": open,
		"GET /openapi.yaml":     open,
		"GET /problems":         open,
		"GET /problems/{code}":  open,
		"GET /docs":             open,
		"GET /":                 open,
		"GET /static/{file}":    open,
	}
}

// allows fails unless the caller may do what the request asks for.
func (u rule) allows(c *access.Caller, r *http.Request) error {
	if u.scopes == 0 {
		return nil
	}
	switch u.about {
	case anything, bodyTopic:
		return c.May(u.scopes)
	case pathTopic:
		if !c.Limited() {
			return c.May(u.scopes)
		}
		return c.MayTopic(u.scopes, pathParam(r, "topic"))
	case queryTopic:
		if q, err := url.ParseQuery(r.URL.RawQuery); err == nil && len(q["topic"]) == 1 {
			return c.MayTopic(u.scopes, q.Get("topic"))
		}
	case allTopics:
	}
	return c.MayAll(u.scopes)
}
