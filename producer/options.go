package producer

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oncelog/oncelog/store/sequence"
)

// Delivery is what a [Producer] promises of each record.
type Delivery int

// The modes of delivery.
const (
	// ExactlyOnce: every acknowledged record is stored once, in the order of the
	// sends to its partition. What may have failed is sent again under the same
	// sequence, which the server recognises.
	ExactlyOnce Delivery = iota
	// AtLeastOnce: what may have failed is sent again without a sequence, and may be
	// stored twice. With more than one request in flight order may change.
	AtLeastOnce
	// AtMostOnce: nothing is sent twice, and a record whose answer is lost may be lost.
	AtMostOnce
)

// String names the mode in lower case.
func (d Delivery) String() string {
	switch d {
	case ExactlyOnce:
		return "exactly-once"
	case AtLeastOnce:
		return "at-least-once"
	case AtMostOnce:
		return "at-most-once"
	}
	return "unknown"
}

// Option configures a [Producer]. Every [ClientOption] is one.
type Option interface {
	apply(c *config)
}

type option func(*config)

func (o option) apply(c *config) { o(c) }

const unset = -1

// config holds what can be set. Members that are unset take a value that depends on
// others; complete does that, and nothing else gives defaults.
type config struct {
	client clientConfig

	delivery        Delivery
	linger          time.Duration
	batchBytes      int
	bufferBytes     int
	maxInFlight     int
	maxRequests     int
	retries         int // unset: no bound but the delivery timeout
	backoff         backoff
	deliveryTimeout time.Duration
	maxBlock        time.Duration
	metadataAge     time.Duration
	compression     Encoding
	partitioner     func(r Record, partitions int) int
	hook            Hook
	logger          *slog.Logger
}

func defaultConfig() config {
	return config{
		client:          defaultClientConfig(),
		linger:          5 * time.Millisecond,
		batchBytes:      64 << 10,
		bufferBytes:     32 << 20,
		maxInFlight:     unset,
		maxRequests:     128,
		retries:         unset,
		backoff:         defaultBackoff,
		deliveryTimeout: 2 * time.Minute,
		maxBlock:        time.Minute,
		metadataAge:     5 * time.Minute,
		hook:            NoHook{},
		logger:          slog.New(slog.DiscardHandler),
	}
}

// complete checks the config and fills in what depends on other members.
func (c *config) complete() error {
	if c.client.timeout == 0 {
		return errors.New("producer: a request timeout of 0 would wait for a lost answer for ever; set WithRequestTimeout above 0")
	}
	if err := c.checkDelivery(); err != nil {
		return err
	}
	if err := c.checkTimes(); err != nil {
		return err
	}
	return c.checkSizes()
}

// checkDelivery holds the mode of delivery to what it needs. A promise that cannot be
// kept is refused, not quietly weakened.
func (c *config) checkDelivery() error {
	if c.maxInFlight == unset {
		c.maxInFlight = 1 // without sequences, more than one would give up order
		if c.delivery == ExactlyOnce {
			c.maxInFlight = sequence.Window
		}
	}
	if c.delivery == AtMostOnce && c.retries == unset {
		c.retries = 0
	}
	switch {
	case c.delivery < ExactlyOnce || c.delivery > AtMostOnce:
		return errors.New("producer: unknown delivery; use ExactlyOnce, AtLeastOnce or AtMostOnce")
	case c.retries < unset:
		return fmt.Errorf("producer: %d retries; set WithRetries to 0 or more, or leave it out", c.retries)
	case c.maxInFlight < 1:
		return fmt.Errorf("producer: %d batches in flight; set WithMaxInFlight to 1 or more", c.maxInFlight)
	case c.delivery == ExactlyOnce && c.maxInFlight > sequence.Window:
		return fmt.Errorf("producer: exactly-once allows at most %d batches in flight in a partition, which is how many a server remembers; set WithMaxInFlight to at most %d, or WithDelivery(AtLeastOnce)",
			sequence.Window, sequence.Window)
	case c.delivery == ExactlyOnce && c.retries == 0:
		return errors.New("producer: exactly-once needs retries, for a lost answer is only found out by asking again; leave out WithRetries(0), or set WithDelivery(AtMostOnce)")
	case c.delivery == AtLeastOnce && c.retries == 0:
		return errors.New("producer: at-least-once needs retries; leave out WithRetries(0), or set WithDelivery(AtMostOnce)")
	case c.delivery == AtMostOnce && c.retries > 0:
		return errors.New("producer: at-most-once never sends twice; leave out WithRetries, or set WithDelivery(AtLeastOnce) or WithDelivery(ExactlyOnce)")
	}
	return nil
}

