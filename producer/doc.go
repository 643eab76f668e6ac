// Package producer is the Go client of oncelog: it stores records over plain HTTP,
// each of them once and in order, through lost answers, broken connections, proxies
// and restarts of the server.
//
// # Sending
//
// A [Producer] gathers records into batches and keeps up to five batches of each
// partition under way:
//
//	p, err := producer.New("http://127.0.0.1:8080")
//	…
//	f := p.Send(ctx, producer.Record{Topic: "orders", Key: []byte("order-17"), Value: []byte("paid")})
//	ack, err := f.Wait(ctx) // topic, partition, offset, duplicate
//	…
//	err = p.Close(ctx) // sends what is left and waits for it
//
// [Producer.SendFunc] takes a callback instead of giving a [Future]. [Producer.Flush]
// waits for everything sent so far. One Producer serves a whole program: it may be
// used from many goroutines, and sends to any number of topics.
//
// A record goes to the partition that it names; else to the one that Kafka's default
// partitioner would pick by its key; else, without a key, to one that changes with
// every batch's worth of bytes. [WithPartitioner] puts a function in that place.
//
// Batches are sent when they have [WithBatchBytes], or [WithLinger] after their first
// record. Records without an outcome hold memory; when they hold [WithBufferBytes],
// Send blocks, for at most [WithMaxBlock].
//
// # What is promised
//
// [WithDelivery] picks one of three modes. [ExactlyOnce] is the default: every batch
// has a place in the producer's sequence, and the server recognises what it has stored
// already. [AtLeastOnce] and [AtMostOnce] do without. Options that would weaken a
// promise are refused by [New], with an error that says what to change.
//
// With ExactlyOnce, records that one Producer has sent to a partition are stored in
// the order of the Sends, none twice. Nothing is promised across partitions, across
// two Producers, or across a restart of the program: a new Producer has a new id, and
// a record that the program sends twice is two records.
//
// # Failures
//
// What may pass is tried again, with growing pauses and the same sequence and bytes:
// no connection, no answer, a proxy's error page, 408, 429 and 5xx all mean that the
// request may or may not have been carried out, and the same again finds out. A record
// is given up on after [WithDeliveryTimeout].
//
// Every error is an [*Error]. errors.Is asks for its [Code], and its Outcome tells what
// matters most:
//
//	not-applied  the record is not stored and will not be
//	unknown      it may be stored: a copy that is sent now is another record
//
// A failed record does not stop those behind it, and they are stored in order. Only
// when somebody else has taken over the producer's id ([CodeProducerFenced]), or when
// the credentials are not taken ([CodeUnauthenticated]), everything stops and all that
// is left fails.
//
// A context that ends takes nothing back: it ends the waiting. The sequence of a
// record that may have been sent is never used for another.
//
// If a server has let the producer's state expire, has lost records that it had
// acknowledged, or has never heard of the producer's id, the Producer goes on by
// itself under a new epoch or id. [Hook] and the log tell of it.
//
// # One request at a time
//
// [Client] is the low level, usable on its own: one method per operation of the HTTP
// interface. It sends one request, gives back one answer or one [*Error], and never
// tries again.
package producer
