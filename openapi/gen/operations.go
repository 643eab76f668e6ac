package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// serviceTag marks the operations that do not need the store.
const serviceTag = "service"

func fixOperations(doc *openapi3.T) error {
	doc.Components.Examples = openapi3.Examples{}
	doc.Components.Headers = commonHeaders()
	doc.Components.Responses = openapi3.ResponseBodies{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		for method, op := range doc.Paths.Value(path).Operations() {
			if err := fixOperation(doc, method, op); err != nil {
				return fmt.Errorf("%s %s: %w", method, path, err)
			}
		}
	}
	return nil
}

func fixOperation(doc *openapi3.T, method string, op *openapi3.Operation) error {
	op.Extensions = dropExtensions(op.Extensions)
	for _, p := range op.Parameters {
		fixParameter(p.Value)
	}
	if op.RequestBody != nil {
		body := op.RequestBody.Value
		body.Extensions = dropExtensions(body.Extensions)
		if err := fixContent(doc, op.OperationID, body.Content); err != nil {
			return err
		}
	}
	problems, err := problemsByStatus(op, commonCodes(method, op))
	if err != nil {
		return err
	}
	responses := openapi3.NewResponsesWithCapacity(len(problems) + 1)
	for status, r := range op.Responses.Map() {
		if status >= "400" {
			continue
		}
		// Swagger 2.0 has one list of media types for all answers of an operation.
		delete(r.Value.Content, "application/problem+json")
		if err := fixContent(doc, op.OperationID, r.Value.Content); err != nil {
			return err
		}
		fixHeaders(r.Value)
		responses.Set(status, r)
	}
	for status, ps := range problems {
		responses.Set(strconv.Itoa(status), problemResponse(ps, doc.Components))
	}
	op.Responses = responses
	secure(op)
	return nil
}

// fixHeaders puts the schemas of a response's headers into 3.1 terms, and adds the one
// that every response has.
func fixHeaders(r *openapi3.Response) {
	if r.Headers == nil {
		r.Headers = openapi3.Headers{}
	}
	for _, h := range r.Headers {
		if h.Ref == "" {
			fixSchema(h.Value.Schema.Value)
		}
	}
	r.Headers["X-Request-Id"] = headerRef("RequestId")
}

func headerRef(name string) *openapi3.HeaderRef {
	return &openapi3.HeaderRef{Ref: "#/components/headers/" + name}
}

func commonHeaders() openapi3.Headers {
	header := func(description string, schema *openapi3.Schema) *openapi3.HeaderRef {
		return &openapi3.HeaderRef{Value: &openapi3.Header{Parameter: openapi3.Parameter{
			Description: description,
			Schema:      &openapi3.SchemaRef{Value: schema},
		}}}
	}
	text := func(example string) *openapi3.Schema {
		return &openapi3.Schema{Type: &openapi3.Types{"string"}, Examples: []any{example}}
	}
	headers := openapi3.Headers{
		"RequestId": header("Names the request in the log and in problems; the caller's own, if it sent one.", text("0b5c1f2e9d7a4c33")),
		"RetryAfter": header("Seconds to wait before the same request is sent again.",
			&openapi3.Schema{Type: &openapi3.Types{"integer"}, Format: "int32", Min: new(0.0), Max: new(86400.0), Examples: []any{1}}),
		"Challenge":       header("How to authenticate (RFC 9110 section 11.6.1).", text(`Bearer realm="oncelog"`)),
		"RateLimit":       header("What is left of the quota that is spent most, and when it is whole again.", text(`"requests";r=0;t=1`)),
		"RateLimitPolicy": header("The caller's quotas.", text(`"requests";q=100;w=1`)),
	}
	headers["RequestId"].Value.Required = true
	return headers
}

