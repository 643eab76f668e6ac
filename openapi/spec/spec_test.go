package spec_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/openapi/spec"
	"github.com/oncelog/oncelog/store/batch"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(spec.JSON())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// operations returns all operations by method and path.
func operations(doc *openapi3.T) map[string]*openapi3.Operation {
	all := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all[method+" "+path] = op
		}
	}
	return all
}

func TestDocumentIsValid(t *testing.T) {
	doc := load(t)
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") {
		t.Errorf("version is %s", doc.OpenAPI)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

func TestJSONAndYAMLSayTheSame(t *testing.T) {
	var fromJSON, fromYAML any
	if err := json.Unmarshal(spec.JSON(), &fromJSON); err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := yaml.Unmarshal(spec.YAML(), &tree); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &fromYAML); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(fromJSON, fromYAML); d != "" {
		t.Error(d)
	}
}

func TestBytesAreTheCallersOwn(t *testing.T) {
	spec.JSON()[0] = 'x'
	spec.JSON30()[0] = 'x'
	spec.YAML()[0] = 'x'
	if spec.JSON()[0] != '{' || spec.JSON30()[0] != '{' || spec.YAML()[0] != 'o' {
		t.Error("a caller has changed the document for everybody")
	}
}

func TestOperationsAreDescribed(t *testing.T) {
	doc := load(t)
	var tags []string
	for _, tag := range doc.Tags {
		tags = append(tags, tag.Name)
		if tag.Description == "" {
			t.Errorf("tag %s has no description", tag.Name)
		}
	}
	ids := map[string]string{}
	for name, op := range operations(doc) {
		if op.OperationID == "" || op.Summary == "" || op.Description == "" {
			t.Errorf("%s lacks one of operationId, summary and description", name)
		}
		if other, ok := ids[op.OperationID]; ok {
			t.Errorf("%s and %s are both called %s", name, other, op.OperationID)
		}
		ids[op.OperationID] = name
		if len(op.Tags) != 1 || !slices.Contains(tags, op.Tags[0]) {
			t.Errorf("%s has tags %q", name, op.Tags)
		}
		for _, p := range op.Parameters {
			if p.Value.Description == "" {
				t.Errorf("%s: parameter %s has no description", name, p.Value.Name)
			}
		}
		for _, class := range []string{"2", "4", "5"} {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(op.Responses.Map())), func(s string) bool { return strings.HasPrefix(s, class) }) {
				t.Errorf("%s has no answer with status %sxx", name, class)
			}
		}
	}
}

func TestBodiesHaveExamples(t *testing.T) {
	check := func(name string, content openapi3.Content) {
		for media, m := range content {
			if m.Schema == nil {
				t.Errorf("%s: %s has no schema", name, media)
			}
			if m.Example == nil && len(m.Examples) == 0 {
				t.Errorf("%s: %s has no example", name, media)
			}
		}
	}
	for name, op := range operations(load(t)) {
		if op.RequestBody != nil {
			check(name+" request", op.RequestBody.Value.Content)
		}
		for status, r := range op.Responses.Map() {
			check(name+" "+status, r.Value.Content)
		}
	}
}

// TestOlderDocument: the document in terms of 3.0 is valid, has the same operations and
// schemas, and none of the words that 3.0 does not have.
func TestOlderDocument(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(spec.JSON30())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
	if doc.OpenAPI != "3.0.3" {
		t.Errorf("version is %s", doc.OpenAPI)
	}
	newer := load(t)
	if d := cmp.Diff(slices.Sorted(maps.Keys(operations(newer))), slices.Sorted(maps.Keys(operations(doc)))); d != "" {
		t.Errorf("operations: %s", d)
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(newer.Components.Schemas)), slices.Sorted(maps.Keys(doc.Components.Schemas))); d != "" {
		t.Errorf("schemas: %s", d)
	}
	for _, word := range []string{`"null"`, `"dependentRequired"`, `"dependentSchemas"`, `"propertyNames"`, `"const"`} {
		if bytes.Contains(spec.JSON30(), []byte(word)) {
			t.Errorf("3.0 has no %s", word)
		}
	}
	for name, s := range doc.Components.Schemas {
		if s.Value.Type.Is("object") && s.Value.AdditionalProperties.Has == nil {
			t.Errorf("%s: clients in Java will refuse members that are added later", name)
		}
		for member, p := range s.Value.Properties {
			types := newer.Components.Schemas[name].Value.Properties[member].Value.Type
			if types != nil && types.Includes("null") != p.Value.Nullable {
				t.Errorf("%s.%s: nullable is %t", name, member, p.Value.Nullable)
			}
			if p.Ref == "" && len(p.Value.Examples) > 0 {
				t.Errorf("%s.%s has a list of examples", name, member)
			}
		}
	}
}

