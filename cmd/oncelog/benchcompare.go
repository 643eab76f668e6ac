package main

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
)

// comparison is the rate of what was asked for against that of something else, in one
// run. The something else is measured before and after each time, if it can be before,
// so that a machine that slows down or speeds up meanwhile does not count.
type comparison struct {
	With string `json:"with"`
	// By names the member of the results that is compared.
	By string `json:"by"`
	// Ratio is the median of Ratios, of which each round has one.
	Ratio    float64         `json:"ratio"`
	Ratios   []float64       `json:"ratios"`
	Rounds   []*bench.Result `json:"rounds"`
	Baseline []*bench.Result `json:"baseline"`
}

// baseline is the other side of a comparison.
type baseline struct {
	by string
	// measure gets the last result of what it is compared with; nil: there is none yet.
	measure func(last *bench.Result) (*bench.Result, error)
	// follows: it takes its sizes from what it is compared with and cannot come first.
	follows bool
	stop    func()
}

// compare measures in turn. The result is that of the round with the median ratio.
func (m *measurement) compare(ctx context.Context, topic bench.Topic, subject func() (*bench.Result, error)) (*bench.Result, *comparison, error) {
	b, err := m.baseline(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	if b.stop != nil {
		defer b.stop()
	}
	c := &comparison{With: m.cmd.Compare, By: b.by}
	var before *bench.Result
	if !b.follows {
		if before, err = b.measure(nil); err != nil {
			return nil, nil, err
		}
		c.Baseline = append(c.Baseline, before)
	}
	for range m.cmd.Rounds {
		r, err := subject()
		if err != nil {
			return r, nil, err
		}
		after, err := b.measure(r)
		if err != nil {
			return r, nil, err
		}
		c.Rounds, c.Baseline = append(c.Rounds, r), append(c.Baseline, after)
		other := c.rate(after)
		if before != nil {
			other = (c.rate(before) + other) / 2
		}
		c.Ratios = append(c.Ratios, c.rate(r)/other)
		before = after
	}
	return c.middle(), c, nil
}

const (
	byRequests = "requestsPerSecond"
	byRecords  = "recordsPerSecond"
	byBytes    = "bytesPerSecond"
)

// rate is what is compared.
func (c *comparison) rate(r *bench.Result) float64 {
	switch c.By {
	case byBytes:
		return r.BytesPerSecond
	case byRecords:
		return r.RecordsPerSecond
	default:
		return r.RequestsPerSecond
	}
}

// middle sets the ratio and gives its round.
func (c *comparison) middle() *bench.Result {
	sorted := slices.Sorted(slices.Values(c.Ratios))
	c.Ratio = sorted[(len(sorted)-1)/2]
	return c.Rounds[slices.Index(c.Ratios, c.Ratio)]
}

func (m *measurement) baseline(ctx context.Context, topic bench.Topic) (*baseline, error) {
	switch m.cmd.Compare {
	case compareNoop:
		return m.noopBaseline(ctx)
	case compareFsync, compareBbolt:
		return m.diskBaseline(ctx), nil
	case compareFile:
		return m.fileBaseline(ctx, topic), nil
	case comparePrepared:
		return m.preparedBaseline(ctx), nil
	default:
		return m.otherLoad(ctx)
	}
}

// noopBaseline sends the same requests to a server that stores nothing.
func (m *measurement) noopBaseline(ctx context.Context) (*baseline, error) {
	peer, err := bench.StartPeer(ctx, "bench-peer")
	if err != nil {
		return nil, err
	}
	return &baseline{by: byRequests, stop: peer.Stop, measure: func(*bench.Result) (*bench.Result, error) {
		target, topic := bench.Target{URL: peer.URL, Blind: true}, bench.Topic{Name: "noop", Partitions: m.load.Partitions}
		return m.append(ctx, compareNoop, target, m.load, topic)
	}}, nil
}

// otherLoad sends another load to the same server, into a topic of its own.
func (m *measurement) otherLoad(ctx context.Context) (*baseline, error) {
	load, by := m.load, byRecords
	switch m.cmd.Compare {
	case comparePlain:
		load.Plain, load.Retries, by = true, 0, byRequests
	case compareBinary:
		load.Format = bench.Binary
	case compareOnePartition:
		load.Partitions = 1
	}
	topic, err := m.topic(ctx, load.Partitions)
	return &baseline{by: by, measure: func(*bench.Result) (*bench.Result, error) {
		return m.append(ctx, m.cmd.Compare, m.target, load, topic)
	}}, err
}

// diskBaseline does to a file what is the least that the server must do.
func (m *measurement) diskBaseline(ctx context.Context) *baseline {
	c := m.cmd
	if c.Compare == compareFsync {
		return &baseline{by: byRequests, measure: func(*bench.Result) (*bench.Result, error) {
			bar := newBenchProgress(m.std, c.Compare)
			defer bar.end()
			return bench.Sync(ctx, c.CompareDir, c.Duration, bar.report)
		}}
	}
	return &baseline{by: byBytes, follows: true, measure: func(last *bench.Result) (*bench.Result, error) {
		if last.Server == nil || last.Server.BatchesPerCommit == 0 {
			return nil, errors.New("--compare bbolt needs the server's metrics, and they do not say how large its commits were")
		}
		values := max(1, int(math.Round(last.Server.BatchesPerCommit)))
		bar := newBenchProgress(m.std, c.Compare)
		defer bar.end()
		return bench.Commit(ctx, c.CompareDir, c.Duration, values, m.load.BatchBytes(), bar.report)
	}}
}

// fileBaseline reads as many bytes in pages of the same size from a file server.
func (m *measurement) fileBaseline(ctx context.Context, topic bench.Topic) *baseline {
	return &baseline{by: byBytes, follows: true, measure: func(last *bench.Result) (*bench.Result, error) {
		const most = 4 << 30
		partition, err := m.client.Partition(ctx, topic.Name, 0)
		if err != nil {
			return nil, err
		}
		records := float64(partition.NextOffset - partition.EarliestOffset)
		length := min(most, int64(records*float64(last.Bytes)/float64(last.Records)))
		path, err := bench.WriteFile(m.cmd.CompareDir, length, m.cmd.Once)
		if err != nil {
			return nil, err
		}
		defer os.Remove(path) //nolint:errcheck // a temporary file
		peer, err := bench.StartPeer(ctx, "bench-peer", "--file="+path)
		if err != nil {
			return nil, err
		}
		defer peer.Stop()
		load := m.cmd.readLoad()
		load.PageBytes = int(last.Bytes / last.Requests)
		bar := newBenchProgress(m.std, compareFile)
		defer bar.end()
		return bench.ReadFile(ctx, peer.URL, load, length, bar.report)
	}}
}

// preparedBaseline sends batches of the size that the Go producer has made, from as many
// connections as it may use.
func (m *measurement) preparedBaseline(ctx context.Context) *baseline {
	return &baseline{by: byRecords, follows: true, measure: func(last *bench.Result) (*bench.Result, error) {
		const inFlight = 5 // batches of a partition that a producer has under way at most
		load := m.load
		load.Format, load.BatchRecords = bench.Binary, max(1, int(last.Records/max(1, last.Requests)))
		load.Connections = inFlight * load.Partitions
		load.Producers = load.Connections
		topic, err := m.topic(ctx, load.Partitions)
		if err != nil {
			return nil, err
		}
		return m.append(ctx, comparePrepared, m.target, load, topic)
	}}
}

// benchPeerCmd is the server that --compare measures, in a process of its own.
type benchPeerCmd struct {
	File string `help:"Serve this file. Default: take what is posted and store nothing."`
}

// Run serves until standard input ends.
func (c *benchPeerCmd) Run(ctx context.Context, std *stdio) error {
	if c.File != "" {
		return bench.ServeFile(ctx, c.File, std.in, std.out)
	}
	return bench.ServeNothing(ctx, std.in, std.out)
}
