package server

import (
	"context"
	"net/http"
	"strconv"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
)

const mediaMergePatch = "application/merge-patch+json"

// listTopics lists topics.
//
//	@Summary		List topics
//	@ID				listTopics
//	@Tags			topics
//	@Description	Lists topics by name.
//	@Produce		json
//	@Param			limit		query		int					false	"Most items to give"	minimum(1)	maximum(1000)	default(100)
//	@Param			pageToken	query		string				false	"nextPageToken of the page before"
//	@Param			totals		query		bool				false	"Whether each topic tells what its partitions hold together"	default(false)
//	@Success		200			{object}	openapi.TopicList	"A page of topics"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer
//	@Router			/topics [get]
func (s *Server) listTopics(x *exchange, r *http.Request, st store.Store) error {
	q := parseQuery(r.URL.RawQuery)
	limit, after := q.page(topicTokens)
	totals := q.boolean("totals")
	if err := q.done(); err != nil {
		return err
	}
	topics, err := visibleTopics(r.Context(), st, x.caller, after, limit+1)
	if err != nil {
		return err
	}
	topics, next := cutPage(topics, limit, topicTokens, func(t *store.Topic) string { return t.Name })
	list := openapi.TopicList{Items: make([]openapi.Topic, len(topics)), NextPageToken: next}
	for i := range topics {
		list.Items[i] = topicBody(&topics[i])
		if totals {
			list.Items[i].Totals = topicTotals(r.Context(), st, &topics[i])
		}
	}
	return writeJSON(x, http.StatusOK, list)
}

// visibleTopics is Topics for those that the caller may do anything with.
func visibleTopics(ctx context.Context, st store.Store, c *access.Caller, after string, limit int) ([]store.Topic, error) {
	var seen []store.Topic
	for {
		topics, err := st.Topics(ctx, after, limit)
		if err != nil || !c.Limited() {
			return topics, err
		}
		for i := range topics {
			if c.Covers(topics[i].Name) && len(seen) < limit {
				seen = append(seen, topics[i])
			}
		}
		if len(topics) < limit || len(seen) == limit {
			return seen, nil
		}
		after = topics[len(topics)-1].Name
	}
}

// createTopic creates a topic.
//
//	@Summary		Create a topic
//	@ID				createTopic
//	@Tags			topics
//	@Description	Creates a topic. Members that are absent get their defaults.
//	@Accept			json
//	@Produce		json
//	@Param			body	body		openapi.CreateTopicRequest	true	"The topic"
//	@Success		201		{object}	openapi.Topic				"Created"
//	@Header			201		{string}	Location					"Path of the topic"
//	@Header			201		{string}	ETag						"For If-Match"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	409	{object}	openapi.Problem	"topic-exists, topic-deleting"
//	@Failure	413	{object}	openapi.Problem	"too-large"
//	@Failure	415	{object}	openapi.Problem	"unsupported-media-type"
//	@Failure	422	{object}	openapi.Problem	"invalid-argument"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/topics [post]
func (s *Server) createTopic(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body openapi.CreateTopicRequest
	if _, err := s.decode(r, &body, bodyRules{required: []string{"name"}}); err != nil {
		return err
	}
	if err := x.caller.MayTopic(access.Admin, body.Name); err != nil {
		return err
	}
	partitions, config := topicWanted(body.Partitions, &body.TopicConfig)
	s.topicChanges.Lock()
	defer s.topicChanges.Unlock()
	t, err := st.CreateTopic(r.Context(), body.Name, partitions, config)
	if err != nil {
		return err
	}
	x.Header().Set("Location", "/topics/"+t.Name)
	return writeTopic(x, http.StatusCreated, &t)
}

