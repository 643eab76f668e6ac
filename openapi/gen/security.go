package main

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// securitySchemes adds what 2.0 has no word for.
func securitySchemes() openapi3.SecuritySchemes {
	return openapi3.SecuritySchemes{
		"bearer": {Value: &openapi3.SecurityScheme{
			Type:   "http",
			Scheme: "bearer",
			Description: "A token made by `oncelog token create`. Its scopes are produce, consume and admin, which includes the others; " +
				"it may be limited to topics by prefixes of their names. Needed unless the server lets everybody in.",
		}},
		"ticket": {Value: &openapi3.SecurityScheme{
			Type: "apiKey", In: "query", Name: "ticket",
			Description: "A ticket from POST /tickets, good for one event stream.",
		}},
	}
}

// secure says what an operation asks of its caller. The empty requirement stands first
// because access control is off unless it is configured. Operations without a security
// annotation never ask.
//
// The scopes, of which one will do, go into an extension and into words: only OAuth has a
// place for them.
func secure(op *openapi3.Operation) {
	if op.Security == nil {
		op.Security = &openapi3.SecurityRequirements{}
		return
	}
	var scopes []string
	names := []string{}
	for _, requirement := range *op.Security {
		for name, some := range requirement {
			scopes = append(scopes, some...)
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	all := openapi3.SecurityRequirements{{}}
	for _, name := range names {
		all = append(all, openapi3.SecurityRequirement{name: {}})
	}
	op.Security = &all
	if len(scopes) == 0 {
		return
	}
	if op.Extensions == nil {
		op.Extensions = map[string]any{}
	}
	op.Extensions["x-scopes"] = scopes
	op.Description += "\n\nScope: `" + strings.Join(scopes, "` or `") + "`."
}
