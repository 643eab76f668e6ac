package server

import (
	"net/http"
	"runtime"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// limits lists what the server allows.
//
//	@Summary		List limits
//	@ID				limits
//	@Tags			service
//	@Description	Lists what the server allows, in bytes, records and milliseconds.
//	@Produce		json
//	@Success		200	{object}	openapi.Limits	"The limits"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Security	bearer
//	@Router			/limits [get]
func (s *Server) limits(x *exchange, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	return writeJSON(x, http.StatusOK, openapi.Limits{
		MaxBodyBytes:    s.options.MaxBodyBytes,
		MaxBatchRecords: store.MaxBatchRecords,
		MaxBatchBytes:   store.MaxBatchBytes,
		MaxRecordBytes:  store.MaxRecordBytes,
		MaxKeyBytes:     store.MaxKeyBytes,
		MaxHeaders:      store.MaxHeaders,
		MaxHeaderName:   store.MaxHeaderName,
		MaxHeaderValue:  store.MaxHeaderValue,
		MaxTopicName:    store.MaxTopicName,
		MaxPartitions:   store.MaxPartitions,
		MaxReadRecords:  store.MaxReadRecords,
		MaxReadBytes:    store.MaxReadBytes,
		MaxWaitMs:       maxWait,
		MaxPageSize:     maxPage,
		ReorderWaitMs:   s.options.ReorderWait.Milliseconds(),
		ProducerWindow:  sequence.Window,
		MaxSequence:     sequence.Max,
	})
}

// version says what is running.
//
//	@Summary		Show the version
//	@ID				version
//	@Tags			service
//	@Description	Says which version of the server is running, and which version of the API it speaks.
//	@Produce		json
//	@Success		200	{object}	openapi.Version	"The version"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Security	bearer
//	@Router			/version [get]
func (s *Server) version(x *exchange, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	return writeJSON(x, http.StatusOK, openapi.Version{
		Version: s.options.Version, Revision: s.options.Revision, Go: runtime.Version(), API: "1",
	})
}

// livez says that the process answers.
//
//	@Summary		Probe for life
//	@ID				livez
//	@Tags			service
//	@Description	Succeeds as long as the process answers requests.
//	@Produce		json
//	@Success		200	{object}	openapi.Health	"It lives"
//	@Router			/livez [get]
func (s *Server) livez(x *exchange, _ *http.Request) error {
	x.Header()["Cache-Control"] = noStore
	return writeJSON(x, http.StatusOK, openapi.Health{Status: "ok"})
}

// readyz says whether the server takes appends.
//
//	@Summary		Probe for readiness
//	@ID				readyz
//	@Tags			service
//	@Description	Succeeds while the server takes appends, and says why when it does not: starting, draining, storage full or failed.
//	@Produce		json
//	@Success		200	{object}	openapi.Health	"It is ready"
//	@Failure	503	{object}	openapi.Problem	"not-ready, draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Router			/readyz [get]
func (s *Server) readyz(x *exchange, _ *http.Request, st store.Store) error {
	if err := s.ready(st); err != nil {
		return err
	}
	x.Header()["Cache-Control"] = noStore
	return writeJSON(x, http.StatusOK, openapi.Health{Status: "ok"})
}

// ready tells why no appends are taken, or soon will not be; nil when they are.
func (s *Server) ready(st store.Store) error {
	if s.leaving.Load() || s.draining.Err() != nil {
		return &problem{code: string(store.CodeDraining), detail: "the server is shutting down"}
	}
	return st.Ready()
}

// exposeMetrics gives the metrics.
//
//	@Summary		Expose metrics
//	@ID				metrics
//	@Tags			service
//	@Description	Gives the metrics in the Prometheus text format.
//	@Produce		plain
//	@Success		200	{string}	string	"The metrics"
//	@Security	bearer[consume]
//	@Router			/metrics [get]
func (s *Server) exposeMetrics(x *exchange, r *http.Request) error {
	s.metrics.handler.ServeHTTP(x, r)
	return nil
}

// openapiJSON gives the OpenAPI document.
//
//	@Summary		Show the OpenAPI document
//	@ID				openapiJson
//	@Tags			service
//	@Description	Gives this document, OpenAPI 3.1, as JSON.
//	@Produce		json
//	@Param			If-None-Match	header		string	false	"ETag that the client has"
//	@Success		200				{object}	object	"The document"
//	@Header			200				{string}	ETag	"For If-None-Match"
//	@Success		304				"Still as the client has it"
//	@Router			/openapi.json [get]
func (s *Server) openapiJSON(x *exchange, r *http.Request) error {
	return s.pages.document(x, r, "application/json", s.pages.json)
}

// openapiJSON30 gives the OpenAPI document for older generators.
//
//	@Summary		Show the OpenAPI document in terms of 3.0
//	@ID				openapiJson30
//	@Tags			service
//	@Description	Gives this document in terms of OpenAPI 3.0.3, for generators that do not know 3.1.
//	@Produce		json
//	@Param			If-None-Match	header		string	false	"ETag that the client has"
//	@Success		200				{object}	object	"The document"
//	@Header			200				{string}	ETag	"For If-None-Match"
//	@Success		304				"Still as the client has it"
//	@Router			/openapi-3.0.json [get]
func (s *Server) openapiJSON30(x *exchange, r *http.Request) error {
	return s.pages.document(x, r, "application/json", s.pages.json30)
}

// openapiYAML gives the OpenAPI document.
//
//	@Summary		Show the OpenAPI document as YAML
//	@ID				openapiYaml
//	@Tags			service
//	@Description	Gives this document as YAML.
//	@Produce		application/yaml
//	@Param			If-None-Match	header		string	false	"ETag that the client has"
//	@Success		200				{string}	string	"The document"
//	@Header			200				{string}	ETag	"For If-None-Match"
//	@Success		304				"Still as the client has it"
//	@Router			/openapi.yaml [get]
func (s *Server) openapiYAML(x *exchange, r *http.Request) error {
	return s.pages.document(x, r, "application/yaml", s.pages.yaml)
}