// TestSchemasAreDescribed: every schema and every member, in words.
func TestSchemasAreDescribed(t *testing.T) {
	for name, s := range load(t).Components.Schemas {
		if s.Value.Description == "" {
			t.Errorf("%s has no description", name)
		}
		for member, p := range s.Value.Properties {
			if p.Value.Description == "" {
				t.Errorf("%s.%s has no description", name, member)
			}
		}
	}
}

// TestNoUnions: generators make one type of each schema, or none that anybody likes.
func TestNoUnions(t *testing.T) {
	var check func(name string, r *openapi3.SchemaRef)
	check = func(name string, r *openapi3.SchemaRef) {
		if r == nil || r.Value == nil {
			return
		}
		s := r.Value
		types := slices.DeleteFunc(slices.Clone(s.Type.Slice()), func(t string) bool { return t == "null" })
		if len(s.OneOf)+len(s.AnyOf) > 0 || len(s.AllOf) > 1 || len(types) > 1 {
			t.Errorf("%s is a union", name)
		}
		if r.Ref == "" {
			check(name+"[]", s.Items)
			for member, p := range s.Properties {
				check(name+"."+member, p)
			}
		}
	}
	doc := load(t)
	for name, s := range doc.Components.Schemas {
		check(name, s)
	}
	for name, op := range operations(doc) {
		for _, p := range op.Parameters {
			check(name+" "+p.Value.Name, p.Value.Schema)
		}
	}
}

// TestBinaryExample: the example of a binary batch is one that the server takes.
func TestBinaryExample(t *testing.T) {
	content := load(t).Paths.Value("/topics/{topic}/partitions/{partition}/batches").Post.RequestBody.Value.Content
	example, ok := content["application/vnd.oncelog.batch"].Example.(string)
	if !ok {
		t.Fatal("no example")
	}
	b, err := batch.Parse([]byte(example))
	if err != nil || b.Count != 1 {
		t.Errorf("%d records: %v", b.Count, err)
	}
}

func TestErrorsAreProblemsAndNothingElseIs(t *testing.T) {
	for name, op := range operations(load(t)) {
		for status, r := range op.Responses.Map() {
			_, problem := r.Value.Content[openapi.ProblemContentType]
			if isError := status >= "400"; problem != isError || (isError && len(r.Value.Content) != 1) {
				t.Errorf("%s %s answers %q", name, status, slices.Sorted(maps.Keys(r.Value.Content)))
			}
		}
	}
}

// TestEveryCodeAppears: each code is in the schema of problems, has an example under
// its own status, and is the answer of some operation. The two codes of requests that
// reach no operation are in the schema only.
func TestEveryCodeAppears(t *testing.T) {
	doc := load(t)
	answered := map[string]string{}
	for name, op := range operations(doc) {
		for status, r := range op.Responses.Map() {
			for _, m := range r.Value.Content {
				if m.Schema.Ref != "#/components/schemas/Problem" {
					continue
				}
				for code := range m.Examples {
					answered[code] = status
				}
				if len(m.Examples) == 0 {
					t.Errorf("%s %s names no code", name, status)
				}
			}
		}
	}
	var codes []any
	for _, p := range openapi.ProblemTypes() {
		codes = append(codes, p.Code)
		if p.Code == "not-found" || p.Code == "method-not-allowed" {
			continue
		}
		status, ok := answered[p.Code]
		if !ok {
			t.Errorf("no operation answers %s", p.Code)
			continue
		}
		example, err := json.Marshal(doc.Components.Examples[p.Code].Value.Value)
		if err != nil {
			t.Fatal(err)
		}
		var got openapi.Problem
		if err := json.Unmarshal(example, &got); err != nil {
			t.Fatal(err)
		}
		if got.Code != p.Code || got.Status != p.Status || got.Retryable != p.Retryable || got.Outcome != p.Outcome || status != strconv.Itoa(p.Status) {
			t.Errorf("%s under status %s has the example %s", p.Code, status, example)
		}
	}
	if d := cmp.Diff(codes, doc.Components.Schemas["ProblemCode"].Value.Enum); d != "" {
		t.Errorf("enum of codes: %s", d)
	}
}

