package batch_test

import (
	"bytes"
	"testing"

	"github.com/oncelog/oncelog/store/batch"
)

// benchShape is a batch as clients send them.
type benchShape struct {
	name   string
	count  int
	record batch.Record
}

func benchShapes() []benchShape {
	value := bytes.Repeat([]byte("v"), 1<<10)
	headers := []batch.Header{{Name: "trace", Value: "0af7651916cd43dd8448eb211c80319c"}, {Name: "source", Value: "shop"}}
	object := []byte(`{"order":17,"items":["` + string(value[:168]) + `"],"ok":true}`)
	shapes := []benchShape{
		{"raw=1x1KiB", 1, batch.Record{Value: value, ValueForm: batch.FormRaw, ContentType: "application/octet-stream"}},
		{"text=100x200B", 100, batch.Record{Key: []byte("some key"), KeyForm: batch.FormText, Value: value[:200], ValueForm: batch.FormText}},
		{"json=100x200B", 100, batch.Record{Value: object, ValueForm: batch.FormJSON}},
		{"headers=100x200B", 100, batch.Record{Value: value[:200], ValueForm: batch.FormText, Headers: headers}},
		{"text=1024x1KiB", 1024, batch.Record{Value: value, ValueForm: batch.FormText}},
	}
	for i := range shapes {
		shapes[i].record.Timestamp = batch.NoTimestamp
	}
	return shapes
}

// begin prepares a benchmark whose bytes are those of the batch.
func (s *benchShape) begin(b *testing.B) (encoded []byte) {
	b.Helper()
	var builder batch.Builder
	for range s.count {
		builder.Add(&s.record)
	}
	encoded = builder.Build().Bytes
	b.ReportAllocs()
	b.SetBytes(int64(len(encoded)))
	return encoded
}

// BenchmarkBuild encodes records, and takes checksum and digest.
func BenchmarkBuild(b *testing.B) {
	for _, s := range benchShapes() {
		b.Run(s.name, func(b *testing.B) {
			s.begin(b)
			var builder batch.Builder
			for b.Loop() {
				builder.Reset()
				for range s.count {
					builder.Add(&s.record)
				}
				builder.Build()
			}
		})
	}
}

// BenchmarkParse is what a server does to a batch from a client.
func BenchmarkParse(b *testing.B) {
	for _, s := range benchShapes() {
		b.Run(s.name, func(b *testing.B) {
			encoded := s.begin(b)
			for b.Loop() {
				if _, err := batch.Parse(encoded); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVerify is what an engine does to a batch that it reads.
func BenchmarkVerify(b *testing.B) {
	for _, s := range benchShapes() {
		b.Run(s.name, func(b *testing.B) {
			encoded := s.begin(b)
			for b.Loop() {
				if err := batch.Verify(encoded, int32(s.count)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRead decodes the records of a stored batch.
func BenchmarkRead(b *testing.B) {
	for _, s := range benchShapes() {
		b.Run(s.name, func(b *testing.B) {
			encoded := s.begin(b)
			var rec batch.Record
			for b.Loop() {
				rd, err := batch.NewReader(encoded)
				n, ok := 0, err == nil
				for ; ok; n++ {
					ok, err = rd.Next(&rec)
				}
				if err != nil || n-1 != s.count {
					b.Fatalf("%d records, %v", n-1, err)
				}
			}
		})
	}
}
