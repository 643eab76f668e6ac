package store

import (
	"time"
)

// Partition names one log.
type Partition struct {
	Topic  string
	Number int // 0 … partitions of the topic − 1
}

// Topic is a named set of partitions.
type Topic struct {
	Name string
	// ID tells apart topics that have had the same name. It never returns.
	ID         string
	Partitions int
	Config     Config
	// Version counts the changes of Partitions and Config, from 1.
	Version   int64
	CreatedAt time.Time
}

// Keep as a retention limit means: no limit.
const Keep = -1

// Config is what can be set on a topic. The zero value is not valid; start from
// [DefaultConfig].
type Config struct {
	// RetentionMs and RetentionBytes bound a partition: whole segments go, oldest
	// first, while all their records are too old or what follows is large enough.
	// An active segment whose records are all too old is closed, and goes too. Keep
	// (−1) switches a bound off.
	RetentionMs    int64
	RetentionBytes int64
	// SegmentBytes and SegmentMs close the active segment: when the next batch
	// would take it over so many bytes, or when it has been open for so long.
	SegmentBytes int64
	SegmentMs    int64
	// MaxBatchBytes bounds the keys, values and headers of one batch, in bytes.
	MaxBatchBytes int64
	// ProducerExpiryMs is how long after its last batch a producer is remembered.
	ProducerExpiryMs int64
	// MaxProducers bounds the producers with live state in one partition.
	MaxProducers int64
	// RequireIdempotence refuses appends without a producer id.
	RequireIdempotence bool
}

// DefaultConfig is the configuration of a topic that was created without any.
func DefaultConfig() Config {
	const day = 24 * 60 * 60 * 1000
	return Config{
		RetentionMs:      Keep,
		RetentionBytes:   Keep,
		SegmentBytes:     64 << 20,
		SegmentMs:        7 * day,
		MaxBatchBytes:    1 << 20,
		ProducerExpiryMs: 7 * day,
		MaxProducers:     1_000_000,
	}
}

// MaxTopicName is the longest topic name, in bytes.
const MaxTopicName = 249

// ValidTopicName reports whether name is 1 to 249 of [A-Za-z0-9._-] and neither "."
// nor "..", Kafka's rule.
func ValidTopicName(name string) bool {
	if name == "" || len(name) > MaxTopicName || name == "." || name == ".." {
		return false
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
