package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
)

// readAnnotations runs swag over the server and the contract, and converts what it
// finds to OpenAPI 3.0.
//
// Directories are listed because the module has no Go file at its root, which swag
// needs when it starts there.
func readAnnotations(ctx context.Context, root string) (*openapi3.T, error) {
	tmp, err := os.MkdirTemp("", "oncelog-openapi-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)

	swag := exec.CommandContext(ctx, "go", "tool", "swag", "init", "--quiet",
		"--dir", "./server,./openapi", "--generalInfo", "doc.go",
		"--outputTypes", "json", "--output", tmp)
	swag.Dir = root
	if out, err := swag.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("read the annotations: %w\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(tmp, "swagger.json"))
	if err != nil {
		return nil, err
	}
	var v2 openapi2.T
	if err := json.Unmarshal(dropPackageNames(data), &v2); err != nil {
		return nil, fmt.Errorf("parse the annotations: %w", err)
	}
	keepExamples(&v2)
	v3, err := openapi2conv.ToV3(&v2)
	if err != nil {
		return nil, fmt.Errorf("convert to OpenAPI 3: %w", err)
	}
	return v3, nil
}

// exampleKey carries the example of a parameter through the conversion: 2.0 has none, and
// swag writes one all the same.
const exampleKey = "x-example"

func keepExamples(v2 *openapi2.T) {
	for _, item := range v2.Paths {
		for _, op := range item.Operations() {
			for _, p := range op.Parameters {
				if example, ok := p.Extensions["example"]; ok {
					p.Extensions[exampleKey] = example
				}
			}
		}
	}
}

var qualified = regexp.MustCompile(`"(#/definitions/)?openapi\.([A-Z][A-Za-z]*)"`)

// dropPackageNames turns openapi.Topic into Topic. Types with an @name annotation have
// short names already; generators choke on the dots of the others.
func dropPackageNames(swagger []byte) []byte {
	return qualified.ReplaceAll(swagger, []byte(`"$1$2"`))
}

// dropExtensions removes what swag and the conversion leave behind for each other.
func dropExtensions(m map[string]any) map[string]any {
	for k := range m {
		if k == "x-originalParamName" || k == "x-formData-name" || k == exampleKey || strings.HasPrefix(k, "x-enum-") {
			delete(m, k)
		}
	}
	return m
}
