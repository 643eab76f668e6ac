package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	maxInteger   = 1<<53 - 1
	maxTimestamp = 253402300799999 // 9999-12-31T23:59:59.999Z, in milliseconds

	// topicName says in a regular expression without look-ahead what the contract says
	// in words: 1 to 249 of the set, but neither . nor ..
	topicName = `^(\.{0,2}[A-Za-z0-9_-]|\.{3})[A-Za-z0-9._-]*$`
	hex32     = `^[0-9a-f]{8}$`

	// place is a place in a partition, as the query parameter offset names it.
	place = `^(earliest|latest|0|-?[1-9][0-9]{0,15})$`
	// streamPath is the path of an event stream.
	streamPath = `^(/events|/topics/[A-Za-z0-9._-]{1,249}/partitions/[0-9]{1,4}/records)$`
)

func schemaRef(name string) *openapi3.SchemaRef {
	return &openapi3.SchemaRef{Ref: "#/components/schemas/" + name}
}

func fixSchemas(doc *openapi3.T, root string) error {
	if err := describeSchemas(doc.Components.Schemas, root); err != nil {
		return err
	}
	for _, s := range doc.Components.Schemas {
		walkSchema(s, fixSchema)
		wireNames(s.Value)
	}
	if err := nameEnums(doc.Components.Schemas); err != nil {
		return err
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

var word = regexp.MustCompile(`[\pL\pN]+`)

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
		{"StoredRecord", "value", anyJSON},
		{"AppendRecord", "key", func(s *openapi3.Schema) { s.MaxLength = new(uint64(32 << 10)) }},
		{"AppendRecord", "headers", items(0, 64)},
		{"AppendRequest", "records", items(1, 65536)},
		{"PartitionProducer", "recent", items(0, 5)},
		{"SnapshotProducer", "recent", items(0, 5)},
		{"CreateTopicRequest", "name", pattern(topicName)},
		{"TicketRequest", "path", pattern(streamPath)},
		{"BatchHeader", "crc", pattern(hex32)},
		{"Snapshot", "crc", pattern(hex32)},
		{"SnapshotDetail", "crc", pattern(hex32)},
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
	all["SnapshotRequest"].Value.DependentRequired = map[string][]string{"partition": {"topic"}}
	exactlyOne(all["AppendRecord"].Value, "value", "valueText", "valueBase64")
	apart(all["AppendRecord"].Value, "key", "keyBase64")
	return nil
}

func items(least, most uint64) func(*openapi3.Schema) {
	return func(s *openapi3.Schema) { s.MinItems, s.MaxItems = least, &most }
}

func pattern(re string) func(*openapi3.Schema) {
	return func(s *openapi3.Schema) { s.Pattern = re }
}

// anyJSON takes the type away, null included. Generators that leave members out when they
// are null are told by x-nullable that this null says something.
func anyJSON(s *openapi3.Schema) {
	*s = openapi3.Schema{
		Description: s.Description,
		Examples:    []any{map[string]any{"sku": "A-17", "quantity": 2}},
		Extensions:  map[string]any{"x-nullable": true},
	}
}

// together makes each of the members ask for the others.
func together(s *openapi3.Schema, names ...string) {
	s.DependentRequired = map[string][]string{}
	for _, n := range names {
		s.DependentRequired[n] = slices.DeleteFunc(slices.Clone(names), func(o string) bool { return o == n })
	}
}

// apart forbids more than one of the members. A union of objects would say the same, and
// make generators write a type for each.
func apart(s *openapi3.Schema, names ...string) {
	if s.DependentSchemas == nil {
		s.DependentSchemas = openapi3.Schemas{}
	}
	for i, n := range names[:len(names)-1] {
		s.DependentSchemas[n] = without(names[i+1:]...)
	}
}

// exactlyOne asks for one of the members, and forbids more.
func exactlyOne(s *openapi3.Schema, names ...string) {
	apart(s, names...)
	s.Not = without(names...)
}

// without matches objects that have none of the members.
func without(names ...string) *openapi3.SchemaRef {
	listed := openapi3.NewSchema()
	for _, n := range names {
		listed.Enum = append(listed.Enum, n)
	}
	return &openapi3.SchemaRef{Value: &openapi3.Schema{
		PropertyNames: &openapi3.SchemaRef{Value: &openapi3.Schema{Not: &openapi3.SchemaRef{Value: listed}}},
	}}
}
