package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/sequence"
)

func TestValidTopicName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "A": true, "0": true, "_": true, "-": true, "...": true, ".a": true, "a.": true, "..a": true,
		"orders.eu-west_1":       true,
		"azAZ09._-":              true,
		strings.Repeat("x", 249): true,

		"": false, ".": false, "..": false,
		strings.Repeat("x", 250): false,
		"a/b":                    false, "a b": false, "a\x00": false, "a\n": false, "ä": false, "a\xff": false,
		"a:": false, "@": false, "[": false, "`": false, "{": false, "/": false, "^": false, ",": false, "+": false, "%2e": false,
	} {
		if got := store.ValidTopicName(name); got != want {
			t.Errorf("ValidTopicName(%q) = %v", name, got)
		}
	}
}

func TestDefaultConfig(t *testing.T) {
	c := store.DefaultConfig()
	if err := store.CheckTopic(1, c); err != nil {
		t.Errorf("the default is not valid: %v", err)
	}
	const week = 7 * 24 * 60 * 60 * 1000
	want := store.Config{
		RetentionMs: -1, RetentionBytes: -1, SegmentBytes: 64 << 20, SegmentMs: week,
		MaxBatchBytes: 1 << 20, ProducerExpiryMs: week, MaxProducers: 1_000_000,
	}
	if c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	if err := store.CheckTopic(1, store.Config{}); err == nil {
		t.Error("the zero config is valid")
	}
}

// Each setting has a lowest and a highest value; the ones beyond are refused with a
// pointer to the member.
func TestCheckTopic(t *testing.T) {
	settings := []struct {
		member   string
		min, max int64
		set      func(c *store.Config, v int64)
	}{
		{"retentionMs", -1, sequence.Max, func(c *store.Config, v int64) { c.RetentionMs = v }},
		{"retentionBytes", -1, sequence.Max, func(c *store.Config, v int64) { c.RetentionBytes = v }},
		{"segmentBytes", 1024, sequence.Max, func(c *store.Config, v int64) { c.SegmentBytes = v }},
		{"segmentMs", 1, sequence.Max, func(c *store.Config, v int64) { c.SegmentMs = v }},
		{"maxBatchBytes", 1, 8 << 20, func(c *store.Config, v int64) { c.MaxBatchBytes = v }},
		{"producerExpiryMs", 1, sequence.Max, func(c *store.Config, v int64) { c.ProducerExpiryMs = v }},
		{"maxProducers", 1, sequence.Max, func(c *store.Config, v int64) { c.MaxProducers = v }},
	}
	for _, s := range settings {
		for v, ok := range map[int64]bool{s.min: true, s.max: true, s.min - 1: false, s.max + 1: false} {
			c := store.DefaultConfig()
			s.set(&c, v)
			checkRefusal(t, store.CheckTopic(1, c), ok, s.member, v)
		}
	}
	for v, ok := range map[int]bool{1: true, 1024: true, 0: false, -1: false, 1025: false} {
		checkRefusal(t, store.CheckTopic(v, store.DefaultConfig()), ok, "partitions", int64(v))
	}
}

func checkRefusal(t *testing.T, err *store.Error, ok bool, member string, v int64) {
	t.Helper()
	switch {
	case ok && err != nil:
		t.Errorf("%s %d is refused: %v", member, v, err)
	case !ok && err == nil:
		t.Errorf("%s %d is taken", member, v)
	case !ok && (err.Code != store.CodeInvalidArgument || err.Pointer != "/"+member || !strings.Contains(err.Detail, member)):
		t.Errorf("%s %d: code %s, pointer %q, detail %q", member, v, err.Code, err.Pointer, err.Detail)
	}
}

func TestCheckSize(t *testing.T) {
	c := store.DefaultConfig()
	c.MaxBatchBytes = 8 << 20
	small := c
	small.MaxBatchBytes = 10
	for _, k := range []struct {
		name          string
		config        store.Config
		batch         batch.Batch
		limit, actual int64
	}{
		{name: "at all limits", config: c, batch: batch.Batch{Count: 65_536, LargestRecord: 1 << 20, PayloadBytes: 8 << 20}},
		{name: "nothing but tombstones", config: small, batch: batch.Batch{Count: 65_536}},
		{"a record too many", c, batch.Batch{Count: 65_537}, 65_536, 65_537},
		{"a large record", c, batch.Batch{Count: 1, LargestRecord: 1<<20 + 1, PayloadBytes: 1<<20 + 1}, 1 << 20, 1<<20 + 1},
		{"a large batch", c, batch.Batch{Count: 9, LargestRecord: 1 << 20, PayloadBytes: 8<<20 + 1}, 8 << 20, 8<<20 + 1},
		{"at the topic's limit", small, batch.Batch{Count: 1, LargestRecord: 10, PayloadBytes: 10}, 0, 0},
		{"above the topic's limit", small, batch.Batch{Count: 1, LargestRecord: 11, PayloadBytes: 11}, 10, 11},
		{"everything: the number of records is told first", small, batch.Batch{Count: 70_000, LargestRecord: 2 << 20, PayloadBytes: 9 << 20}, 65_536, 70_000},
	} {
		err := store.CheckSize(k.config, &k.batch)
		if k.limit == 0 {
			if err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
			continue
		}
		if !errors.Is(err, &store.Error{Code: store.CodeTooLarge}) || err.Limit != k.limit || err.Actual != k.actual {
			t.Errorf("%s: %+v, want limit %d, actual %d", k.name, err, k.limit, k.actual)
		}
	}
}

// Sizes are of keys, values and headers: framing and media types do not count.
func TestSizeIsOfThePayload(t *testing.T) {
	var b batch.Builder
	b.Add(&batch.Record{
		Key: []byte("kk"), Value: []byte("vvv"), Headers: []batch.Header{{Name: "n", Value: "vvvv"}},
		Timestamp: 1, ValueForm: batch.FormRaw, ContentType: strings.Repeat("m", 100),
	})
	built := b.Build()
	c := store.DefaultConfig()
	if c.MaxBatchBytes = 10; store.CheckSize(c, &built) != nil {
		t.Error("10 bytes of payload are too large for 10")
	}
	if c.MaxBatchBytes = 9; store.CheckSize(c, &built) == nil {
		t.Error("10 bytes of payload are not too large for 9")
	}
}

func TestCheckProducer(t *testing.T) {
	for name, c := range map[string]struct {
		p    store.ProducerSeq
		n    int32
		want store.Code
	}{
		"zero":              {store.ProducerSeq{}, 1, ""},
		"last sequence":     {store.ProducerSeq{ID: sequence.Max, Epoch: sequence.Max, BaseSeq: sequence.Max - 4}, 5, ""},
		"beyond it":         {store.ProducerSeq{BaseSeq: sequence.Max - 4}, 6, store.CodeInvalidArgument},
		"negative id":       {store.ProducerSeq{ID: -1}, 1, store.CodeInvalidArgument},
		"negative epoch":    {store.ProducerSeq{Epoch: -1}, 1, store.CodeInvalidArgument},
		"epoch too high":    {store.ProducerSeq{Epoch: sequence.Max + 1}, 1, store.CodeInvalidArgument},
		"negative sequence": {store.ProducerSeq{BaseSeq: -1}, 1, store.CodeInvalidArgument},
	} {
		var got store.Code
		if err := store.CheckProducer(&c.p, c.n); err != nil {
			got = err.Code
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
