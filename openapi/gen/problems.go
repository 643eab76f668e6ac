package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/oncelog/oncelog/openapi"
)

// commonCodes can answer any operation, whatever its annotations say. Forbidden answers
// the open ones as well, when the server is asked for by a name that is not its own.
// Operations of the service itself answer without the store.
func commonCodes(method string, op *openapi3.Operation) []string {
	codes := []string{"headers-too-large", "forbidden", "internal"}
	if op.Security == nil {
		return codes
	}
	codes = append(codes, "unauthenticated", "rate-limited")
	if !slices.Contains(op.Tags, serviceTag) {
		codes = append(codes, "not-ready")
	}
	if method != http.MethodGet {
		codes = append(codes, "cross-origin")
	}
	return codes
}

// problemsByStatus collects the codes that the failure annotations of an operation
// name. An annotation without a code is a mistake.
func problemsByStatus(op *openapi3.Operation, common []string) (map[int][]openapi.ProblemType, error) {
	codes := slices.Clone(common)
	for status, r := range op.Responses.Map() {
		if status < "400" {
			continue
		}
		words := strings.FieldsFunc(*r.Value.Description, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') })
		found := 0
		for _, w := range words {
			p, ok := openapi.LookupProblemType(w)
			if !ok {
				continue
			}
			if fmt.Sprint(p.Status) != status {
				return nil, fmt.Errorf("%s: %s has status %d, not %s", op.OperationID, w, p.Status, status)
			}
			codes = append(codes, w)
			found++
		}
		if found == 0 { // what makes the list of codes hold for each operation
			return nil, fmt.Errorf("%s: failure %s names no code: %q", op.OperationID, status, *r.Value.Description)
		}
	}
	slices.Sort(codes)
	byStatus := map[int][]openapi.ProblemType{}
	for _, c := range slices.Compact(codes) {
		p, _ := openapi.LookupProblemType(c)
		byStatus[p.Status] = append(byStatus[p.Status], p)
	}
	return byStatus, nil
}

// problemResponse describes the answers of one status: one example for each code. Those
// of a single code are shared by all operations.
func problemResponse(problems []openapi.ProblemType, components *openapi3.Components) *openapi3.ResponseRef {
	var says []string
	examples := openapi3.Examples{}
	headers := openapi3.Headers{}
	for _, p := range problems {
		says = append(says, fmt.Sprintf("`%s`: %s.", p.Code, p.Title))
		examples[p.Code] = &openapi3.ExampleRef{Ref: "#/components/examples/" + p.Code}
		components.Examples[p.Code] = problemExample(p)
		switch {
		case p.Code == "unauthenticated":
			headers["WWW-Authenticate"] = headerRef("Challenge")
		case p.Code == "rate-limited":
			headers["RateLimit"], headers["RateLimit-Policy"] = headerRef("RateLimit"), headerRef("RateLimitPolicy")
		}
		if p.RetryAfter > 0 {
			headers["Retry-After"] = headerRef("RetryAfter")
		}
	}
	r := &openapi3.Response{
		Description: new(strings.Join(says, " ")),
		Headers:     headers,
		Content: openapi3.Content{openapi.ProblemContentType: {
			Schema:   schemaRef("Problem"),
			Examples: examples,
		}},
	}
	fixHeaders(r)
	if len(problems) > 1 {
		return &openapi3.ResponseRef{Value: r}
	}
	name := typeName(problems[0].Code)
	components.Responses[name] = &openapi3.ResponseRef{Value: r}
	return &openapi3.ResponseRef{Ref: "#/components/responses/" + name, Value: r}
}

// typeName turns unknown-topic into UnknownTopic, for generators that make types of
// responses.
func typeName(code string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(code, "-") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// problemExample is a problem as the server would send it.
func problemExample(p openapi.ProblemType) *openapi3.ExampleRef {
	return &openapi3.ExampleRef{Value: &openapi3.Example{Summary: p.Title, Value: p.Sample()}}
}