// describeTopic describes a topic.
//
//	@Summary		Describe a topic
//	@ID				describeTopic
//	@Tags			topics
//	@Description	Describes a topic.
//	@Produce		json
//	@Param			topic			path		string			true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			If-None-Match	header		string			false	"ETag that the client has"
//	@Success		200				{object}	openapi.Topic	"The topic"
//	@Header			200				{string}	ETag			"For If-Match"
//	@Success		304				"Still as the client has it"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[produce]
//	@Security	bearer[consume]
//	@Router			/topics/{topic} [get]
func (s *Server) describeTopic(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	name, err := topicParam(r)
	if err != nil {
		return err
	}
	t, err := st.Topic(r.Context(), name)
	if err != nil {
		return err
	}
	x.Header()["Cache-Control"] = noCache
	if tag := topicTag(&t); matchesTag(r.Header["If-None-Match"], tag) {
		x.Header().Set("Etag", tag)
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	return writeTopic(x, http.StatusOK, &t)
}

// putTopic creates a topic, or confirms that it is as wanted.
//
//	@Summary		Create or confirm a topic
//	@ID				putTopic
//	@Tags			topics
//	@Description	Creates a topic, or confirms that it exists with the same partitions and configuration; absent members stand for their defaults. A topic that differs is a conflict: change it with PATCH.
//	@Accept			json
//	@Produce		json
//	@Param			topic		path		string					true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			If-Match	header		string					false	"ETag that the topic must have"
//	@Param			body		body		openapi.PutTopicRequest	true	"What the topic is to be"
//	@Success		200			{object}	openapi.Topic			"It is so already"
//	@Success		201			{object}	openapi.Topic			"Created"
//	@Header			201			{string}	Location				"Path of the topic"
//	@Header			200,201		{string}	ETag					"For If-Match"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	409	{object}	openapi.Problem	"topic-exists, topic-deleting"
//	@Failure	412	{object}	openapi.Problem	"version-mismatch"
//	@Failure	413	{object}	openapi.Problem	"too-large"
//	@Failure	415	{object}	openapi.Problem	"unsupported-media-type"
//	@Failure	422	{object}	openapi.Problem	"invalid-argument"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/topics/{topic} [put]
func (s *Server) putTopic(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body openapi.PutTopicRequest
	if _, err := s.decode(r, &body, bodyRules{}); err != nil {
		return err
	}
	name := pathParam(r, "topic")
	if !store.ValidTopicName(name) {
		return invalid("topic", topicNameRule)
	}
	partitions, config := topicWanted(body.Partitions, &body.TopicConfig)
	s.topicChanges.Lock()
	defer s.topicChanges.Unlock()
	t, err := st.Topic(r.Context(), name)
	switch {
	case store.CodeOf(err) == store.CodeUnknownTopic && r.Header["If-Match"] != nil:
		return versionMismatch("the topic does not exist")
	case store.CodeOf(err) == store.CodeUnknownTopic:
		if t, err = st.CreateTopic(r.Context(), name, partitions, config); err != nil {
			return err
		}
		x.Header().Set("Location", "/topics/"+t.Name)
		return writeTopic(x, http.StatusCreated, &t)
	case err != nil:
		return err
	}
	if err := checkIfMatch(r, &t); err != nil {
		return err
	}
	if t.Partitions != partitions || t.Config != config {
		return store.Errorf(store.CodeTopicExists, "topic %s exists with other partitions or another configuration", name)
	}
	return writeTopic(x, http.StatusOK, &t)
}

// updateTopic changes a topic.
//
//	@Summary		Change a topic
//	@ID				updateTopic
//	@Tags			topics
//	@Description	Changes the configuration by a merge patch (RFC 7396): what is absent stays, null goes back to its default. Partitions may only grow.
//	@Accept			json,application/merge-patch+json
//	@Produce		json
//	@Param			topic		path		string						true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			If-Match	header		string						false	"ETag that the topic must have"
//	@Param			body		body		openapi.UpdateTopicRequest	true	"The change"
//	@Success		200			{object}	openapi.Topic				"The topic as it is now"
//	@Header			200			{string}	ETag						"For If-Match"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic"
//	@Failure	409	{object}	openapi.Problem	"topic-deleting"
//	@Failure	412	{object}	openapi.Problem	"version-mismatch"
//	@Failure	413	{object}	openapi.Problem	"too-large"
//	@Failure	415	{object}	openapi.Problem	"unsupported-media-type"
//	@Failure	422	{object}	openapi.Problem	"invalid-argument"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/topics/{topic} [patch]
func (s *Server) updateTopic(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body openapi.UpdateTopicRequest
	nulls, err := s.decode(r, &body, bodyRules{types: []string{mediaMergePatch}, nulls: true})
	if err != nil {
		return err
	}
	name, err := topicParam(r)
	if err != nil {
		return err
	}
	s.topicChanges.Lock()
	defer s.topicChanges.Unlock()
	t, err := st.UpdateTopic(r.Context(), name, func(t store.Topic) (store.Topic, error) {
		if err := checkIfMatch(r, &t); err != nil {
			return t, err
		}
		reset(&t, nulls)
		if body.Partitions != nil {
			t.Partitions = *body.Partitions
		}
		applyConfig(&t.Config, &openapi.TopicConfig{
			RetentionMs: body.RetentionMs, RetentionBytes: body.RetentionBytes,
			SegmentBytes: body.SegmentBytes, SegmentMs: body.SegmentMs,
			MaxBatchBytes: body.MaxBatchBytes, ProducerExpiryMs: body.ProducerExpiryMs,
			MaxProducers: body.MaxProducers, RequireIdempotence: body.RequireIdempotence,
		})
		return t, nil
	})
	if err != nil {
		return err
	}
	return writeTopic(x, http.StatusOK, &t)
}

// deleteTopic deletes a topic.
//
//	@Summary		Delete a topic
//	@ID				deleteTopic
//	@Tags			topics
//	@Description	Deletes a topic with its records, producer state and snapshots. One created again under the same name starts empty.
//	@Produce		json
//	@Param			topic		path	string	true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			If-Match	header	string	false	"ETag that the topic must have"
//	@Success		204			"Deleted"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic"
//	@Failure	409	{object}	openapi.Problem	"topic-deleting"
//	@Failure	412	{object}	openapi.Problem	"version-mismatch"
//	@Failure	503	{object}	openapi.Problem	"draining, storage-failed"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/topics/{topic} [delete]
func (s *Server) deleteTopic(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	name, err := topicParam(r)
	if err != nil {
		return err
	}
	s.topicChanges.Lock()
	defer s.topicChanges.Unlock()
	if r.Header["If-Match"] != nil {
		t, err := st.Topic(r.Context(), name)
		if err != nil {
			return err
		}
		if err := checkIfMatch(r, &t); err != nil {
			return err
		}
	}
	if err := st.DeleteTopic(r.Context(), name); err != nil {
		return err
	}
	return noContent(x)
}

// topicWanted is what a request to create asks for.
func topicWanted(partitions *int, c *openapi.TopicConfig) (int, store.Config) {
	n, config := 1, store.DefaultConfig()
	if partitions != nil {
		n = *partitions
	}
	applyConfig(&config, c)
	return n, config
}

func applyConfig(to *store.Config, c *openapi.TopicConfig) {
	set(&to.RetentionMs, c.RetentionMs)
	set(&to.RetentionBytes, c.RetentionBytes)
	set(&to.SegmentBytes, c.SegmentBytes)
	set(&to.SegmentMs, c.SegmentMs)
	set(&to.MaxBatchBytes, c.MaxBatchBytes)
	set(&to.ProducerExpiryMs, c.ProducerExpiryMs)
	set(&to.MaxProducers, c.MaxProducers)
	set(&to.RequireIdempotence, c.RequireIdempotence)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// reset gives the named members their defaults.
func reset(t *store.Topic, members []string) {
	c, defaults := &t.Config, store.DefaultConfig()
	for _, m := range members {
		switch m {
		case "partitions":
			t.Partitions = 1
		case "retentionMs":
			c.RetentionMs = defaults.RetentionMs
		case "retentionBytes":
			c.RetentionBytes = defaults.RetentionBytes
		case "segmentBytes":
			c.SegmentBytes = defaults.SegmentBytes
		case "segmentMs":
			c.SegmentMs = defaults.SegmentMs
		case "maxBatchBytes":
			c.MaxBatchBytes = defaults.MaxBatchBytes
		case "producerExpiryMs":
			c.ProducerExpiryMs = defaults.ProducerExpiryMs
		case "maxProducers":
			c.MaxProducers = defaults.MaxProducers
		case "requireIdempotence":
			c.RequireIdempotence = defaults.RequireIdempotence
		}
	}
}

func topicBody(t *store.Topic) openapi.Topic {
	return openapi.Topic{
		Name: t.Name, ID: t.ID, Partitions: t.Partitions,
		RetentionMs: t.Config.RetentionMs, RetentionBytes: t.Config.RetentionBytes,
		SegmentBytes: t.Config.SegmentBytes, SegmentMs: t.Config.SegmentMs,
		MaxBatchBytes: t.Config.MaxBatchBytes, ProducerExpiryMs: t.Config.ProducerExpiryMs,
		MaxProducers: t.Config.MaxProducers, RequireIdempotence: t.Config.RequireIdempotence,
		Version: t.Version, CreatedAt: formatTime(t.CreatedAt),
	}
}

func writeTopic(x *exchange, status int, t *store.Topic) error {
	x.Header().Set("Etag", topicTag(t))
	return writeJSON(x, status, topicBody(t))
}

// topicTag is the entity tag of a topic's configuration.
func topicTag(t *store.Topic) string {
	return `"` + t.ID + "-" + strconv.FormatInt(t.Version, 10) + `"`
}
