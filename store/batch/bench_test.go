package batch_test

import (
	"bytes"
	"testing"

	"github.com/oncelog/oncelog/store/batch"
)

// benchShapes are batches as clients send them, by what they are called in the names of
// benchmarks.
var benchShapes = []struct {
	name   string
	count  int
	record batch.Record
}{
	{"raw=1x1KiB", 1, batch.Record{Value: bytes.Repeat([]byte("v"), 1<<10), ValueForm: batch.FormRaw, ContentType: "application/octet-stream"}},
	{"text=100x200B", 100, batch.Record{Key: []byte("some key"), KeyForm: batch.FormText, Value: bytes.Repeat([]byte("v"), 200), ValueForm: batch.FormText}},
	{"json=100x200B", 100, batch.Record{Value: []byte(`{"order":17,"items":["` + string(bytes.Repeat([]byte("v"), 168)) + `"],"ok":true}`), ValueForm: batch.FormJSON}},
	{"headers=100x200B", 100, batch.Record{
		Value: bytes.Repeat([]byte("v"), 200), ValueForm: batch.FormText,
		Headers: []batch.Header{{Name: "trace", Value: "0af7651916cd43dd8448eb211c80319c"}, {Name: "source", Value: "shop"}},
	}},
	{"text=1024x1KiB", 1024, batch.Record{Value: bytes.Repeat([]byte("v"), 1<<10), ValueForm: batch.FormText}},
}

// benchmarkShapes runs f with a batch of each shape; the bytes are those of the batch.
func benchmarkShapes(b *testing.B, f func(b *testing.B, count int, r *batch.Record, encoded []byte)) {
	b.Helper()
	for _, shape := range benchShapes {
		b.Run(shape.name, func(b *testing.B) {
			r := shape.record
			r.Timestamp = batch.NoTimestamp
			var builder batch.Builder
			for range shape.count {
				builder.Add(&r)
			}
			encoded := builder.Build().Bytes
			b.ReportAllocs()
			b.SetBytes(int64(len(encoded)))
			f(b, shape.count, &r, encoded)
		})
	}
}

// BenchmarkBuild encodes records, and takes checksum and digest.
func BenchmarkBuild(b *testing.B) {
	benchmarkShapes(b, func(b *testing.B, count int, r *batch.Record, _ []byte) {
		var builder batch.Builder
		for b.Loop() {
			builder.Reset()
			for range count {
				builder.Add(r)
			}
			builder.Build()
		}
	})
}

// BenchmarkParse is what a server does to a batch from a client.
func BenchmarkParse(b *testing.B) {
	benchmarkShapes(b, func(b *testing.B, _ int, _ *batch.Record, encoded []byte) {
		for b.Loop() {
			if _, err := batch.Parse(encoded); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkVerify is what an engine does to a batch that it reads.
func BenchmarkVerify(b *testing.B) {
	benchmarkShapes(b, func(b *testing.B, count int, _ *batch.Record, encoded []byte) {
		for b.Loop() {
			if err := batch.Verify(encoded, int32(count)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRead decodes the records of a stored batch.
func BenchmarkRead(b *testing.B) {
	benchmarkShapes(b, func(b *testing.B, count int, _ *batch.Record, encoded []byte) {
		var rec batch.Record
		for b.Loop() {
			rd, err := batch.NewReader(encoded)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for ok, err := rd.Next(&rec); ok; ok, err = rd.Next(&rec) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != count {
				b.Fatalf("%d records", n)
			}
		}
	})
}
