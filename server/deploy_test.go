package server_test

import (
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/server/access/certtest"
	"github.com/oncelog/oncelog/store/bolt"
)

// TestDashboardAndAlertsNameMetricsThatExist: a metric that is renamed would leave an empty
// graph, and an alert that never comes.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	exist := exposedMetrics(t)
	// Numbers of functions and labels are no metrics.
	name := regexp.MustCompile(`\b(?:oncelog|process|go)_[a-z0-9_]+\b`)
	named := map[string]bool{}
	for where, expr := range append(dashboardQueries(t), alertQueries(t)...) {
		found := name.FindAllString(expr, -1)
		if len(found) == 0 {
			t.Errorf("query %d is about nothing that the server exposes: %s", where, expr)
		}
		for _, n := range found {
			named[n] = true
			if !exist[n] {
				t.Errorf("the server exposes no %s, which is in %s", n, expr)
			}
		}
	}
	for n := range exist { // whoever adds a metric says where it is looked at
		unseen := []string{
			"oncelog_build_info", "oncelog_access_grants", "oncelog_bbolt_freelist_bytes", "oncelog_bbolt_free_bytes",
			"oncelog_bbolt_pages_allocated_total", "oncelog_bbolt_allocated_bytes_total", "oncelog_bbolt_nodes_total",
			"oncelog_bbolt_node_dereferences_total",
		}
		histogram := strings.HasSuffix(n, "_sum") || strings.HasSuffix(n, "_count") || strings.HasSuffix(n, "_seconds")
		if strings.HasPrefix(n, "oncelog_") && !named[n] && !histogram && !slices.Contains(unseen, n) {
			t.Errorf("%s is neither in the dashboard nor in an alert", n)
		}
	}
}

// exposedMetrics are the names of all metrics of a server that has everything: a store on
// disk, and TLS.
func exposedMetrics(t *testing.T) map[string]bool {
	t.Helper()
	dir := t.TempDir()
	pair := certtest.NewCA(t, "authority").Issue(certtest.Template{DNS: []string{"localhost"}, Usage: x509.ExtKeyUsageServerAuth})
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pair.Write(t, cert, key)
	secure, err := access.NewTLS(access.TLSOptions{Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	control, err := access.New(access.Options{TLS: secure})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	e := newEnvOver(t, newBolt(t, t.TempDir(), bolt.Options{}), func(o *server.Options) { o.Access = control })
	e.get("/livez").is(200)
	families, err := e.server.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
		if f.GetMetric()[0].GetHistogram() != nil {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[f.GetName()+suffix] = true
			}
		}
	}
	return names
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
	return queries
}

// alertQueries are the expressions of all alerts. Each says what is the matter and how
// urgent it is.
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
	var queries []string
	seen := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if severity := r.Labels["severity"]; severity != "page" && severity != "ticket" || r.Annotations["summary"] == "" || seen[r.Alert] {
				t.Errorf("alert %q is there twice, or has no severity or summary", r.Alert)
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
