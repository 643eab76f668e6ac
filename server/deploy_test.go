package server_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v4"
)

// TestDashboardAndAlertsNameMetricsThatExist: a metric that is renamed would leave an empty
// graph, and an alert that never comes.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	e := populated(t)
	exist := metricsOf(t, e)
	named := map[string]bool{}
	for _, expr := range append(dashboardQueries(t), alertQueries(t)...) {
		metrics, faults := exist.faults(expr)
		for _, n := range metrics {
			named[n] = true
		}
		for _, fault := range faults {
			t.Errorf("%s: %s", fault, expr)
		}
	}
	unseen := []string{ // by anybody but those who look for one thing
		"oncelog_build_info", "oncelog_access_grants", "oncelog_bbolt_freelist_bytes", "oncelog_bbolt_free_bytes",
		"oncelog_bbolt_pages_allocated_total", "oncelog_bbolt_allocated_bytes_total", "oncelog_bbolt_nodes_total",
		"oncelog_bbolt_node_dereferences_total",
	}
	for n := range exist { // whoever adds a metric says where it is looked at
		ofHistogram := exist[n]["le"] == nil && exist[strings.TrimSuffix(strings.TrimSuffix(n, "_sum"), "_count")+"_bucket"] != nil
		if strings.HasPrefix(n, "oncelog_") && !named[n] && !ofHistogram && !slices.Contains(unseen, n) {
			t.Errorf("%s is neither in the dashboard nor in an alert", n)
		}
	}
}

// metricsOf are all metrics of a server. A histogram counts as its three series.
func metricsOf(t *testing.T, e *env) exposed {
	t.Helper()
	families, err := e.server.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := exposed{}
	for _, f := range families {
		labels := map[string][]string{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		all[f.GetName()] = labels
		if f.GetType() == dto.MetricType_HISTOGRAM {
			delete(all, f.GetName())
			all[f.GetName()+"_sum"], all[f.GetName()+"_count"] = labels, labels
			buckets := maps.Clone(labels)
			buckets["le"] = []string{"+Inf"}
			all[f.GetName()+"_bucket"] = buckets
		}
	}
	return all
}

func readDeploy(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", ".deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dashboardQueries are the expressions of all panels. Ids must differ and panels not
// overlap.
func dashboardQueries(t *testing.T) []string {
	t.Helper()
	var d struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ RefID, Expr string }
		}
		Annotations struct{ List []struct{ Expr string } }
		Templating  struct {
			List []struct{ Type, Query string }
		}
	}
	if err := json.Unmarshal(readDeploy(t, "dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	var queries []string
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %d %q: its id is taken, or it has no title, or nothing to show", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies on %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		queries = append(queries, a.Expr)
	}
	for _, v := range d.Templating.List {
		if of, ok := strings.CutPrefix(v.Query, "label_values("); ok { // no PromQL, but Grafana's
			metric, _, _ := strings.Cut(of, ",")
			queries = append(queries, metric)
		}
	}
	if len(queries) < 30 {
		t.Errorf("%d queries in the dashboard", len(queries))
	}
	return queries
}

// alertQueries are the expressions of all alerts. Each says what is the matter, how urgent
// it is and what to do, and there is a test of when it fires.
func alertQueries(t *testing.T) []string {
	t.Helper()
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Load(readDeploy(t, "alerts.yaml"), &rules, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	tests := string(readDeploy(t, "alerts_test.yaml"))
	var queries []string
	seen := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if severity := r.Labels["severity"]; severity != "page" && severity != "ticket" || seen[r.Alert] {
				t.Errorf("alert %q is there twice, or has no severity", r.Alert)
			}
			for _, text := range []string{"summary", "description"} {
				if v := r.Annotations[text]; !strings.HasSuffix(v, ".") {
					t.Errorf("the %s of %s is no sentence: %q", text, r.Alert, v)
				}
			}
			if !strings.Contains(tests, `alertname="`+r.Alert+`"`) {
				t.Errorf("no test in alerts_test.yaml expects %s", r.Alert)
			}
			seen[r.Alert] = true
			queries = append(queries, r.Expr)
		}
	}
	if len(queries) < 10 {
		t.Errorf("%d alerts", len(queries))
	}
	return queries
}
