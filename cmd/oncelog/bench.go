package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
	"github.com/oncelog/oncelog/store"
)

// benchCmd measures a server.
type benchCmd struct {
	remote
	output

	Read       bool `group:"What" help:"Measure sequential reads. Default: appends."`
	GoProducer bool `group:"What" help:"Measure the Go producer with its default options, fed record by record. Default: a load generator that sends prepared requests."`

	Topic          string   `group:"Topic" placeholder:"T" help:"A topic that exists; it is kept. Default: a new one, deleted at the end."`
	Keep           bool     `group:"Topic" help:"Keep the new topic."`
	Partitions     int      `group:"Topic" placeholder:"N" help:"Partitions of the new topic. Default 1, with --go-producer 8."`
	RetentionBytes byteSize `group:"Topic" placeholder:"BYTES" help:"Retention of the new topic, for each partition. Default: keep everything."`
	SegmentBytes   byteSize `group:"Topic" placeholder:"BYTES" help:"Segment size of the new topic. Default: the server's."`
	Fill           byteSize `group:"Topic" default:"256MiB" placeholder:"BYTES" help:"With --read: how much to put into the new topic. Default ${default}."`

	Connections int           `group:"Load" placeholder:"N" help:"Connections; each has one request under way. Default 64, with --read 1."`
	Producers   int           `group:"Load" placeholder:"N" help:"Producers, dealt out to the connections and to the partitions. Default: one for each connection and partition; with --go-producer 1."`
	Format      string        `group:"Load" placeholder:"FORMAT" help:"Form of appends: raw (the body is one record), json, ndjson or binary; of reads: ndjson, json or binary. Default raw, with --read ndjson."`
	RecordSize  byteSize      `group:"Load" default:"1KiB" placeholder:"BYTES" help:"Length of each value. Default ${default}."`
	BatchSize   int           `group:"Load" placeholder:"N" help:"Records in a batch. Default 1; in what --read fills in, 100."`
	PageBytes   byteSize      `group:"Load" default:"1MiB" placeholder:"BYTES" help:"With --read: maxBytes of each request. Default ${default}."`
	Plain       bool          `group:"Load" help:"Append without producer id, epoch and sequence."`
	Retries     float64       `group:"Load" placeholder:"SHARE" help:"Share of batches that are sent again after their answer, such as 0.01. Default 0."`
	Rate        float64       `group:"Load" placeholder:"N" help:"Batches a second, over all connections; latencies count from when a batch is due. Default: the next one as soon as the answer is there."`
	Once        bool          `group:"Load" help:"With --read: read from beginning to end once, without a warm-up, however long it takes. A file to compare with is not in memory at the start."`
	Duration    time.Duration `group:"Load" default:"10s" help:"How long to measure. Default ${default}."`
	Warmup      time.Duration `group:"Load" default:"1s" help:"How long to send before that, and at least until each producer has appended once. Default ${default}."`
	Timeout     time.Duration `group:"Load" default:"30s" help:"How long to wait for an answer. Default ${default}."`

	Compare    string `group:"Comparison" placeholder:"WHAT" help:"Measure something else in turn with it and print the ratio. For appends: noop (a server that stores nothing), plain (no producer ids), binary (the format), one-partition, fsync (two of them), bbolt (bare transactions of the same size). With --read: file (from a file server). With --go-producer: prepared (batches of the same size from the load generator)."`
	CompareDir string `group:"Comparison" default:"." placeholder:"DIR" help:"With fsync, bbolt and file: where to put a temporary file. It should be on the disk of the server's data. Default: the working directory."`
	Rounds     int    `group:"Comparison" default:"1" placeholder:"N" help:"How many times to measure both sides. Default ${default}."`
}

// Help explains what is printed.
func (benchCmd) Help() string {
	return `Appends records, or reads them, as fast as one request a connection allows, and prints rates, latencies and what the server says of its commits. Every answer is checked: offsets rise, a batch that is sent again is a duplicate with the offsets of the first time, and at the end the topic holds what was acknowledged, no more and no less. A wrong answer makes the exit code 1.

The load generator needs processor time itself. On one machine with the server, the ratios of --compare mean more than the rates.`
}

// The sides that --compare can have.
const (
	compareNoop         = "noop"
	comparePlain        = "plain"
	compareBinary       = "binary"
	compareOnePartition = "one-partition"
	compareFsync        = "fsync"
	compareBbolt        = "bbolt"
	compareFile         = "file"
	comparePrepared     = "prepared"
)

// Validate refuses values that kong cannot know to be wrong.
func (c *benchCmd) Validate() error {
	switch {
	case c.Read && c.GoProducer:
		return errors.New("give --read or --go-producer, not both")
	case c.Topic != "" && (c.Keep || c.Partitions != 0 || c.RetentionBytes != 0 || c.SegmentBytes != 0):
		return errors.New("--keep, --partitions, --retention-bytes and --segment-bytes are for a new topic, and --topic names one that exists")
	case c.Rounds < 1:
		return errors.New("--rounds must be at least 1")
	case c.Once && !c.Read:
		return errors.New("--once needs --read")
	}
	if err := c.validateLoad(); err != nil {
		return err
	}
	return c.validateComparison()
}

