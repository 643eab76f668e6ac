package producer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/bolt"
)

// One operation of these benchmarks is one record of 100 bytes, acknowledged, which
// means durable: the server in the same process, behind a socket, keeps it in a bbolt
// file. Allocations are those of client and server together, but for
// BenchmarkSendClientAlone.
const benchRecordBytes = 100

// protocols by what they are called in the names of benchmarks.
var protocols = []struct {
	name string
	p    producer.Protocol
}{
	{"HTTP1.1", producer.ProtocolHTTP1},
	{"HTTP2", producer.ProtocolHTTP2},
}

// BenchmarkSend sends by a Producer with its default options.
func BenchmarkSend(b *testing.B) {
	for _, partitions := range []int{1, 8} {
		for _, protocol := range protocols {
			b.Run(fmt.Sprintf("partitions=%d/protocol=%s", partitions, protocol.name), func(b *testing.B) {
				p, err := producer.New(serveBolt(b, partitions), producer.WithProtocol(protocol.p))
				if err != nil {
					b.Fatal(err)
				}
				benchmarkSend(b, p)
			})
		}
	}
}

// BenchmarkSendClientAlone is BenchmarkSend without a server: what the client costs.
func BenchmarkSendClientAlone(b *testing.B) {
	p, err := producer.New("http://oncelog.test", producer.WithTransport(yes{}))
	if err != nil {
		b.Fatal(err)
	}
	benchmarkSend(b, p)
}

// BenchmarkOneByOne is what a loop by hand makes of the same: a request a record, the
// next one when it is answered.
func BenchmarkOneByOne(b *testing.B) {
	for _, partitions := range []int{1, 8} {
		b.Run(fmt.Sprintf("partitions=%d/protocol=HTTP1.1", partitions), func(b *testing.B) {
			base := serveBolt(b, partitions)
			id, err := newClient(b, base).AllocateProducer(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			value, next := string(make([]byte, benchRecordBytes)), make([]int64, partitions)
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			n := 0
			measure(b, func() {
				for b.Loop() {
					at := n % partitions
					body, err := json.Marshal(openapi.AppendRequest{
						PID: &id.PID, Epoch: &id.Epoch, BaseSeq: &next[at], Records: []openapi.AppendRecord{{ValueText: &value}},
					})
					if err != nil {
						b.Fatal(err)
					}
					post(b, client, base+"/topics/t/partitions/"+strconv.Itoa(at)+"/batches", body)
					next[at]++
					n++
				}
			})
		})
	}
}

func post(b *testing.B, client *http.Client, url string, body []byte) {
	b.Helper()
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	var answer openapi.AppendResponse
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode > 299 {
		b.Fatal(resp.Status, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
}

func benchmarkSend(b *testing.B, p *producer.Producer) {
	b.Helper()
	value := make([]byte, benchRecordBytes)
	done := func(_ producer.Ack, err error) {
		if err != nil {
			b.Error(err)
		}
	}
	r := producer.Record{Topic: "t", Value: value, ValueFormat: producer.FormatBytes}
	p.SendFunc(b.Context(), r, done) // allocates the id and looks the topic up
	if err := p.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	measure(b, func() {
		for range b.N { // not Loop: the time ends with the last acknowledgement
			p.SendFunc(context.Background(), r, done)
		}
		if err := p.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	})
}

// measure runs f, which does b.N operations, and reports records a second and
// allocations a record; ReportAllocs would round those down to whole ones.
func measure(b *testing.B, f func()) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	f()
	took := b.Elapsed()
	runtime.ReadMemStats(&after)
	n := float64(b.N)
	b.ReportMetric(n/took.Seconds(), "records/s")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/record")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "allocB/record")
}

// serveBolt serves topic t from a bbolt file.
func serveBolt(b *testing.B, partitions int) string {
	b.Helper()
	st, err := bolt.Open(b.TempDir(), bolt.Options{DiskReserve: -1})
	if err != nil {
		b.Fatal(err)
	}
	s, err := server.New(server.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s.Serve(st)
	ts := httptest.NewUnstartedServer(s)
	ts.Config.Protocols = new(http.Protocols)
	ts.Config.Protocols.SetHTTP1(true)
	ts.Config.Protocols.SetUnencryptedHTTP2(true)
	ts.Start()
	b.Cleanup(func() {
		ts.Close()
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	})
	if _, _, err := newClient(b, ts.URL).PutTopic(b.Context(), "t", openapi.PutTopicRequest{Partitions: &partitions}); err != nil {
		b.Fatal(err)
	}
	return ts.URL
}

// yes answers every request at once, and stores nothing.
type yes struct{}

func (yes) RoundTrip(r *http.Request) (*http.Response, error) {
	x := parseRequest(r)
	var body string
	switch x.Op {
	case "allocate":
		body = `{"pid":0,"epoch":0}`
	case "topic":
		body = `{"name":"t","partitions":1}`
	default:
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		sent, err := batch.Parse(data)
		if err != nil {
			return nil, err
		}
		end := x.BaseSeq + int64(sent.Count)
		body = fmt.Sprintf(`{"topic":"t","partition":0,"baseOffset":%d,"lastOffset":%d,"nextSeq":%d,"duplicate":false,"appendedAt":null}`,
			x.BaseSeq, end-1, end)
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, body)
	return w.Result(), nil
}
