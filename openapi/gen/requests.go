package main

import "github.com/getkin/kin-openapi/openapi3"

// closeRequests forbids unknown members in the bodies of requests, as the server does.
// What also occurs in responses stays open: an old client must be able to read what a
// newer server adds.
func closeRequests(doc *openapi3.T) {
	sent, received := reached(doc)
	for name := range sent {
		if s := doc.Components.Schemas[name]; !received[name] && s.Value.Type.Is("object") {
			s.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: new(false)}
		}
	}
}

// dropUnused removes schemas that only events are made of: those have served for an
// example, and a document before 3.2 cannot refer to them.
func dropUnused(doc *openapi3.T) {
	sent, received := reached(doc)
	for name := range doc.Components.Schemas {
		if !sent[name] && !received[name] {
			delete(doc.Components.Schemas, name)
		}
	}
}

// reached gives the names of the schemas that requests and answers are made of.
func reached(doc *openapi3.T) (sent, received map[string]bool) {
	sent, received = map[string]bool{}, map[string]bool{}
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
	return sent, received
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
