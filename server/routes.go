package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// newRoutes is the whole route table. chi matches the escaped path when there is one,
// so an encoded slash stays inside its segment, and nothing cleans "..", so both
// reach the handler as a topic name that does not exist.
func (s *Server) newRoutes() (http.Handler, error) {
	const (
		topic     = "/topics/{topic}"
		partition = "/topics/{topic}/partitions/{partition}"
		producer  = "/topics/{topic}/partitions/{partition}/producers/{pid}"
		snapshot  = "/snapshots/{topic}/{partition}/{offset}"
	)
	crossOrigin, err := s.crossOrigin()
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Use(
		s.observe,          // first: request id, log line, metrics and recovery cover all the rest
		s.limitHeaders,     // before anything reads a header
		s.cors(),           // before crossOrigin: a preflight carries no credentials and changes nothing
		crossOrigin,        // before any handler can change state
		middleware.GetHead, // last: HEAD is routed like GET
	)
	r.NotFound(s.plain(s.notFound))
	r.MethodNotAllowed(s.plain(s.methodNotAllowed(r)))

	r.Post("/producers", s.api(s.allocateProducer))
	r.Get("/producers", s.api(s.listProducers))
	r.Get("/producers/{pid}", s.api(s.describeProducer))

	r.Get("/topics", s.api(s.listTopics))
	r.Post("/topics", s.api(s.createTopic))
	r.Get(topic, s.api(s.describeTopic))
	r.Put(topic, s.api(s.putTopic))
	r.Patch(topic, s.api(s.updateTopic))
	r.Delete(topic, s.api(s.deleteTopic))

	r.Get(partition, s.api(s.describePartition))
	r.Post(partition+"/batches", s.api(s.appendBatch))
	r.Get(partition+"/batches", s.api(s.listBatches))
	r.Get(partition+"/records", s.api(s.readRecords))
	r.Delete(partition+"/records", s.api(s.trimRecords))
	r.Post(partition+"/roll", s.api(s.rollPartition))
	r.Get(partition+"/producers", s.api(s.listPartitionProducers))
	r.Get(producer, s.api(s.describePartitionProducer))
	r.Delete(producer, s.api(s.expireProducer))

	r.Post("/snapshots", s.api(s.takeSnapshots))
	r.Get("/snapshots", s.api(s.listSnapshots))
	r.Get(snapshot, s.api(s.describeSnapshot))
	r.Delete(snapshot, s.api(s.deleteSnapshot))
	r.Post(snapshot+"/verify", s.api(s.verifySnapshot))

	r.Get("/limits", s.plain(s.limits))
	r.Get("/version", s.plain(s.version))
	r.Get("/livez", s.plain(s.livez))
	r.Get("/readyz", s.api(s.readyz))
	r.Get("/metrics", s.plain(s.exposeMetrics))
	r.Get("/openapi.json", s.plain(s.openapiJSON))
	r.Get("/openapi.yaml", s.plain(s.openapiYAML))
	r.Get("/problems", s.plain(s.listProblems))
	r.Get("/problems/{code}", s.plain(s.describeProblem))
	r.Get("/docs", s.plain(s.docs))
	r.Get("/events", s.plain(s.events))
	r.Get("/", s.plain(s.statusPage))
	return r, nil
}
