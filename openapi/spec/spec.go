// Package spec holds the OpenAPI document of the HTTP API. It stands apart from the
// wire types, so that a client which needs these does not link the document.
//
// The files are written by go generate in package openapi.
package spec

import _ "embed"

// JSON returns the document, OpenAPI 3.1, as JSON. The bytes are the caller's own.
func JSON() []byte { return []byte(document) }

// YAML returns the same document as YAML. The bytes are the caller's own.
func YAML() []byte { return []byte(documentYAML) }

// JSON30 returns the same in terms of OpenAPI 3.0.3, for generators that do not know
// 3.1. The bytes are the caller's own.
func JSON30() []byte { return []byte(document30) }

//go:embed openapi.json
var document string

//go:embed openapi.yaml
var documentYAML string

//go:embed openapi-3.0.json
var document30 string
