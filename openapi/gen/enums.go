package main

import (
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/oncelog/oncelog/openapi"
)

// nameEnums makes schemas of their own of the lists of words that clients compare with,
// so that generators write one type for each.
func nameEnums(all openapi3.Schemas) error {
	codes := &openapi3.Schema{
		Type:        &openapi3.Types{"string"},
		Description: "ProblemCode says what has gone wrong. The list is closed; /problems explains each.",
	}
	for _, p := range openapi.ProblemTypes() {
		codes.Enum = append(codes.Enum, p.Code)
	}
	all["ProblemCode"] = &openapi3.SchemaRef{Value: codes}
	reason := all["Snapshot"].Value.Properties["reason"].Value
	all["SnapshotReason"] = &openapi3.SchemaRef{Value: &openapi3.Schema{
		Type:        reason.Type,
		Enum:        reason.Enum,
		Description: "SnapshotReason says why a snapshot was taken.",
	}}
	for _, m := range []struct{ schema, property, enum string }{
		{"Problem", "code", "ProblemCode"},
		{"Problem", "outcome", "Outcome"},
		{"Snapshot", "reason", "SnapshotReason"},
		{"SnapshotDetail", "reason", "SnapshotReason"},
	} {
		s := all[m.schema]
		if s == nil || s.Value.Properties[m.property] == nil {
			return fmt.Errorf("no %s.%s to name", m.schema, m.property)
		}
		p := s.Value.Properties[m.property].Value
		s.Value.Properties[m.property] = &openapi3.SchemaRef{Value: &openapi3.Schema{
			Description: p.Description,
			Examples:    p.Examples,
			AllOf:       openapi3.SchemaRefs{schemaRef(m.enum)},
		}}
	}
	return nil
}
