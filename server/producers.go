package server

import (
	"context"
	"net/http"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/sequence"
)

// allocateProducer allocates a producer id.
//
//	@Summary		Allocate a producer id
//	@ID				allocateProducer
//	@Tags			producers
//	@Description	Allocates a producer id that was never given out before and never will be again. Its epoch begins at 0, its sequences begin at 0 in every partition.
//	@Produce		json
//	@Success		201	{object}	openapi.ProducerID	"The id and its first epoch"
//	@Header			201	{string}	Location			"Path of the producer"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	413	{object}	openapi.Problem	"too-large"
//	@Failure	415	{object}	openapi.Problem	"unsupported-media-type"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed, producers-exhausted"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[produce]
//	@Router			/producers [post]
func (s *Server) allocateProducer(x *exchange, r *http.Request, st store.Store) error {
	if err := s.noInput(r); err != nil {
		return err
	}
	if err := x.meter.Producer(); err != nil {
		return err
	}
	id, err := st.AllocateProducer(r.Context(), x.caller.Name)
	if err != nil {
		return err
	}
	x.Header().Set("Location", "/producers/"+decimal(id.ID))
	return writeJSON(x, http.StatusCreated, openapi.ProducerID{PID: id.ID, Epoch: id.Epoch})
}

// listProducers lists producers over all partitions.
//
//	@Summary		List producers
//	@ID				listProducers
//	@Tags			producers
//	@Description	Lists the producers with live state in any partition, one row a pid, by pid or as the other parameters say. A list that is sorted by what changes meanwhile may show a producer on two pages, or on none.
//	@Produce		json
//	@Param			limit		query		int						false	"Most items to give"	minimum(1)	maximum(1000)	default(100)
//	@Param			pageToken	query		string					false	"nextPageToken of the page before"
//	@Param			sort		query		string					false	"What to sort by; lastSeq and lastOffset are those of the newest batch in any partition"	Enums(pid,epoch,partitions,lastSeq,lastOffset,lastTimestamp,expiresAt,accepted,duplicate,outOfOrder,fenced,reused,held)	default(pid)
//	@Param			order		query		string					false	"Smallest or largest first"	Enums(asc,desc)	default(asc)
//	@Param			topic		query		string					false	"Only what has state in this topic, summed up over its partitions"	minLength(1)	maxLength(249)
//	@Param			pid			query		int						false	"Only this producer"	minimum(0)	maximum(9007199254740991)	format(int64)
//	@Param			state		query		string					false	"Only those with a batch in the last minute (active), without one (idle), or with refused appends since the server started (refused)"	Enums(active,idle,refused)
//	@Success		200			{object}	openapi.ProducerList	"A page of producers"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[consume]
//	@Router			/producers [get]
func (s *Server) listProducers(x *exchange, r *http.Request, st store.Store) error {
	q := parseQuery(r.URL.RawQuery)
	if found := q.producerQuery(); found != nil {
		if err := q.done(); err != nil {
			return err
		}
		return found.answer(x, r, st, s.options.Now())
	}
	limit, after := q.pidPage()
	if err := q.done(); err != nil {
		return err
	}
	sums, err := st.Producers(r.Context(), after, limit+1)
	if err != nil {
		return err
	}
	sums, next := cutPage(sums, limit, producerTokens, func(p *store.ProducerSummary) string { return decimal(p.ID) })
	list := openapi.ProducerList{Items: make([]openapi.ProducerSummary, len(sums)), NextPageToken: next}
	for i := range sums {
		list.Items[i] = summaryBody(&sums[i])
	}
	return writeJSON(x, http.StatusOK, list)
}

func summaryBody(p *store.ProducerSummary) openapi.ProducerSummary {
	return openapi.ProducerSummary{
		PID: p.ID, Epoch: p.Epoch, Partitions: p.Partitions,
		LastTimestamp: formatTime(p.LastTimestamp), ExpiresAt: formatTime(p.ExpiresAt),
		Counters: openapi.ProducerCounters(p.Counters),
	}
}

// describeProducer describes a producer in every partition that knows it.
//
//	@Summary		Describe a producer
//	@ID				describeProducer
//	@Tags			producers
//	@Description	Gives the producer's state in each partition that knows it, by topic and partition, and its last refused appends.
//	@Produce		json
//	@Param			pid	path		int					true	"Producer id"	minimum(0)	maximum(9007199254740991)	format(int64)	example(0)
//	@Success		200	{object}	openapi.Producer	"The producer"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-producer-id"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[produce]
//	@Security	bearer[consume]
//	@Router			/producers/{pid} [get]
func (s *Server) describeProducer(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	id, err := integerParam(r, "pid")
	if err != nil {
		return err
	}
	if err := x.mayLookAt(r.Context(), st, id, x.caller.MayAll); err != nil {
		return err
	}
	states, err := st.Producer(r.Context(), id)
	if err != nil {
		return err
	}
	return writeJSON(x, http.StatusOK, openapi.Producer{
		PID: id, Partitions: producerBodies(st, states), Rejected: incidentBodies(st.Rejections(id)),
	})
}

