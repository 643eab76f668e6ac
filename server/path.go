package server

import (
	"context"
	"net/http"
	"strconv"

	"github.com/oncelog/oncelog/store"
)

// topicParam returns the topic of the path. A name that breaks the rule is one that
// cannot exist.
func topicParam(r *http.Request) (string, error) {
	name := pathParam(r, "topic")
	if !store.ValidTopicName(name) {
		return "", unknownTopic(name)
	}
	return name, nil
}

func unknownTopic(name string) *store.Error {
	return store.Errorf(store.CodeUnknownTopic, "there is no topic %s", strconv.QuoteToASCII(name))
}

// partitionParam returns the partition of the path, which need not exist. That its
// number is one is part of the request's shape, and so is looked at before the name.
func partitionParam(r *http.Request) (store.Partition, error) {
	n, err := integerParam(r, "partition")
	if err != nil {
		return store.Partition{}, err
	}
	topic, err := topicParam(r)
	if err != nil {
		return store.Partition{}, err
	}
	return store.Partition{Topic: topic, Number: int(n)}, nil
}

// integerParam returns a number of the path.
func integerParam(r *http.Request, name string) (int64, error) {
	n, ok := parseInteger(pathParam(r, name))
	if !ok {
		return 0, malformed(name, "must be an integer from 0 to 9007199254740991")
	}
	return n, nil
}

// checkPartition fails unless topic and partition exist.
func checkPartition(ctx context.Context, st store.Store, p store.Partition) error {
	t, err := st.Topic(ctx, p.Topic)
	if err != nil {
		return err
	}
	if p.Number >= t.Partitions {
		return unknownPartition(p)
	}
	return nil
}

func unknownPartition(p store.Partition) *store.Error {
	return store.Errorf(store.CodeUnknownPartition, "topic %s has no partition %d", p.Topic, p.Number)
}
