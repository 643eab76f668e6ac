package main

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// older says in OpenAPI 3.0 what the 3.1 document says, for generators that know no
// better. What 3.0 has no word for is left out: it only forbids, and the server refuses
// it all the same.
func older(document []byte) (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, err
	}
	doc.OpenAPI = "3.0.3"
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			olderOperation(op)
		}
	}
	for _, s := range doc.Components.Schemas {
		walkSchema(s, olderSchema)
	}
	olderHeaders(doc.Components.Headers)
	for _, r := range doc.Components.Responses {
		olderContent(r.Value.Content)
		olderHeaders(r.Value.Headers)
	}
	return doc, nil
}

func olderOperation(op *openapi3.Operation) {
	for _, p := range op.Parameters {
		walkSchema(p.Value.Schema, olderSchema)
	}
	if op.RequestBody != nil {
		olderContent(op.RequestBody.Value.Content)
	}
	for _, r := range op.Responses.Map() {
		if r.Ref == "" {
			olderContent(r.Value.Content)
			olderHeaders(r.Value.Headers)
		}
	}
}

func olderContent(content openapi3.Content) {
	for _, m := range content {
		walkSchema(m.Schema, olderSchema)
	}
}

func olderHeaders(headers openapi3.Headers) {
	for _, h := range headers {
		if h.Ref == "" {
			walkSchema(h.Value.Schema, olderSchema)
		}
	}
}

func olderSchema(s *openapi3.Schema) {
	if types := s.Type.Slice(); slices.Contains(types, "null") {
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
		s.Type, s.Nullable = (*openapi3.Types)(&types), true
	}
	if len(s.Examples) > 0 {
		s.Example, s.Examples = s.Examples[0], nil
	}
	nameWords(s)
	s.Not, s.DependentRequired, s.DependentSchemas = nil, nil, nil
	if s.Type.Is("object") && s.AdditionalProperties.Has == nil {
		// The default, but generators of Java refuse unknown members where it is not said.
		s.AdditionalProperties.Has = new(true)
	}
}

// nameWords says how the words of an enum are spelled as constants. Without it a hyphen
// becomes MINUS in Python.
func nameWords(s *openapi3.Schema) {
	var names []any
	for _, w := range s.Enum {
		if w, ok := w.(string); ok {
			names = append(names, strings.ToUpper(strings.ReplaceAll(w, "-", "_")))
		}
	}
	if len(names) == 0 || len(names) < len(s.Enum) {
		return
	}
	if s.Extensions == nil {
		s.Extensions = map[string]any{}
	}
	s.Extensions["x-enum-varnames"] = names
}
