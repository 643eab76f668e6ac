package server

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/oncelog/oncelog/web"
)

// newRoutes is what every request passes, and behind it the routes.
func (s *Server) newRoutes() (http.Handler, error) {
	crossOrigin, err := s.crossOrigin()
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	if s.options.Traces != nil {
		r.Use(s.traces()) // outside of observe, whose exchange nothing may wrap
	}
	r.Use(
		s.observe,          // first: request id, log line, metrics and recovery cover all the rest
		s.limitHeaders,     // before anything reads a header
		s.checkHost,        // before anything is told to a page of another site
		s.cors(),           // before crossOrigin: a preflight carries no credentials and changes nothing
		crossOrigin,        // before any handler can change state
		middleware.GetHead, // last: HEAD is routed like GET
	)
	r.NotFound(s.plain(s.notFound))
	r.MethodNotAllowed(s.plain(s.methodNotAllowed(r)))

	g := guarded{server: s, routes: r, rules: rules()}
	s.register(&g)
	return r, g.complete()
}

// register is the whole route table. chi matches the escaped path when there is one,
// so an encoded slash stays inside its segment, and nothing cleans "..", so both
// reach the handler as a topic name that does not exist.
func (s *Server) register(g *guarded) {
	const (
		topic     = "/topics/{topic}"
		partition = "/topics/{topic}/partitions/{partition}"
		producer  = "/topics/{topic}/partitions/{partition}/producers/{pid}"
		snapshot  = "/snapshots/{topic}/{partition}/{offset}"
	)
	g.Post("/producers", s.api(s.allocateProducer))
	g.Get("/producers", s.api(s.listProducers))
	g.Get("/producers/{pid}", s.api(s.describeProducer))

	g.Get("/topics", s.api(s.listTopics))
	g.Post("/topics", s.api(s.createTopic))
	g.Get(topic, s.api(s.describeTopic))
	g.Put(topic, s.api(s.putTopic))
	g.Patch(topic, s.api(s.updateTopic))
	g.Delete(topic, s.api(s.deleteTopic))

	g.Get(topic+"/partitions", s.api(s.listPartitions))
	g.Get(partition, s.api(s.describePartition))
	g.Post(partition+"/batches", s.api(s.appendBatch))
	g.Get(partition+"/batches", s.api(s.listBatches))
	g.Get(partition+"/records", s.api(s.readRecords))
	g.Delete(partition+"/records", s.api(s.trimRecords))
	g.Post(partition+"/roll", s.api(s.rollPartition))
	g.Get(partition+"/producers", s.api(s.listPartitionProducers))
	g.Get(producer, s.api(s.describePartitionProducer))
	g.Delete(producer, s.api(s.expireProducer))

	g.Post("/snapshots", s.api(s.takeSnapshots))
	g.Get("/snapshots", s.api(s.listSnapshots))
	g.Get(snapshot, s.api(s.describeSnapshot))
	g.Delete(snapshot, s.api(s.deleteSnapshot))
	g.Post(snapshot+"/verify", s.api(s.verifySnapshot))

	g.Get("/backup", s.api(s.backup))
	g.Post("/tickets", s.plain(s.createTicket))
	g.Get("/limits", s.plain(s.limits))
	g.Get("/version", s.plain(s.version))
	g.Get("/livez", s.plain(s.livez))
	g.Get("/readyz", s.api(s.readyz))
	g.Get("/metrics", s.plain(s.exposeMetrics))
	g.Get("/openapi.json", s.plain(s.openapiJSON))
	g.Get("/openapi-3.0.json", s.plain(s.openapiJSON30))
	g.Get("/openapi.yaml", s.plain(s.openapiYAML))
	g.Get("/problems", s.plain(s.listProblems))
	g.Get("/problems/{code}", s.plain(s.describeProblem))
	g.Get("/docs", s.plain(s.docs))
	g.Get("/events", s.plain(s.events))
	g.Get("/", s.plain(s.statusPage))
	g.Get(web.FilesPath+"{file}", s.plain(s.pageFile))
}
