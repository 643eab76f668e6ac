package server

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/oncelog/oncelog/store"
)

// retryAfter is how long a browser waits before it asks for the stream again.
const retryAfter = "1000" // ms

// viewPeriod is how often what a stream looks at is looked at. It is shorter than
// samplePeriod because a batch is held for a tenth of a second only.
const viewPeriod = 250 * time.Millisecond

// events tells how the server is doing, second by second.
//
//	@Summary		Follow the server's state
//	@ID				events
//	@Tags			service
//	@Description	The event stream behind the status page. Each second it gives a ServerEvent: whether all is well and, if not, what to do; counts, rates, commit times and sizes; and what was not simply stored. It begins with the events of the last minutes. A stream that is asked for again with Last-Event-ID goes on where it broke off; after a restart of the server it begins anew, with another instance in every event. With topic and partition, there is an event named partition (PartitionEvent) whenever the partition has changed, with the producers that wrote last and what happened to them; with pid, one named producer (ProducerEvent). Readers that are too slow are cut off.
//	@Produce		text/event-stream
//	@Param			history			query		int		false	"Most seconds of the past to begin with"	minimum(0)	maximum(300)	default(300)
//	@Param			topic			query		string	false	"Topic of the partition to look at"	minLength(1)	maxLength(249)
//	@Param			partition		query		int		false	"Partition to look at"	minimum(0)	maximum(1023)
//	@Param			pid				query		int		false	"Producer to look at"	minimum(0)	maximum(9007199254740991)	format(int64)
//	@Param			Last-Event-ID	header		string	false	"The last event that the client has seen"
//	@Success		200				{object}	openapi.ServerEvent	"The events"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[consume]
//	@Security	ticket
//	@Router			/events [get]
func (s *Server) events(x *exchange, r *http.Request) error {
	q := parseQuery(r.URL.RawQuery)
	history := q.integer("history", kept, 0, kept)
	look := q.view()
	if err := q.done(); err != nil {
		return err
	}
	if s.draining.Err() != nil {
		return &problem{code: string(store.CodeDraining), detail: "the server is shutting down"}
	}
	s.sampler.start()
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
	w := &eventWriter{x: x, control: http.NewResponseController(x)}
	w.buf = append(w.buf, "retry: "+retryAfter+"\n\n"...)
	return s.follows(r, w, look, s.sampler.from(r.Header["Last-Event-Id"], history))
}

// follows writes the events after the one with a number, until the client goes or the
// server drains.
func (s *Server) follows(r *http.Request, w *eventWriter, look *view, after int64) error {
	var glance <-chan time.Time
	if look != nil {
		t := time.NewTicker(viewPeriod)
		defer t.Stop()
		glance = t.C
	}
	for {
		events, last, changed, ended := s.sampler.after(after)
		for _, e := range events {
			if len(w.buf)+len(e) > flushAt { // what a reader who takes its time makes us keep
				if err := w.flush(); err != nil {
					return err
				}
			}
			w.buf = append(w.buf, e...)
		}
		after = last
		if look != nil {
			w.buf = append(w.buf, look.changes(r.Context(), s)...)
		}
		if err := w.flush(); err != nil || ended {
			return err
		}
		select {
		case <-changed:
		case <-glance:
		case <-r.Context().Done():
			return nil
		}
	}
}

// from gives the number of the event after which a stream begins: the one that the client
// has seen last, if it is of this instance, or else so many events ago.
func (m *sampler) from(lastEventID []string, history int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(lastEventID) == 1 {
		number, ok := strings.CutPrefix(lastEventID[0], m.instance+"-")
		if n, is := parseInteger(number); ok && is && n <= m.last {
			return n
		}
	}
	return max(m.last-history, 0)
}

// eventWriter sends what is in buf.
type eventWriter struct {
	x       *exchange
	control *http.ResponseController
	buf     []byte
}

// flush sends it on its way. A client that does not take it in time is given up: what is
// made meanwhile is not kept for it.
func (w *eventWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	w.x.hurry()
	if _, err := w.x.Write(w.buf); err != nil {
		return gone(err)
	}
	w.buf = w.buf[:0]
	if err := w.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return gone(err)
	}
	return nil
}

// unless gives what is new, or nothing when it is what was given last.
func (v *view) unless(name string, data []byte) []byte {
	if bytes.Equal(data, v.last) {
		return nil
	}
	v.last = data
	return sse("", name, data)
}
