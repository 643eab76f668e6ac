package bench

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store"
)

// Format is the form of request bodies, or of the answers to reads.
type Format string

// The formats.
const (
	Raw    Format = "raw" // the body is the value of one record
	JSON   Format = "json"
	NDJSON Format = "ndjson"
	Binary Format = "binary" // openapi/BATCH.md
)

// Target is a server.
type Target struct {
	// URL is scheme, host and, behind a proxy, a path.
	URL string
	// Token is sent as a bearer token unless it is empty.
	Token string
	// TLS is used with https. nil: the defaults.
	TLS *tls.Config
	// Options are the same for Go producers.
	Options []producer.ClientOption
	// Blind: the server stores nothing. It has no topics and no producers, and its
	// answers are only checked for their status.
	Blind bool
}

// Load says what is sent.
type Load struct {
	Connections  int
	Producers    int // at least as many as connections; each has one partition
	Partitions   int
	RecordBytes  int // length of each value
	BatchRecords int
	Format       Format
	// Plain appends have no producer id, epoch and sequence.
	Plain bool
	// Retries is the share of batches that are sent a second time after their answer, as
	// a client does that has lost it.
	Retries float64
	// Rate is how many batches a second are due, over all connections; 0: the next one
	// when the one before is answered.
	Rate float64

	// Bytes ends the measurement once so many bytes of values are stored; 0: Duration
	// does.
	Bytes int64

	Warmup   time.Duration
	Duration time.Duration
	// Timeout is how long to wait for an answer.
	Timeout time.Duration
}

// BatchBytes is the size of a batch as the server's limits count it.
func (l *Load) BatchBytes() int { return l.RecordBytes * l.BatchRecords }

// Check refuses loads that make no sense.
func (l *Load) Check() error {
	switch {
	case l.Connections < 1:
		return errors.New("at least one connection is needed")
	case l.Producers < l.Connections:
		return fmt.Errorf("%d producers are too few for %d connections, each has at least one", l.Producers, l.Connections)
	case l.Partitions < 1 || l.Partitions > store.MaxPartitions:
		return fmt.Errorf("the number of partitions must be from 1 to %d", store.MaxPartitions)
	case l.Producers < l.Partitions:
		return fmt.Errorf("%d producers are too few for %d partitions, each appends to one", l.Producers, l.Partitions)
	case l.RecordBytes < 0 || l.RecordBytes > store.MaxRecordBytes:
		return fmt.Errorf("a record must have from 0 to %d bytes", store.MaxRecordBytes)
	case l.BatchRecords < 1 || l.BatchRecords > store.MaxBatchRecords:
		return fmt.Errorf("a batch must have from 1 to %d records", store.MaxBatchRecords)
	case l.Format == Raw && l.BatchRecords != 1:
		return errors.New("a raw body is one record; batches of more need another format")
	case l.Retries < 0 || l.Retries > 1:
		return errors.New("the share of retries must be from 0 to 1")
	case l.Plain && l.Retries > 0:
		return errors.New("plain appends that are sent again are stored again; there is nothing to measure")
	case l.Rate < 0:
		return errors.New("the rate is negative")
	case l.Duration <= 0 || l.Warmup < 0 || l.Timeout <= 0:
		return errors.New("durations must be above 0")
	}
	return nil
}

// address is where a target is dialed and how its requests begin.
type address struct {
	host string      // host:port
	path string      // without a slash at the end
	tls  *tls.Config // nil: no TLS
}

func (t *Target) address() (address, error) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return address{}, err
	}
	a := address{host: u.Host, path: strings.TrimRight(u.EscapedPath(), "/")}
	port := "80"
	if u.Scheme == "https" {
		a.tls, port = t.tlsConfig(u.Hostname()), "443"
	}
	if u.Port() == "" {
		a.host = net.JoinHostPort(u.Hostname(), port)
	}
	return a, nil
}

func (t *Target) tlsConfig(server string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.TLS != nil {
		c = t.TLS.Clone()
	}
	c.ServerName, c.NextProtos = server, []string{"http/1.1"}
	return c
}
