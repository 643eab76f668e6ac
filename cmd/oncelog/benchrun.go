package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store"
)

// measurement is one call of oncelog bench.
type measurement struct {
	cmd    *benchCmd
	std    *stdio
	client *producer.Client
	target bench.Target
	load   bench.Load
	made   []string // topics to delete
}

func newMeasurement(c *benchCmd, std *stdio, client *producer.Client) (*measurement, error) {
	target, err := c.target()
	return &measurement{cmd: c, std: std, client: client, load: c.load(), target: target}, err
}

// target is the server with what the load generator, which has no client, must know of
// credentials. It reads them once.
func (r *remote) target() (bench.Target, error) {
	t := bench.Target{
		URL: strings.TrimRight(r.URL, "/"), Token: strings.TrimSpace(os.Getenv(tokenVariable)),
		TLS: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	var err error
	if t.Options, err = r.options(); err != nil {
		return t, err
	}
	if r.TokenFile != "" {
		text, err := os.ReadFile(r.TokenFile)
		if err != nil {
			return t, &usageError{err: fmt.Errorf("--token-file: %w", err)}
		}
		t.Token = strings.TrimSpace(string(text))
	}
	if r.ClientCert != "" {
		pair, err := tls.LoadX509KeyPair(r.ClientCert, r.ClientKey)
		if err != nil {
			return t, &usageError{err: fmt.Errorf("--client-cert and --client-key: %w", err)}
		}
		t.TLS.Certificates = []tls.Certificate{pair}
	}
	if r.CAFile != "" {
		text, err := os.ReadFile(r.CAFile)
		if err != nil {
			return t, &usageError{err: fmt.Errorf("--ca-file: %w", err)}
		}
		t.TLS.RootCAs = x509.NewCertPool()
		t.TLS.RootCAs.AppendCertsFromPEM(text) // that it holds certificates is the client's to check
	}
	return t, nil
}

// benchReport is what the command prints.
type benchReport struct {
	Load benchLoad `json:"load"`
	*bench.Result
	Compare *comparison `json:"compare,omitempty"`
}

// benchLoad is the load as it is printed.
type benchLoad struct {
	URL          string  `json:"url"`
	What         string  `json:"what"` // append, read or go-producer
	Topic        string  `json:"topic"`
	Partitions   int     `json:"partitions"`
	Connections  int     `json:"connections,omitempty"`
	Producers    int     `json:"producers,omitempty"`
	Format       string  `json:"format,omitempty"`
	RecordBytes  int     `json:"recordBytes,omitempty"`
	BatchRecords int     `json:"batchRecords,omitempty"`
	PageBytes    int     `json:"pageBytes,omitempty"`
	Idempotent   bool    `json:"idempotent"`
	Retries      float64 `json:"retries"`
	Rate         float64 `json:"rate"`
}

// run measures what was asked for, and what it is to be compared with.
func (m *measurement) run(ctx context.Context) (benchReport, error) {
	var report benchReport
	topic, err := m.topic(ctx, m.load.Partitions)
	if err != nil {
		return report, err
	}
	if m.cmd.Topic != "" {
		m.load.Partitions = topic.Partitions
		m.load.Producers = or(m.cmd.Producers, max(m.load.Connections, topic.Partitions))
		if err := m.load.Check(); err != nil {
			return report, &usageError{err: err}
		}
	}
	report.Load = m.describe(topic)
	if m.cmd.Read && m.cmd.Topic == "" {
		if err := m.fill(ctx, topic); err != nil {
			return report, err
		}
	}
	measure := func() (*bench.Result, error) { return m.subject(ctx, topic) }
	if m.cmd.Compare == "" {
		report.Result, err = measure()
		return report, err
	}
	report.Result, report.Compare, err = m.compare(ctx, topic, measure)
	return report, err
}

func (m *measurement) describe(topic bench.Topic) benchLoad {
	l, c := &m.load, m.cmd
	out := benchLoad{URL: m.target.URL, What: "append", Topic: topic.Name, Partitions: topic.Partitions}
	switch {
	case c.Read:
		r := c.readLoad()
		out.What, out.Connections, out.Format, out.PageBytes = "read", r.Connections, string(r.Format), r.PageBytes
		if c.Topic == "" {
			out.RecordBytes, out.BatchRecords = l.RecordBytes, l.BatchRecords
		}
		return out
	case c.GoProducer:
		out.What, out.Producers, out.RecordBytes, out.Idempotent = "go-producer", c.producerLoad().Producers, l.RecordBytes, true
		return out
	}
	out.Connections, out.Producers = l.Connections, l.Producers
	out.Format, out.RecordBytes, out.BatchRecords = string(l.Format), l.RecordBytes, l.BatchRecords
	out.Idempotent, out.Retries, out.Rate = !l.Plain, l.Retries, l.Rate
	return out
}

// topic finds the topic of --topic or makes one.
func (m *measurement) topic(ctx context.Context, partitions int) (bench.Topic, error) {
	if name := m.cmd.Topic; name != "" {
		t, err := m.client.Topic(ctx, name)
		return bench.Topic{Name: name, Partitions: t.Partitions}, err
	}
	r := openapi.CreateTopicRequest{
		Name:       "bench-" + time.Now().UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:6]),
		Partitions: &partitions,
	}
	defaults := store.DefaultConfig()
	if bytes := int64(m.load.BatchBytes()); bytes > defaults.MaxBatchBytes {
		r.MaxBatchBytes = &bytes
	}
	if bytes := int64(m.cmd.RetentionBytes); bytes > 0 {
		r.RetentionBytes = &bytes
	}
	if bytes := int64(m.cmd.SegmentBytes); bytes > 0 {
		r.SegmentBytes = &bytes
	}
	if n := int64(m.load.Producers); n > defaults.MaxProducers {
		r.MaxProducers = &n
	}
	t, err := m.client.CreateTopic(ctx, r)
	if err != nil {
		return bench.Topic{}, err
	}
	m.made = append(m.made, t.Name)
	return bench.Topic{Name: t.Name, Partitions: t.Partitions, Own: true}, nil
}

// cleanUp deletes the topics that were made.
func (m *measurement) cleanUp(ctx context.Context) {
	if m.cmd.Keep {
		return
	}
	for _, name := range m.made {
		if err := m.client.DeleteTopic(ctx, name); err != nil {
			fmt.Fprintf(m.std.err, "oncelog: topic %s is left: %v\n", name, explain(err))
		}
	}
}

// fill puts into a new topic what is going to be read.
func (m *measurement) fill(ctx context.Context, topic bench.Topic) error {
	_, err := m.append(ctx, "filling", m.target, m.load, topic)
	return err
}

// subject measures what was asked for.
func (m *measurement) subject(ctx context.Context, topic bench.Topic) (*bench.Result, error) {
	bar := newBenchProgress(m.std, "oncelog")
	defer bar.end()
	switch {
	case m.cmd.Read:
		return bench.Read(ctx, m.target, m.cmd.readLoad(), topic, m.client, bar.report)
	case m.cmd.GoProducer:
		return bench.Produce(ctx, m.target, m.cmd.producerLoad(), topic, m.client, bar.report)
	default:
		return bench.Append(ctx, m.target, m.load, topic, m.client, bar.report)
	}
}

// append measures appends.
func (m *measurement) append(ctx context.Context, name string, target bench.Target, load bench.Load, topic bench.Topic) (*bench.Result, error) {
	bar := newBenchProgress(m.std, name)
	defer bar.end()
	return bench.Append(ctx, target, load, topic, m.client, bar.report)
}
