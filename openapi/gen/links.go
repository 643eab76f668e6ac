package main

import (
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// links say what can be asked about the thing that an answer names. People read them,
// and tests walk along them.
func links() []link {
	const (
		name      = "topic=$response.body#/name"
		topic     = "topic=$response.body#/topic"
		partition = "partition=$response.body#/partition"
		offset    = "offset=$response.body#/baseOffset"
		first     = "topic=$response.body#/items/0/topic partition=$response.body#/items/0/partition "
		producer  = first + "pid=$response.body#/items/0/pid"
		snapshot  = first + "offset=$response.body#/items/0/offset"
	)
	return []link{
		{"createTopic", "201", "describeTopic", name},
		{"createTopic", "201", "updateTopic", name},
		{"createTopic", "201", "appendBatch", name + " partition=0"},
		{"createTopic", "201", "describePartition", name + " partition=0"},
		{"createTopic", "201", "deleteTopic", name},
		{"putTopic", "201", "appendBatch", name + " partition=0"},
		{"allocateProducer", "201", "describeProducer", "pid=$response.body#/pid"},
		{"appendBatch", "200", "readRecords", topic + " " + partition + " " + offset},
		{"appendBatch", "200", "listBatches", topic + " " + partition + " " + offset},
		{"appendBatch", "200", "listPartitionProducers", topic + " " + partition},
		{"appendBatch", "200", "rollPartition", topic + " " + partition},
		{"listPartitionProducers", "200", "describePartitionProducer", producer},
		{"listPartitionProducers", "200", "expireProducer", producer},
		{"takeSnapshots", "201", "describeSnapshot", snapshot},
		{"takeSnapshots", "201", "verifySnapshot", snapshot},
		{"takeSnapshots", "201", "deleteSnapshot", snapshot},
	}
}

// link leads from an answer of one operation to another operation, with values for some
// of its parameters.
type link struct{ from, status, to, parameters string }

func addLinks(doc *openapi3.T) error {
	operations := map[string]*openapi3.Operation{}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			operations[op.OperationID] = op
		}
	}
	for _, l := range links() {
		from, to := operations[l.from], operations[l.to]
		if from == nil || to == nil || from.Responses.Value(l.status) == nil {
			return fmt.Errorf("no %s with %s, or no %s, to link", l.from, l.status, l.to)
		}
		parameters := map[string]any{}
		for pair := range strings.FieldsSeq(l.parameters) {
			name, value, _ := strings.Cut(pair, "=")
			parameters[name] = value
		}
		r := from.Responses.Value(l.status).Value
		if r.Links == nil {
			r.Links = openapi3.Links{}
		}
		r.Links[l.to] = &openapi3.LinkRef{Value: &openapi3.Link{
			OperationID: l.to,
			Description: to.Summary + ".",
			Parameters:  parameters,
		}}
	}
	return nil
}
