package main

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

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
