package server_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/server"
)

// TestSecurityIsDocumented holds what the document asks of callers against the rules of
// the routes.
func TestSecurityIsDocumented(t *testing.T) {
	rules := server.RouteRules()
	for path, item := range loadContract(t).doc.Paths.Map() {
		for method, op := range item.Operations() {
			rule, ok := rules[method+" "+path]
			if !ok {
				continue // TestRoutesAreDocumented tells
			}
			var schemes []string
			optional := false
			for _, requirement := range *op.Security {
				optional = optional || len(requirement) == 0
				schemes = slices.AppendSeq(schemes, maps.Keys(requirement))
			}
			var want []string
			if !rule.Open {
				want = append(want, "bearer")
			}
			if rule.Stream {
				want = append(want, "ticket")
			}
			if d := cmp.Diff(want, schemes); d != "" || optional == rule.Open {
				t.Errorf("%s %s: schemes %q, optional: %t", method, path, schemes, optional)
			}
			var scopes []string
			if some, ok := op.Extensions["x-scopes"].([]any); ok {
				for _, s := range some {
					scopes = append(scopes, s.(string))
				}
			}
			slices.Sort(scopes)
			slices.Sort(rule.Scopes)
			if !slices.Equal(scopes, rule.Scopes) {
				t.Errorf("%s %s asks for %q; the document says %q", method, path, rule.Scopes, scopes)
			}
		}
	}
}
