package server_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/server"
)

// TestRoutesAreDocumented fails for a path that is served and not in the document, and
// for one that is in the document and not served.
func TestRoutesAreDocumented(t *testing.T) {
	s, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var served []string
	err = chi.Walk(s.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		served = append(served, method+" "+route)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for path, item := range loadContract(t).doc.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	if d := cmp.Diff(documented, served); d != "" {
		t.Errorf("documented (-) and served (+) routes differ:\n%s", d)
	}
}
