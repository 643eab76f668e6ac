package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/oncelog/oncelog/openapi"
)

// commonCodes can answer any operation, whatever its annotations say. Operations of
// the service itself answer without the store and without credentials.
func commonCodes(method string, service bool) []string {
	codes := []string{"headers-too-large", "internal"}
	if service {
		return codes
	}
	codes = append(codes, "unauthenticated", "forbidden", "rate-limited", "not-ready")
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
		if p.RetryAfter > 0 {
			headers["Retry-After"] = &openapi3.HeaderRef{Ref: "#/components/headers/RetryAfter"}
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
	s, ok := samples()[p.Code]
	if !ok {
		s = sample{detail: p.Meaning}
	}
	value := map[string]any{
		"type":      p.Path(),
		"title":     p.Title,
		"status":    p.Status,
		"detail":    s.detail,
		"instance":  "/topics/orders/partitions/0/batches",
		"code":      p.Code,
		"retryable": p.Retryable,
		"outcome":   string(p.Outcome),
		"requestId": "0b5c1f2e9d7a4c33",
	}
	maps.Copy(value, s.members)
	return &openapi3.ExampleRef{Value: &openapi3.Example{Summary: p.Title, Value: value}}
}

// sample is what differs between two problems of the same code.
type sample struct {
	detail  string
	members map[string]any
}

func samples() map[string]sample {
	type m = map[string]any
	return map[string]sample{
		"malformed-request": {"the body cannot be read: 1 error", m{"errors": []any{
			m{"pointer": "/records/0/value", "detail": "exactly one of value, valueText and valueBase64 is needed"},
		}}},
		"invalid-argument": {"the request asks for what is not allowed: 1 error", m{"errors": []any{
			m{"pointer": "/records", "detail": "a batch has at least one record"},
		}}},
		"too-large": {"the body is larger than 16777216 bytes", m{"limit": 16777216, "actual": 16777217}},
		"out-of-order-sequence": {
			"base sequence 5 is 2 ahead of the expected 3; send what is missing first",
			m{"expectedSeq": 3, "receivedSeq": 5, "lastSeq": 2, "currentEpoch": 0, "gap": 2},
		},
		"sequence-overlap": {"the batch starts at 2 and runs across the expected 3", m{"expectedSeq": 3, "receivedSeq": 2}},
		"sequence-reused":  {"sequences 0 to 2 are stored at offset 0 with another payload", m{"originalOffset": 0}},
		"producer-fenced":  {"epoch 0 is below the current epoch 1", m{"currentEpoch": 1}},
		"producer-expired": {
			"the producer's state has expired; go on with a higher epoch from sequence 0",
			m{"expiredAt": "2026-01-09T03:04:05.678Z", "lastSeq": 2, "lastEpoch": 0, "action": "bump-epoch"},
		},
		"records-trimmed":     {"offset 0 is below the earliest offset 3", m{"earliestOffset": 3}},
		"offset-out-of-range": {"offset 9 is above the end at 3", m{"nextOffset": 3}},
	}
}