// fixParameter gives path parameters the rules of what they name. Only the example of a
// required one is that of the parameter itself: the page about the API fills it in.
func fixParameter(p *openapi3.Parameter) {
	example := p.Extensions[exampleKey]
	p.Extensions = dropExtensions(p.Extensions)
	if p.Schema == nil || p.Schema.Value == nil {
		return
	}
	s := p.Schema.Value
	if p.Required {
		p.Example = example
	} else if s.Example == nil {
		s.Example = example
	}
	fixSchema(s)
	switch {
	case p.Name == "topic":
		s.Pattern, s.MinLength, s.MaxLength = topicName, 1, new(uint64(249))
	case p.In == "query" && p.Name == "offset":
		s.Pattern = place
	case p.In == "path" && p.Name == "partition":
		s.Format, s.Min, s.Max = "int32", new(0.0), new(1023.0)
	}
}

// fixContent gives each media type of a body the schema and an example of its own; the
// conversion has put the same schema, that of the JSON form, under all of them.
func fixContent(doc *openapi3.T, operation string, content openapi3.Content) error {
	all := doc.Components.Schemas
	for name, m := range content {
		switch {
		case name == "application/json" || strings.HasSuffix(name, "+json"):
			m.Example = bodyExample(all, m.Schema)
		case name == "application/x-ndjson" || name == "text/event-stream":
			if err := stream(all, name, m); err != nil {
				return err
			}
		case name == "application/yaml":
			m.Schema = &openapi3.SchemaRef{Value: &openapi3.Schema{Type: &openapi3.Types{"object"}}}
			m.Example = map[string]any{"openapi": "3.1.0"}
		case name == "application/vnd.oncelog.batch" && operation == "readRecords":
			m.Schema = binary("Batches in the binary form that openapi/BATCH.md describes, each behind its base offset and arrival time (section Reading).")
			m.Example = binaryRead
		case name == "application/vnd.oncelog.batch":
			m.Schema = binary("A batch in the binary form that openapi/BATCH.md describes.")
			m.Example = binaryBatch
		case name == "application/octet-stream":
			m.Schema = binary("A store file, as `oncelog restore` takes it.")
			m.Example = "…"
		case name == "*/*":
			m.Schema = binary("The value of one record, verbatim. Its content type is kept with it.")
			m.Example = "42.1 kWh"
		default: // text
			m.Schema = &openapi3.SchemaRef{Value: &openapi3.Schema{Type: &openapi3.Types{"string"}}}
			m.Example = textExample(operation)
		}
	}
	return nil
}

func binary(description string) *openapi3.SchemaRef {
	return &openapi3.SchemaRef{Value: &openapi3.Schema{
		Type: &openapi3.Types{"string"}, Format: "binary", Description: description,
	}}
}

func textExample(operation string) string {
	switch operation {
	case "metrics":
		return "# HELP oncelog_build_info What is running.\n# TYPE oncelog_build_info gauge\noncelog_build_info{version=\"0.1.0\"} 1\n"
	case "events":
		return "The event stream is not built yet. See /metrics.\n"
	default:
		return "<!doctype html>\n"
	}
}

// stream describes a sequence of items. OpenAPI has a word for that, itemSchema, from 3.2
// on only; before, it is a string. The items are those of the list that the JSON form
// holds, or what the operation names if it has no JSON form.
func stream(all openapi3.Schemas, mediaType string, m *openapi3.MediaType) error {
	item, listed := m.Schema, false
	if list := all[refName(m.Schema.Ref)]; list != nil && list.Value.Properties["records"] != nil {
		item, listed = list.Value.Properties["records"].Value.Items, true
	}
	text, err := lines(exampleOf(all, item))
	if err != nil {
		return err
	}
	name := refName(item.Ref)
	description := fmt.Sprintf("One %s in JSON on each line.", name)
	if mediaType == "text/event-stream" {
		description = "Server-sent events, with data in JSON. The id of the last one, sent back in Last-Event-ID, goes on behind it. Comment lines keep the connection alive."
		text = "id: 0\ndata: " + text + "\n"
	}
	m.Schema = &openapi3.SchemaRef{Value: &openapi3.Schema{Type: &openapi3.Types{"string"}, Description: description}}
	m.Example = text
	if listed {
		m.Extensions = map[string]any{"x-itemSchema": map[string]any{"$ref": item.Ref}}
	}
	return nil
}