func (c *benchCmd) validateLoad() error {
	generator := c.Connections != 0 || c.BatchSize != 0 || c.Format != "" || c.Plain || c.Retries != 0 || c.Rate != 0
	switch {
	case c.GoProducer && generator:
		return errors.New("--connections, --format, --batch-size, --plain, --retries and --rate do not go with --go-producer, which has its defaults")
	case c.Read && (c.Plain || c.Retries != 0 || c.Rate != 0 || c.Producers != 0):
		return errors.New("--producers, --plain, --retries and --rate do not go with --read")
	}
	switch bench.Format(c.Format) {
	case "", bench.Raw, bench.JSON, bench.NDJSON, bench.Binary:
	default:
		return fmt.Errorf("--format is %q; it must be raw, json, ndjson or binary", c.Format)
	}
	if c.Read {
		load := c.readLoad()
		if err := load.Check(); err != nil {
			return err
		}
	}
	if c.GoProducer {
		load := c.producerLoad()
		if err := load.Check(); err != nil {
			return err
		}
	}
	load := c.load()
	if n := load.BatchBytes(); n > store.MaxBatchBytes {
		return fmt.Errorf("--batch-size times --record-size is %s, a batch has at most %s", byteSize(n), byteSize(store.MaxBatchBytes))
	}
	return load.Check()
}

func (c *benchCmd) validateComparison() error {
	var fits bool
	switch c.Compare {
	case "":
		if c.Rounds > 1 {
			return errors.New("--rounds needs --compare")
		}
		return nil
	case compareFile:
		fits = c.Read
	case comparePrepared:
		fits = c.GoProducer
	case compareNoop, comparePlain, compareBinary, compareOnePartition, compareFsync, compareBbolt:
		fits = !c.Read && !c.GoProducer
	default:
		return fmt.Errorf("--compare is %q; see the help for what there is", c.Compare)
	}
	switch {
	case !fits:
		return fmt.Errorf("--compare %s does not go with what is measured", c.Compare)
	case c.Compare == comparePlain && c.Plain:
		return errors.New("--plain and --compare plain measure the same twice")
	case c.Compare == compareOnePartition && c.Topic != "":
		return errors.New("--compare one-partition needs new topics")
	case c.Rate != 0:
		return errors.New("--compare compares rates, and --rate sets one")
	}
	return nil
}

// or gives what was asked for, or else a default.
func or[T comparable](asked, otherwise T) T {
	var none T
	if asked == none {
		return otherwise
	}
	return asked
}

// load is what the flags ask for; with --read, what the new topic is filled with.
func (c *benchCmd) load() bench.Load {
	l := bench.Load{
		Connections: or(c.Connections, 64), Partitions: or(c.Partitions, 1),
		RecordBytes: int(c.RecordSize), BatchRecords: or(c.BatchSize, 1), Format: bench.Format(or(c.Format, "raw")),
		Plain: c.Plain, Retries: c.Retries, Rate: c.Rate,
		Warmup: c.Warmup, Duration: c.Duration, Timeout: c.Timeout,
	}
	l.Producers = or(c.Producers, max(l.Connections, l.Partitions))
	switch {
	case c.Read:
		l.BatchRecords, l.Format = or(c.BatchSize, 100), bench.Binary
		l.Connections = max(8, l.Partitions)
		l.Producers, l.Bytes = l.Connections, int64(c.Fill)
	case c.GoProducer:
		l.Partitions = or(c.Partitions, 8)
		l.Producers = max(l.Connections, l.Partitions)
	}
	return l
}

func (c *benchCmd) readLoad() bench.ReadLoad {
	return bench.ReadLoad{
		Connections: or(c.Connections, 1), Format: bench.Format(or(c.Format, "ndjson")),
		PageBytes: int(c.PageBytes), PageRecords: store.MaxReadRecords, Once: c.Once,
		Warmup: c.Warmup, Duration: c.Duration, Timeout: c.Timeout,
	}
}

func (c *benchCmd) producerLoad() bench.ProducerLoad {
	return bench.ProducerLoad{
		Producers: or(c.Producers, 1), RecordBytes: int(c.RecordSize), Warmup: c.Warmup, Duration: c.Duration,
	}
}

// Run measures and prints. It fails when an answer was wrong, whatever the rates are.
func (c *benchCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	m, err := newMeasurement(c, std, client)
	if err != nil {
		return err
	}
	defer m.cleanUp(context.WithoutCancel(ctx))
	report, err := m.run(ctx)
	if report.Result != nil {
		err = errors.Join(err, c.print(std, &report))
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return explain(err)
}
