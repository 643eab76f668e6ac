package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/oncelog/oncelog/openapi"
)

const (
	maxInteger   = 1<<53 - 1
	maxTimestamp = 253402300799999 // 9999-12-31T23:59:59.999Z, in milliseconds

	// topicName says in a regular expression without look-ahead what the contract says
	// in words: 1 to 249 of the set, but neither . nor ..
	topicName = `^(\.{0,2}[A-Za-z0-9_-]|\.{3})[A-Za-z0-9._-]*$`
	hex32     = `^[0-9a-f]{8}$`
)

func schemaRef(name string) *openapi3.SchemaRef {
	return &openapi3.SchemaRef{Ref: "#/components/schemas/" + name}
}

func fixSchemas(doc *openapi3.T) error {
	for _, s := range doc.Components.Schemas {
		walkSchema(s, fixSchema)
		wireNames(s.Value)
	}
	return patchSchemas(doc.Components.Schemas)
}

// walkSchema calls f for a schema and for those written out inside it.
func walkSchema(r *openapi3.SchemaRef, f func(*openapi3.Schema)) {
	if r == nil || r.Ref != "" || r.Value == nil {
		return
	}
	f(r.Value)
	for _, p := range r.Value.Properties {
		walkSchema(p, f)
	}
	walkSchema(r.Value.Items, f)
	walkSchema(r.Value.AdditionalProperties.Schema, f)
	for _, list := range []openapi3.SchemaRefs{r.Value.AllOf, r.Value.OneOf, r.Value.AnyOf} {
		for _, s := range list {
			walkSchema(s, f)
		}
	}
}

// fixSchema puts into 3.1 terms what 2.0 says by extensions and by omission.
func fixSchema(s *openapi3.Schema) {
	s.Extensions = dropExtensions(s.Extensions)
	if s.Type.Is("integer") {
		bound(s)
	}
	if s.Example != nil {
		s.Examples, s.Example = []any{s.Example}, nil
	}
	if s.Nullable {
		types := append(slices.Clone(s.Type.Slice()), "null")
		s.Type, s.Nullable = (*openapi3.Types)(&types), false
		if s.Enum != nil {
			s.Enum = append(s.Enum, nil)
		}
	}
	slices.Sort(s.Required)
}

var word = regexp.MustCompile(`\pL+`)

// wireNames turns the names of Go fields, which comments begin with, into those of the
// members that they become.
func wireNames(s *openapi3.Schema) {
	members := map[string]string{}
	for name := range s.Properties {
		members[strings.ToLower(name)] = name
	}
	for _, p := range s.Properties {
		if p.Value == nil {
			continue
		}
		text := strings.ReplaceAll(p.Value.Description, "\n", " ")
		p.Value.Description = word.ReplaceAllStringFunc(text, func(w string) string {
			if name, ok := members[strings.ToLower(w)]; ok && unicode.IsUpper([]rune(w)[0]) {
				return name
			}
			return w
		})
	}
}

// bound gives an integer the width and the range that it has on the wire.
func bound(s *openapi3.Schema) {
	if s.Min == nil {
		s.Min = new(0.0)
	}
	if s.Max == nil {
		s.Max = new(float64(maxInteger))
	}
	if s.Format == "" {
		s.Format = "int64"
		if *s.Max <= math.MaxInt32 {
			s.Format = "int32"
		}
	}
}

// patchSchemas adds what tags on Go types cannot express.
func patchSchemas(all openapi3.Schemas) error {
	for _, p := range []struct {
		schema, property string
		patch            func(*openapi3.Schema)
	}{
		{"AppendRecord", "value", anyJSON},
		{"Record", "value", anyJSON},
		{"AppendRecord", "timestamp", stringOrMillis},
		{"AppendRecord", "key", func(s *openapi3.Schema) { s.MaxLength = new(uint64(32 << 10)) }},
		{"AppendRecord", "headers", items(0, 64)},
		{"AppendRequest", "records", items(1, 65536)},
		{"PartitionProducer", "recent", items(0, 5)},
		{"SnapshotProducer", "recent", items(0, 5)},
		{"CreateTopicRequest", "name", pattern(topicName)},
		{"BatchHeader", "crc", pattern(hex32)},
		{"Snapshot", "crc", pattern(hex32)},
		{"SnapshotDetail", "crc", pattern(hex32)},
		{"Problem", "code", func(s *openapi3.Schema) { s.Enum = problemCodes() }},
		{"Problem", "type", func(s *openapi3.Schema) { s.Format = "uri-reference"; s.Pattern = "^/problems/[a-z-]+$" }},
		{"Problem", "status", func(s *openapi3.Schema) { s.Min, s.Max = new(400.0), new(599.0) }},
	} {
		s, ok := all[p.schema]
		if !ok || s.Value == nil || s.Value.Properties[p.property] == nil {
			return fmt.Errorf("no %s.%s to amend", p.schema, p.property)
		}
		ref := s.Value.Properties[p.property]
		ref.Ref = ""
		p.patch(ref.Value)
	}
	together(all["AppendRequest"].Value, "pid", "epoch", "baseSeq")
	all["AppendRecord"].Value.OneOf = exactlyOne("value", "valueText", "valueBase64")
	all["AppendRecord"].Value.Not = both("key", "keyBase64")
	return nil
}

