package main

import (
	"bytes"
	"encoding/json"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"
)

// encodeJSON writes the parts of the document in the order in which they are read.
// Within them members are sorted by name, and two documents differ only where their
// sources do.
func encodeJSON(doc *openapi3.T) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		OpenAPI    string                        `json:"openapi"`
		Info       *openapi3.Info                `json:"info"`
		Servers    openapi3.Servers              `json:"servers"`
		Security   openapi3.SecurityRequirements `json:"security"`
		Tags       openapi3.Tags                 `json:"tags"`
		Paths      *openapi3.Paths               `json:"paths"`
		Components *openapi3.Components          `json:"components"`
	}{doc.OpenAPI, doc.Info, doc.Servers, doc.Security, doc.Tags, doc.Paths, doc.Components})
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// encodeYAML writes the same document as YAML, in the same order.
func encodeYAML(document []byte) ([]byte, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(document, &n); err != nil {
		return nil, err
	}
	plain(&n)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return nil, err
	}
	return b.Bytes(), enc.Close()
}

// plain forgets that a node was read from JSON: no braces, and quotes only where YAML
// would otherwise read something else than the string.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plain(c)
	}
}
