package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

var schemaName = regexp.MustCompile(`@name (\w+)`)

// describeSchemas gives each schema the comment on its Go type, which swag leaves out.
func describeSchemas(all openapi3.Schemas, root string) error {
	files, err := filepath.Glob(filepath.Join(root, "openapi", "*.go"))
	if err != nil {
		return err
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE && len(d.Specs) == 1 {
				describeSchema(all, d)
			}
		}
	}
	for name, s := range all {
		if s.Value.Description == "" {
			return fmt.Errorf("schema %s has no description", name)
		}
	}
	return nil
}

func describeSchema(all openapi3.Schemas, d *ast.GenDecl) {
	t, ok := d.Specs[0].(*ast.TypeSpec)
	if !ok {
		return
	}
	name := t.Name.Name
	if m := schemaName.FindStringSubmatch(t.Comment.Text()); m != nil {
		name = m[1]
	}
	if s := all[name]; s != nil {
		text := strings.Join(strings.Fields(d.Doc.Text()), " ")
		s.Value.Description = strings.Replace(text, t.Name.Name, name, 1)
	}
}
