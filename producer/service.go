package producer

import (
	"context"
	"net/http"

	"github.com/oncelog/oncelog/openapi"
)

// Limits are what the server allows.
func (c *Client) Limits(ctx context.Context) (openapi.Limits, error) {
	return get[openapi.Limits](ctx, c, path("limits"), nil)
}

// Version says what is running.
func (c *Client) Version(ctx context.Context) (openapi.Version, error) {
	return get[openapi.Version](ctx, c, path("version"), nil)
}

// Ready returns nil while the server takes writes, else why it does not.
func (c *Client) Ready(ctx context.Context) error {
	_, err := get[openapi.Health](ctx, c, path("readyz"), nil)
	return err
}

// Metrics gives the server's metrics in the Prometheus text format.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	var out []byte
	_, err := c.do(ctx, call{
		method: http.MethodGet, path: path("metrics"),
		header: http.Header{"Accept": {"text/plain, application/problem+json"}},
	}, &out)
	return out, err
}
