package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"
)

// newTree writes the parts of the document in the order in which they are read. Within
// them members are sorted by name, and two documents differ only where their sources do.
func newTree(doc *openapi3.T) (*yaml.Node, error) {
	document, err := json.Marshal(struct {
		OpenAPI    string               `json:"openapi"`
		Info       *openapi3.Info       `json:"info"`
		Servers    openapi3.Servers     `json:"servers"`
		Tags       openapi3.Tags        `json:"tags"`
		Paths      *openapi3.Paths      `json:"paths"`
		Components *openapi3.Components `json:"components"`
	}{doc.OpenAPI, doc.Info, doc.Servers, doc.Tags, doc.Paths, doc.Components})
	if err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(document, &n); err != nil {
		return nil, err
	}
	sortContent(&n)
	return &n, nil
}

// sortContent puts the media types of each body into the order in which a client should
// prefer them. Generators make methods of the first.
func sortContent(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if types := n.Content[i+1]; n.Content[i].Value == "content" && types.Kind == yaml.MappingNode {
				sortPairs(types, mediaRank)
			}
		}
	}
	for _, c := range n.Content {
		sortContent(c)
	}
}

func mediaRank(name string) int {
	switch name {
	case "application/json":
		return 0
	case "*/*": // what is left when no other applies
		return 2
	default:
		return 1
	}
}

// sortPairs sorts a mapping, which holds keys and values in turn, by the rank of its
// keys. Keys of one rank stay as they are.
func sortPairs(mapping *yaml.Node, rank func(string) int) {
	pairs := slices.Collect(slices.Chunk(slices.Clone(mapping.Content), 2))
	slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return cmp.Compare(rank(a[0].Value), rank(b[0].Value)) })
	mapping.Content = slices.Concat(pairs...)
}

func encodeJSON(document *yaml.Node) ([]byte, error) {
	var flat, b bytes.Buffer
	if err := writeJSON(&flat, document); err != nil {
		return nil, err
	}
	if err := json.Indent(&b, flat.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

func writeJSON(b *bytes.Buffer, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.DocumentNode:
		return writeJSON(b, n.Content[0])
	case n.Kind == yaml.MappingNode:
		b.WriteByte('{')
		for i, c := range n.Content {
			switch {
			case i%2 == 1:
				b.WriteByte(':')
			case i > 0:
				b.WriteByte(',')
			}
			if err := writeJSON(b, c); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case n.Kind == yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, c); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case n.Tag == "!!str":
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		return enc.Encode(n.Value)
	default: // as it was in JSON
		b.WriteString(n.Value)
	}
	return nil
}

// encodeYAML changes the style of the nodes.
func encodeYAML(document *yaml.Node) ([]byte, error) {
	plain(document)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(document); err != nil {
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
