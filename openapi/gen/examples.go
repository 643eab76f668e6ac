package main

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// binaryBatch holds the one text value "hello 44", which was chosen so that all bytes,
// those of the checksum too, are ASCII: a document in JSON can hold no others.
const binaryBatch = "OL\x01\x00" + "\x00\x00\x00\x01" + "\x00\x00\x00\x03" + "\x00\x00\x00\x0a" + "3u$5" +
	"\x01\x01\x00" + "\x00\x08hello 44"

// bodyExample is the example of an operation's body. Requests are to be tried on the page
// about the API, in whatever order, on a server that is new or not: none asks for a
// setting that another would refuse, and the batch has the three records that the
// examples of offsets and sequences count on.
func bodyExample(all openapi3.Schemas, s *openapi3.SchemaRef) any {
	type object = map[string]any
	switch refName(s.Ref) {
	case "CreateTopicRequest":
		return object{"name": "orders", "partitions": 1}
	case "PutTopicRequest":
		return object{"partitions": 1}
	case "UpdateTopicRequest":
		return object{"retentionMs": -1}
	case "AppendRequest":
		return object{"pid": 0, "epoch": 0, "baseSeq": 0, "records": []any{
			object{
				"key": "order-17", "value": object{"sku": "A-17", "quantity": 2},
				"headers": []any{object{"name": "trace", "value": "4bf92f35"}},
			},
			object{"key": "order-18", "value": object{"sku": "B-4", "quantity": 1}},
			object{"key": "order-18", "valueText": "cancelled"},
		}}
	}
	return exampleOf(all, s)
}

// binaryRead holds the same batch as a read gives it: behind its base offset, 0, and its
// time of arrival, which was chosen for the same reason.
const binaryRead = "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x01\x7f\x00\x00\x00\x00" + binaryBatch

func refName(ref string) string {
	if ref == "" {
		return ""
	}
	return path.Base(ref)
}

// exampleOf builds a value from the examples of a schema's parts. Members that are
// neither required nor have an example are left out.
func exampleOf(all openapi3.Schemas, r *openapi3.SchemaRef) any {
	if name := refName(r.Ref); name != "" {
		r = all[name]
	}
	s := r.Value
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case len(s.AllOf) == 1:
		return exampleOf(all, s.AllOf[0])
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Type.Includes("null"):
		return nil
	case s.Type.Is("array"):
		if item := exampleOf(all, s.Items); item != nil {
			return []any{item}
		}
		return []any{}
	case s.Type.Is("object"):
		value := map[string]any{}
		for name, p := range s.Properties {
			if v := exampleOf(all, p); v != nil || slices.Contains(s.Required, name) {
				value[name] = v
			}
		}
		return value
	}
	return nil
}

// lines writes values one a line, as NDJSON has them.
func lines(values ...any) (string, error) {
	var b strings.Builder
	for _, v := range values {
		line, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String(), nil
}
