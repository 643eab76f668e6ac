// Package spec holds the OpenAPI document of the HTTP API. It stands apart from the
// wire types, so that a client which needs these does not link the document.
//
// The files are written by go generate in package openapi.
package spec

import _ "embed"

// JSON returns the document as JSON. The bytes are the caller's own.
func JSON() []byte { return []byte(document) }

// YAML returns the same document as YAML. The bytes are the caller's own.
func YAML() []byte { return []byte(documentYAML) }

//go:embed openapi.json
var document string

//go:embed openapi.yaml
var documentYAML string