// listPartitionProducers lists what a partition knows of producers.
//
//	@Summary		List a partition's producers
//	@ID				listPartitionProducers
//	@Tags			producers
//	@Description	Lists the producers with live state in the partition, by pid.
//	@Produce		json
//	@Param			topic		path		string							true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path		int								true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			limit		query		int								false	"Most items to give"	minimum(1)	maximum(1000)	default(100)
//	@Param			pageToken	query		string							false	"nextPageToken of the page before"
//	@Success		200			{object}	openapi.PartitionProducerList	"A page of producers"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[consume]
//	@Router			/topics/{topic}/partitions/{partition}/producers [get]
func (s *Server) listPartitionProducers(x *exchange, r *http.Request, st store.Store) error {
	q := parseQuery(r.URL.RawQuery)
	limit, after := q.pidPage()
	if err := q.done(); err != nil {
		return err
	}
	p, err := partitionParam(r)
	if err != nil {
		return err
	}
	states, err := st.PartitionProducers(r.Context(), p, after, limit+1)
	if err != nil {
		return err
	}
	states, next := cutPage(states, limit, producerTokens, func(p *store.ProducerState) string { return decimal(p.ID) })
	return writeJSON(x, http.StatusOK, openapi.PartitionProducerList{Items: producerBodies(st, states), NextPageToken: next})
}

// describePartitionProducer gives what a partition knows of a producer.
//
//	@Summary		Describe a producer in a partition
//	@ID				describePartitionProducer
//	@Tags			producers
//	@Description	Gives the state by which the partition judges the producer's next batch.
//	@Produce		json
//	@Param			topic		path		string						true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path		int							true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			pid			path		int							true	"Producer id"	minimum(0)	maximum(9007199254740991)	format(int64)	example(0)
//	@Success		200			{object}	openapi.PartitionProducer	"The state"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition, unknown-producer-id"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[produce]
//	@Security	bearer[consume]
//	@Router			/topics/{topic}/partitions/{partition}/producers/{pid} [get]
func (s *Server) describePartitionProducer(x *exchange, r *http.Request, st store.Store) error {
	p, id, err := partitionProducerParams(r)
	if err != nil {
		return err
	}
	mayTopic := func(s access.Scope) error { return x.caller.MayTopic(s, p.Topic) }
	if err := x.mayLookAt(r.Context(), st, id, mayTopic); err != nil {
		return err
	}
	state, err := st.PartitionProducer(r.Context(), p, id)
	if err != nil {
		return err
	}
	return writeJSON(x, http.StatusOK, producerBody(st, &state))
}

// expireProducer expires a producer's state in a partition.
//
//	@Summary		Expire a producer in a partition
//	@ID				expireProducer
//	@Tags			producers
//	@Description	Expires the producer's state now, as if it had been idle for producerExpiryMs. Only a higher epoch that starts at sequence 0 may go on.
//	@Produce		json
//	@Param			topic		path	string	true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			partition	path	int		true	"Partition"	minimum(0)	maximum(1023)	example(0)
//	@Param			pid			path	int		true	"Producer id"	minimum(0)	maximum(9007199254740991)	format(int64)	example(0)
//	@Success		204			"Expired"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic, unknown-partition, unknown-producer-id"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/topics/{topic}/partitions/{partition}/producers/{pid} [delete]
func (s *Server) expireProducer(x *exchange, r *http.Request, st store.Store) error {
	p, id, err := partitionProducerParams(r)
	if err != nil {
		return err
	}
	if err := st.ExpireProducer(r.Context(), p, id); err != nil {
		return err
	}
	return noContent(x)
}

// mayLookAt lets callers look at producers of their own, and at others if they may read.
func (x *exchange) mayLookAt(ctx context.Context, st store.Store, id int64, may func(access.Scope) error) error {
	refused := may(access.Consume)
	if refused == nil {
		return nil
	}
	owner, err := st.ProducerOwner(ctx, id)
	if store.CodeOf(err) == store.CodeUnknownProducerID || err == nil && owner == x.caller.Name {
		return nil
	}
	return refused
}

func partitionProducerParams(r *http.Request) (store.Partition, int64, error) {
	if err := noQuery(r); err != nil {
		return store.Partition{}, 0, err
	}
	id, err := integerParam(r, "pid")
	if err != nil {
		return store.Partition{}, 0, err
	}
	p, err := partitionParam(r)
	return p, id, err
}

// noInput refuses parameters, and any body but an empty object: an operation that
// takes nothing must not look as if it had taken something.
func (s *Server) noInput(r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	_, err := s.decode(r, &struct{}{}, bodyRules{optional: true})
	return err
}

func producerBodies(st store.Store, states []store.ProducerState) []openapi.PartitionProducer {
	out := make([]openapi.PartitionProducer, len(states))
	for i := range states {
		out[i] = producerBody(st, &states[i])
	}
	return out
}

func producerBody(st store.Store, p *store.ProducerState) openapi.PartitionProducer {
	return openapi.PartitionProducer{
		Topic: p.Partition.Topic, Partition: p.Partition.Number,
		PID: p.ID, Epoch: p.State.Epoch(),
		FirstSeq: p.State.FirstSeq(), LastSeq: p.State.LastSeq(), LastOffset: p.State.LastOffset(),
		LastTimestamp: formatMillis(p.State.LastTimestamp()), ExpiresAt: formatTime(p.ExpiresAt),
		Recent: remembered(&p.State), Counters: openapi.ProducerCounters(p.Counters),
		Held: heldBodies(st.Held(p.Partition, p.ID)),
	}
}

// remembered lists the batches in a producer's window, oldest first.
func remembered(s *sequence.State) []openapi.RememberedBatch {
	recent := s.Recent()
	out := make([]openapi.RememberedBatch, len(recent))
	for i, b := range recent {
		out[i] = openapi.RememberedBatch{BaseSeq: b.BaseSeq, LastSeq: b.LastSeq, BaseOffset: b.BaseOffset}
	}
	return out
}
