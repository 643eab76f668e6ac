package producer_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store/memory"
)

// startServer stands for a server somewhere else.
func startServer() (url string, stop func()) {
	s, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	s.Serve(memory.Open(memory.Options{}))
	ts := httptest.NewServer(s)
	return ts.URL, ts.Close
}

func Example() {
	url, stop := startServer()
	defer stop()
	ctx := context.Background()

	p, err := producer.New(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, _, err := p.Client().PutTopic(ctx, "orders", openapi.PutTopicRequest{}); err != nil {
		fmt.Println(err)
		return
	}
	f := p.Send(ctx, producer.Record{Topic: "orders", Key: []byte("order-17"), Value: []byte("paid")})
	ack, err := f.Wait(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ack.Topic, ack.Partition, ack.Offset, ack.Duplicate)
	if err := p.Close(ctx); err != nil {
		fmt.Println(err)
		return
	}
	// Output: orders 0 0 false
}

func ExampleProducer_SendFunc() {
	url, stop := startServer()
	defer stop()
	ctx := context.Background()
	p, err := producer.New(url, producer.WithLinger(20*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, _, err := p.Client().PutTopic(ctx, "orders", openapi.PutTopicRequest{}); err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range []string{"new", "paid", "sent"} {
		p.SendFunc(ctx, producer.Record{Topic: "orders", Value: []byte(v)}, func(a producer.Ack, err error) {
			fmt.Println(v, a.Offset, err)
		})
	}
	if err := p.Close(ctx); err != nil { // flushes
		fmt.Println(err)
		return
	}
	// Output:
	// new 0 <nil>
	// paid 1 <nil>
	// sent 2 <nil>
}

// An error says whether the record is stored.
func ExampleError() {
	url, stop := startServer()
	defer stop()
	ctx := context.Background()
	p, err := producer.New(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = p.Send(ctx, producer.Record{Topic: "nothing", Value: []byte("v")}).Wait(ctx)
	switch {
	case errors.Is(err, producer.CodeUnknownTopic):
		fmt.Println("no such topic, outcome", producer.OutcomeOf(err))
	case producer.OutcomeOf(err) == openapi.Unknown:
		fmt.Println("it may be stored")
	}
	if err := p.Close(ctx); err != nil {
		fmt.Println(err)
		return
	}
	// Output: no such topic, outcome not-applied
}

// The low level: the same append twice is stored once.
func ExampleClient_Append() {
	url, stop := startServer()
	defer stop()
	ctx := context.Background()
	c, err := producer.NewClient(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseIdleConnections()
	if _, err := c.CreateTopic(ctx, openapi.CreateTopicRequest{Name: "orders"}); err != nil {
		fmt.Println(err)
		return
	}
	id, err := c.AllocateProducer(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := openapi.AppendRequest{
		PID: &id.PID, Epoch: &id.Epoch, BaseSeq: new(int64(0)),
		Records: []openapi.AppendRecord{{ValueText: new("paid")}},
	}
	for range 2 {
		a, err := c.Append(ctx, "orders", 0, r)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(*a.BaseOffset, a.Duplicate)
	}
	// Output:
	// 0 false
	// 0 true
}

func ExampleClient_Follow() {
	url, stop := startServer()
	defer stop()
	ctx := context.Background()
	c, err := producer.NewClient(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseIdleConnections()
	if _, err := c.CreateTopic(ctx, openapi.CreateTopicRequest{Name: "orders"}); err != nil {
		fmt.Println(err)
		return
	}
	records := []openapi.AppendRecord{{ValueText: new("new")}, {ValueText: new("paid")}}
	if _, err := c.Append(ctx, "orders", 0, openapi.AppendRequest{Records: records}); err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range c.Follow(ctx, "orders", 0, producer.Read{Offset: producer.Earliest}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Offset, *r.ValueText)
		if r.Offset == 1 {
			break
		}
	}
	// Output:
	// 0 new
	// 1 paid
}