func items(least, most uint64) func(*openapi3.Schema) {
	return func(s *openapi3.Schema) { s.MinItems, s.MaxItems = least, &most }
}

func pattern(re string) func(*openapi3.Schema) {
	return func(s *openapi3.Schema) { s.Pattern = re }
}

// anyJSON takes the type away, null included.
func anyJSON(s *openapi3.Schema) {
	*s = openapi3.Schema{
		Description: "Any JSON value. Its bytes are kept as they were sent; null is a tombstone.",
		Examples:    []any{map[string]any{"sku": "A-17", "quantity": 2}},
	}
}

func stringOrMillis(s *openapi3.Schema) {
	*s = openapi3.Schema{
		Description: s.Description,
		Examples:    s.Examples,
		OneOf: openapi3.SchemaRefs{
			{Value: &openapi3.Schema{Type: &openapi3.Types{"string"}, Format: "date-time"}},
			{Value: &openapi3.Schema{
				Type: &openapi3.Types{"integer"}, Format: "int64",
				Min: new(0.0), Max: new(float64(maxTimestamp)),
			}},
		},
	}
}

// together makes each of the members ask for the others.
func together(s *openapi3.Schema, names ...string) {
	s.DependentRequired = map[string][]string{}
	for _, n := range names {
		s.DependentRequired[n] = slices.DeleteFunc(slices.Clone(names), func(o string) bool { return o == n })
	}
}

// both matches an object that has all of the members. They are named once more as
// properties because linters look for them beside required.
func both(names ...string) *openapi3.SchemaRef {
	s := &openapi3.Schema{Required: names, Properties: openapi3.Schemas{}}
	for _, n := range names {
		s.Properties[n] = &openapi3.SchemaRef{Value: &openapi3.Schema{}}
	}
	return &openapi3.SchemaRef{Value: s}
}

func exactlyOne(names ...string) openapi3.SchemaRefs {
	var refs openapi3.SchemaRefs
	for _, n := range names {
		refs = append(refs, &openapi3.SchemaRef{Value: &openapi3.Schema{Required: []string{n}}})
	}
	return refs
}

func problemCodes() []any {
	var codes []any
	for _, p := range openapi.ProblemTypes() {
		codes = append(codes, p.Code)
	}
	return codes
}

// closeRequests forbids unknown members in the bodies of requests, as the server does.
// What also occurs in responses stays open: an old client must be able to read what a
// newer server adds.
func closeRequests(doc *openapi3.T) error {
	sent, received := map[string]bool{}, map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody != nil {
				reach(doc, op.RequestBody.Value.Content, sent)
			}
			for _, r := range op.Responses.Map() {
				reach(doc, r.Value.Content, received)
			}
		}
	}
	for name := range sent {
		if s := doc.Components.Schemas[name]; !received[name] && s.Value.Type.Is("object") {
			s.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: new(false)}
		}
	}
	return nil
}

// reach adds the names of all schemas that a body is made of.
func reach(doc *openapi3.T, content openapi3.Content, names map[string]bool) {
	var follow func(r *openapi3.SchemaRef)
	follow = func(r *openapi3.SchemaRef) {
		if r == nil {
			return
		}
		if name := refName(r.Ref); name != "" {
			if names[name] {
				return
			}
			names[name] = true
			r = doc.Components.Schemas[name]
		}
		for _, p := range r.Value.Properties {
			follow(p)
		}
		follow(r.Value.Items)
		for _, s := range r.Value.AllOf {
			follow(s)
		}
	}
	for _, m := range content {
		follow(m.Schema)
	}
}
