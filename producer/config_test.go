package producer_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/producer"
)

// C25: a promise that cannot be kept is refused, with words on what to change.
func TestC25RefusedConfigurations(t *testing.T) {
	tests := []struct {
		name string
		opts []producer.Option
		want string // in the error
	}{
		{"six in flight", []producer.Option{producer.WithMaxInFlight(6)}, "WithMaxInFlight to at most 5"},
		{"none in flight", []producer.Option{producer.WithMaxInFlight(0)}, "WithMaxInFlight to 1 or more"},
		{"exactly once without retries", []producer.Option{producer.WithRetries(0)}, "WithDelivery(AtMostOnce)"},
		{"at least once without retries", []producer.Option{producer.WithDelivery(producer.AtLeastOnce), producer.WithRetries(0)}, "WithDelivery(AtMostOnce)"},
		{"at most once with retries", []producer.Option{producer.WithDelivery(producer.AtMostOnce), producer.WithRetries(3)}, "leave out WithRetries"},
		{"negative retries", []producer.Option{producer.WithRetries(-2)}, "WithRetries to 0 or more"},
		{"unknown delivery", []producer.Option{producer.WithDelivery(7)}, "use ExactlyOnce"},
		{"delivery timeout below request timeout", []producer.Option{producer.WithDeliveryTimeout(10 * time.Second)}, "raise WithDeliveryTimeout"},
		{"delivery timeout below linger", []producer.Option{producer.WithLinger(91 * time.Second)}, "lower WithRequestTimeout or WithLinger"},
		{"no request timeout", []producer.Option{producer.WithRequestTimeout(0)}, "set WithRequestTimeout above 0"},
		{"negative linger", []producer.Option{producer.WithLinger(-1)}, "linger"},
		{"backoff", []producer.Option{producer.WithBackoff(2, 1)}, "backoff"},
		{"block", []producer.Option{producer.WithMaxBlock(0)}, "above 0"},
		{"metadata", []producer.Option{producer.WithMetadataAge(0)}, "above 0"},
		{"batch of nothing", []producer.Option{producer.WithBatchBytes(0)}, "WithBatchBytes from 1"},
		{"batch beyond the server's", []producer.Option{producer.WithBatchBytes(9 << 20)}, "WithBatchBytes from 1"},
		{"small buffer", []producer.Option{producer.WithBufferBytes(1000)}, "raise WithBufferBytes"},
		{"no requests", []producer.Option{producer.WithMaxRequests(0)}, "WithMaxRequests to 1 or more"},
		{"compression", []producer.Option{producer.WithCompression("lz4")}, "use Identity, Gzip or Zstd"},
		{"hook", []producer.Option{producer.WithHook(nil)}, "leave the option out"},
		{"two transports", []producer.Option{producer.WithHTTPClient(http.DefaultClient), producer.WithTransport(http.DefaultTransport)}, "not both"},
		{"protocol of a foreign transport", []producer.Option{producer.WithTransport(http.DefaultTransport), producer.WithProtocol(producer.ProtocolHTTP2)}, "set them on the one given"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := producer.New("http://localhost", tt.opts...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v, want an error that says %q", p, err, tt.want)
			}
		})
	}
}

func TestAllowedConfigurations(t *testing.T) {
	for _, opts := range [][]producer.Option{
		nil,
		{producer.WithDelivery(producer.AtMostOnce)},
		{producer.WithDelivery(producer.AtMostOnce), producer.WithRetries(0)},
		{producer.WithDelivery(producer.AtLeastOnce), producer.WithMaxInFlight(20)},
		{producer.WithMaxInFlight(1), producer.WithRetries(1)},
		{producer.WithCompression(producer.Zstd), producer.WithProtocol(producer.ProtocolHTTP2)},
	} {
		p, err := producer.New("https://localhost/base", opts...)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		closeProducer(t, p)
	}
}

func TestRefusedURLs(t *testing.T) {
	for _, url := range []string{"", "localhost:8080", "ftp://x", "http://", "http://x?y=1", "http://x#f", "http://[::1"} {
		if _, err := producer.NewClient(url); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
}
