package server

import (
	"context"
	"net/http"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/store"
)

// listPartitions lists the partitions of a topic.
//
//	@Summary		List a topic's partitions
//	@ID				listPartitions
//	@Tags			partitions
//	@Description	Describes the partitions of a topic, by number.
//	@Produce		json
//	@Param			topic		path		string					true	"Topic"	minLength(1)	maxLength(249)	example(orders)
//	@Param			limit		query		int						false	"Most items to give"	minimum(1)	maximum(1000)	default(100)
//	@Param			pageToken	query		string					false	"nextPageToken of the page before"
//	@Success		200			{object}	openapi.PartitionList	"A page of partitions"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"unknown-topic"
//	@Failure	503	{object}	openapi.Problem	"draining"
//	@Security	bearer[produce]
//	@Security	bearer[consume]
//	@Router			/topics/{topic}/partitions [get]
func (s *Server) listPartitions(x *exchange, r *http.Request, st store.Store) error {
	q := parseQuery(r.URL.RawQuery)
	limit, after := q.numberedPage(numberTokens)
	if err := q.done(); err != nil {
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
	numbers := make([]int64, 0, limit+1)
	for n := after + 1; n < int64(t.Partitions) && len(numbers) <= limit; n++ {
		numbers = append(numbers, n)
	}
	numbers, next := cutPage(numbers, limit, numberTokens, func(n *int64) string { return decimal(*n) })
	list := openapi.PartitionList{Items: make([]openapi.Partition, len(numbers)), NextPageToken: next}
	for i, n := range numbers {
		info, err := st.Partition(r.Context(), store.Partition{Topic: name, Number: int(n)})
		if err != nil {
			return err
		}
		list.Items[i] = partitionBody(&info)
	}
	return writeJSON(x, http.StatusOK, list)
}

// topicTotals sums up a topic, nil when it goes meanwhile.
func topicTotals(ctx context.Context, st store.Store, t *store.Topic) *openapi.TopicTotals {
	var sum openapi.TopicTotals
	for n := range t.Partitions {
		info, err := st.Partition(ctx, store.Partition{Topic: t.Name, Number: n})
		if err != nil {
			return nil
		}
		sum.Records += info.HighWatermark - info.Earliest
		sum.Appended += info.HighWatermark
		sum.Bytes += info.Bytes
		sum.Parked += info.Parked
	}
	return &sum
}
