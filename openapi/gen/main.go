// Command gen writes the OpenAPI 3.1 document of the HTTP API, as JSON and as YAML.
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
	if err := fix(doc); err != nil {
		return err
	}
	json, err := encodeJSON(doc)
	if err != nil {
		return err
	}
	if err := validate(ctx, json); err != nil {
		return err
	}
	yaml, err := encodeYAML(json)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "openapi.json"), json, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "openapi.yaml"), yaml, 0o644)
}

// fix turns the converted document into 3.1. The order matters: schemas are final
// before examples are made from them.
func fix(doc *openapi3.T) error {
	doc.OpenAPI = "3.1.0"
	doc.Info.Contact = nil // swag leaves an empty one
	doc.Servers = openapi3.Servers{{URL: "/", Description: "The server that serves this document"}}
	optionalBearer(doc)
	if err := fixSchemas(doc); err != nil {
		return err
	}
	if err := fixOperations(doc); err != nil {
		return err
	}
	return closeRequests(doc)
}

// optionalBearer adds bearer tokens, which 2.0 has no word for. The empty requirement
// stands first because access control is off unless tokens are configured.
func optionalBearer(doc *openapi3.T) {
	doc.Components.SecuritySchemes = openapi3.SecuritySchemes{
		"bearer": {Value: &openapi3.SecurityScheme{
			Type:        "http",
			Scheme:      "bearer",
			Description: "Needed when the server is configured with tokens.",
		}},
	}
	doc.Security = openapi3.SecurityRequirements{{}, {"bearer": {}}}
}

// validate loads the document afresh, as a client would.
func validate(ctx context.Context, json []byte) error {
	doc, err := openapi3.NewLoader().LoadFromData(json)
	if err != nil {
		return fmt.Errorf("load the document: %w", err)
	}
	if err := doc.Validate(ctx, openapi3.EnableExamplesValidation()); err != nil {
		return fmt.Errorf("validate the document: %w", err)
	}
	return nil
}
