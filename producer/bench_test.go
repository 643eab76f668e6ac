package producer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// BenchmarkSend sends records of 100 bytes to a server in the same process, over a
// socket: one operation is one record, acknowledged.
func BenchmarkSend(b *testing.B) {
	for _, partitions := range []int{1, 8} {
		for _, protocol := range []producer.Protocol{producer.ProtocolHTTP1, producer.ProtocolHTTP2} {
			b.Run(fmt.Sprintf("partitions=%d/http%d", partitions, protocol), func(b *testing.B) {
				p, err := producer.New(listen(b), producer.WithProtocol(protocol))
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := p.Client().PutTopic(b.Context(), "t", openapi.PutTopicRequest{Partitions: &partitions}); err != nil {
					b.Fatal(err)
				}
				value := make([]byte, 100)
				failed := func(_ producer.Ack, err error) {
					if err != nil {
						b.Error(err)
					}
				}
				b.ReportAllocs()
				for b.Loop() {
					p.SendFunc(context.Background(), producer.Record{Topic: "t", Value: value, ValueFormat: producer.FormatBytes}, failed)
				}
				if err := p.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}

// BenchmarkOneByOne is what a loop by hand makes of the same: a record a request.
func BenchmarkOneByOne(b *testing.B) {
	c := newClient(b, listen(b))
	if _, err := c.CreateTopic(b.Context(), openapi.CreateTopicRequest{Name: "t"}); err != nil {
		b.Fatal(err)
	}
	id, err := c.AllocateProducer(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	value, seq := string(make([]byte, 100)), int64(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Append(b.Context(), "t", 0, openapi.AppendRequest{
			PID: &id.PID, Epoch: &id.Epoch, BaseSeq: &seq, Records: []openapi.AppendRecord{{ValueText: &value}},
		}); err != nil {
			b.Fatal(err)
		}
		seq++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