func (c *config) checkTimes() error {
	switch {
	case c.linger < 0:
		return errors.New("producer: a linger must not be negative; 0 sends at once")
	case c.backoff.base <= 0 || c.backoff.max < c.backoff.base:
		return fmt.Errorf("producer: a backoff from %v to %v; the first must be above 0 and at most the second", c.backoff.base, c.backoff.max)
	case c.deliveryTimeout < c.linger+c.client.timeout:
		return fmt.Errorf("producer: the delivery timeout of %v is below linger plus request timeout, %v: not even one request could run its time; raise WithDeliveryTimeout, or lower WithRequestTimeout or WithLinger",
			c.deliveryTimeout, c.linger+c.client.timeout)
	case c.maxBlock <= 0:
		return errors.New("producer: the longest time that Send may block must be above 0")
	case c.metadataAge <= 0:
		return errors.New("producer: the age of a topic's description must be above 0")
	}
	return nil
}

func (c *config) checkSizes() error {
	switch {
	case c.batchBytes < 1 || c.batchBytes > maxBatchBytes:
		return fmt.Errorf("producer: batches of %d bytes; set WithBatchBytes from 1 to %d", c.batchBytes, maxBatchBytes)
	case c.bufferBytes < c.batchBytes || c.bufferBytes < maxRecordBytes+frameBytes:
		return fmt.Errorf("producer: a buffer of %d bytes cannot hold a batch of %d and a record of %d; raise WithBufferBytes or lower WithBatchBytes",
			c.bufferBytes, c.batchBytes, maxRecordBytes+frameBytes)
	case c.maxRequests < 1:
		return fmt.Errorf("producer: %d requests at a time; set WithMaxRequests to 1 or more", c.maxRequests)
	case c.compression != Identity && c.compression != Gzip && c.compression != Zstd:
		return fmt.Errorf("producer: unknown compression %q; use Identity, Gzip or Zstd", c.compression)
	case c.hook == nil || c.logger == nil:
		return errors.New("producer: the hook and the logger must not be nil; leave the option out instead")
	}
	return nil
}

// WithDelivery sets the mode of delivery. Default: ExactlyOnce.
func WithDelivery(d Delivery) Option { return option(func(c *config) { c.delivery = d }) }

// WithLinger sets how long a batch that is not full waits for more records.
// Default: 5 ms.
func WithLinger(d time.Duration) Option { return option(func(c *config) { c.linger = d }) }

// WithBatchBytes sets at how many bytes a batch is full. A larger record gets a batch
// of its own. Default: 64 KiB.
func WithBatchBytes(n int) Option { return option(func(c *config) { c.batchBytes = n }) }

// WithBufferBytes bounds the records that have no outcome yet; Send blocks when it is
// full. Default: 32 MiB.
func WithBufferBytes(n int) Option { return option(func(c *config) { c.bufferBytes = n }) }

// WithMaxInFlight sets how many batches of a partition may be undecided at a time,
// counted from the lowest of them. Default: 5, and 1 without sequences.
func WithMaxInFlight(n int) Option { return option(func(c *config) { c.maxInFlight = n }) }

// WithMaxRequests bounds the requests at a time over all partitions. Default: 128.
func WithMaxRequests(n int) Option { return option(func(c *config) { c.maxRequests = n }) }

// WithRetries bounds how often a batch is sent again. Default: only the delivery
// timeout does, which is nearly always what one wants.
func WithRetries(n int) Option { return option(func(c *config) { c.retries = n }) }

// WithBackoff sets the wait after a first failure, and the most that doubling it may
// reach. Default: 100 ms to 1 s.
func WithBackoff(first, most time.Duration) Option {
	return option(func(c *config) { c.backoff = backoff{base: first, max: most} })
}

// WithDeliveryTimeout bounds the time from the first record of a batch to its
// outcome, all retries included. Keep it far below the topics' producerExpiryMs.
// Default: 2 min.
func WithDeliveryTimeout(d time.Duration) Option {
	return option(func(c *config) { c.deliveryTimeout = d })
}

// WithMaxBlock bounds how long Send may block. Default: 1 min.
func WithMaxBlock(d time.Duration) Option { return option(func(c *config) { c.maxBlock = d }) }

// WithMetadataAge sets after what time a topic's number of partitions is asked for
// again. Default: 5 min.
func WithMetadataAge(d time.Duration) Option { return option(func(c *config) { c.metadataAge = d }) }

// WithCompression encodes request bodies. Default: Identity.
func WithCompression(e Encoding) Option { return option(func(c *config) { c.compression = e }) }

// WithPartitioner sets what picks the partition of a record that names none: f gets
// the record and the number of partitions n and returns 0 … n−1, or −1 to leave it
// to the sticky choice. Default: [KeyPartition] of the key, sticky without one.
func WithPartitioner(f func(r Record, n int) int) Option {
	return option(func(c *config) { c.partitioner = f })
}

// WithHook tells h what happens, for metrics.
func WithHook(h Hook) Option { return option(func(c *config) { c.hook = h }) }

// WithLogger sets where to log. Default: nowhere.
func WithLogger(l *slog.Logger) Option { return option(func(c *config) { c.logger = l }) }
