// Command gen writes the OpenAPI 3.1 document of the HTTP API, as JSON and as YAML, and
// the same in terms of OpenAPI 3.0.
//
// It reads the annotations on the server's handlers and on the wire types (swag, which
// knows Swagger 2.0 only), converts the result, and then puts right what 2.0 cannot
// say: media types per status, null, unions, bearer tokens, examples. The output
// depends on the source alone, so that a second run changes nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v4"
)

func main() {
	root := flag.String("root", "..", "root `directory` of the module")
	out := flag.String("out", "spec", "`directory` to write to")
	flag.Parse()
	if err := run(context.Background(), *root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, out string) error {
	doc, err := readAnnotations(ctx, root)
	if err != nil {
		return err
	}
	if err := fix(doc, root); err != nil {
		return err
	}
	tree, err := newTree(doc)
	if err != nil {
		return err
	}
	current, err := writeDocument(ctx, filepath.Join(out, "openapi.json"), tree)
	if err != nil {
		return err
	}
	yaml, err := encodeYAML(tree)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "openapi.yaml"), yaml, 0o644); err != nil {
		return err
	}
	if doc, err = older(current); err != nil {
		return err
	}
	if tree, err = newTree(doc); err != nil {
		return err
	}
	_, err = writeDocument(ctx, filepath.Join(out, "openapi-3.0.json"), tree)
	return err
}

// writeDocument writes a document as JSON, unless it is not valid.
func writeDocument(ctx context.Context, path string, tree *yaml.Node) ([]byte, error) {
	document, err := encodeJSON(tree)
	if err != nil {
		return nil, err
	}
	if err := validate(ctx, document); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return document, os.WriteFile(path, document, 0o644)
}

// fix turns the converted document into 3.1. The order matters: schemas are final
// before examples are made from them.
func fix(doc *openapi3.T, root string) error {
	doc.OpenAPI = "3.1.0"
	doc.Info.Contact = nil // swag leaves an empty one
	doc.Servers = openapi3.Servers{{URL: "/", Description: "The server that serves this document"}}
	doc.Components.SecuritySchemes = securitySchemes()
	if err := fixSchemas(doc, root); err != nil {
		return err
	}
	if err := fixOperations(doc); err != nil {
		return err
	}
	if err := addLinks(doc); err != nil {
		return err
	}
	dropUnused(doc)
	closeRequests(doc)
	return nil
}

// validate loads the document afresh, as a client would.
func validate(ctx context.Context, document []byte) error {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return fmt.Errorf("load the document: %w", err)
	}
	if err := doc.Validate(ctx, openapi3.EnableExamplesValidation()); err != nil {
		return fmt.Errorf("validate the document: %w", err)
	}
	return nil
}