// TestIntegersAreBounded: clients in languages without 64-bit integers rely on it.
func TestIntegersAreBounded(t *testing.T) {
	check := func(name string, r *openapi3.SchemaRef) {
		if s := r.Value; s.Type.Includes("integer") && (s.Format == "" || s.Min == nil || s.Max == nil || *s.Max > 1<<53-1) {
			t.Errorf("%s is an integer without format or bounds", name)
		}
	}
	doc := load(t)
	for name, s := range doc.Components.Schemas {
		for member, p := range s.Value.Properties {
			check(name+"."+member, p)
		}
	}
	for name, op := range operations(doc) {
		for _, p := range op.Parameters {
			check(name+" "+p.Value.Name, p.Value.Schema)
		}
		for _, r := range op.Responses.Map() {
			for header, h := range r.Value.Headers {
				check(name+" "+header, h.Value.Schema)
			}
		}
	}
}

// TestRequestsAreClosed: unknown members are refused in requests, and must not be in
// what clients read.
func TestRequestsAreClosed(t *testing.T) {
	for name, s := range load(t).Components.Schemas {
		closed := s.Value.AdditionalProperties.Has != nil && !*s.Value.AdditionalProperties.Has
		request := strings.HasSuffix(name, "Request") || name == "AppendRecord"
		if s.Value.Type.Is("object") && closed != request {
			t.Errorf("%s: closed is %t", name, closed)
		}
	}
}

// TestAppendTakesFourMediaTypes: JSON is the first in the files, because generators make
// the parameter of a method of the first.
func TestAppendTakesFourMediaTypes(t *testing.T) {
	const partition = "/topics/{topic}/partitions/{partition}"
	for name, document := range map[string][]byte{"3.1": spec.JSON(), "3.0": spec.JSON30()} {
		var doc struct {
			Paths map[string]struct {
				Post struct {
					RequestBody struct{ Content jsontext.Value }
				}
				Get struct {
					Responses map[string]struct{ Content jsontext.Value }
				}
			}
		}
		if err := jsonv2.Unmarshal(document, &doc, jsonv2.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		want := []string{"application/json", "application/vnd.oncelog.batch", "application/x-ndjson", "*/*"}
		if d := cmp.Diff(want, members(t, doc.Paths[partition+"/batches"].Post.RequestBody.Content)); d != "" {
			t.Errorf("%s, append: %s", name, d)
		}
		want = []string{"application/json", "application/vnd.oncelog.batch", "application/x-ndjson", "text/event-stream"}
		if d := cmp.Diff(want, members(t, doc.Paths[partition+"/records"].Get.Responses["200"].Content)); d != "" {
			t.Errorf("%s, read: %s", name, d)
		}
	}
}

// members lists the names in an object, in its order.
func members(t *testing.T, object jsontext.Value) []string {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := d.ReadToken(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.String())
		if err := d.SkipValue(); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// TestAppendSchema holds batches against the schema, 2020-12 keywords included.
func TestAppendSchema(t *testing.T) {
	schema := load(t).Components.Schemas["AppendRequest"].Value
	for _, tc := range []struct {
		body string
		ok   bool
	}{
		{`{"records":[{"value":1}]}`, true},
		{`{"records":[{"value":null}]}`, true},
		{`{"records":[{"value":[{"a":"b"}]}]}`, true},
		{`{"records":[{"valueText":"x","key":"k","headers":[{"name":"h","value":""}]}]}`, true},
		{`{"records":[{"valueBase64":"AA==","keyBase64":"AA=="}]}`, true},
		{`{"records":[{"value":1,"timestamp":"2026-01-02T03:04:05.678Z"}]}`, true},
		{`{"pid":9007199254740991,"epoch":0,"baseSeq":0,"records":[{"value":1}]}`, true},

		{`{}`, false},
		{`{"records":[]}`, false},
		{`{"records":[{}]}`, false},
		{`{"records":[{"key":"k"}]}`, false},
		{`{"records":[{"value":1,"valueText":"x"}]}`, false},
		{`{"records":[{"value":1,"key":"k","keyBase64":"AA=="}]}`, false},
		{`{"records":[{"value":1,"timestamp":true}]}`, false},
		{`{"records":[{"value":1,"extra":1}]}`, false},
		{`{"records":[{"value":1}],"extra":1}`, false},
		{`{"pid":0,"records":[{"value":1}]}`, false},
		{`{"pid":0,"epoch":0,"records":[{"value":1}]}`, false},
		{`{"pid":-1,"epoch":0,"baseSeq":0,"records":[{"value":1}]}`, false},
		{`{"pid":"0","epoch":0,"baseSeq":0,"records":[{"value":1}]}`, false},
		{`{"pid":0.5,"epoch":0,"baseSeq":0,"records":[{"value":1}]}`, false},
		{`{"pid":9007199254740992,"epoch":0,"baseSeq":0,"records":[{"value":1}]}`, false},
	} {
		var v any
		if err := json.Unmarshal([]byte(tc.body), &v); err != nil {
			t.Fatal(err)
		}
		err := schema.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.VisitAsRequest())
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.body, err)
		}
	}
}
