package main

import (
	"flag"
	"net/http"
	"testing"

	"github.com/oncelog/oncelog/server/twin"
)

var httpRuns = flag.Int("http.runs", 4, "runs of TestHTTPAgainstModel; -rapid.checks must be as many")

// TestHTTPAgainstModel holds a real server to the model, through SIGTERM and SIGKILL: the
// same requests get the same answers.
func TestHTTPAgainstModel(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(client.CloseIdleConnections)
	twin.Check(t, *httpRuns, func() twin.Subject {
		g := newGateway(t, "--reorder-wait", "0s", "--retention-interval", "1h")
		return twin.Subject{
			Send: func(r *http.Request) (*http.Response, error) {
				r.URL.Host, r.Host = g.listen, g.listen
				return client.Do(r)
			},
			Restart: g.restart,
			End:     g.finish,
		}
	})
}
