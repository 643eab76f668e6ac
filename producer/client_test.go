package producer_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/store/batch"
	"github.com/oncelog/oncelog/store/memory"
)

// listen serves a new oncelog below /some/base of a real socket, which fails whatever
// ignores the path of the URL, by HTTP/1.1 and HTTP/2.
func listen(t testing.TB) string {
	t.Helper()
	s, err := server.New(server.Options{Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(memory.Open(memory.Options{}))
	ts := httptest.NewUnstartedServer(http.StripPrefix("/some/base", s))
	ts.Config.Protocols = new(http.Protocols)
	ts.Config.Protocols.SetHTTP1(true)
	ts.Config.Protocols.SetUnencryptedHTTP2(true)
	ts.Start()
	t.Cleanup(ts.Close)
	return ts.URL + "/some/base/"
}

func newClient(t testing.TB, url string, opts ...producer.ClientOption) *producer.Client {
	t.Helper()
	c, err := producer.NewClient(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func ok[T any](t testing.TB) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestClientTopics(t *testing.T) {
	c, ctx := newClient(t, listen(t)), t.Context()
	topic := ok[openapi.Topic](t)(c.CreateTopic(ctx, openapi.CreateTopicRequest{Name: "a", Partitions: new(2)}))
	if _, err := c.CreateTopic(ctx, openapi.CreateTopicRequest{Name: "a"}); !errors.Is(err, producer.CodeTopicExists) {
		t.Errorf("created twice: %v", err)
	}
	if _, created, err := c.PutTopic(ctx, "b", openapi.PutTopicRequest{}); err != nil || !created {
		t.Errorf("put: %t, %v", created, err)
	}
	if _, created, err := c.PutTopic(ctx, "b", openapi.PutTopicRequest{}); err != nil || created {
		t.Errorf("put again: %t, %v", created, err)
	}
	page := ok[openapi.TopicList](t)(c.Topics(ctx, producer.Page{Limit: 1}))
	if len(page.Items) != 1 || page.NextPageToken == nil {
		t.Fatalf("page %+v", page)
	}
	page = ok[openapi.TopicList](t)(c.Topics(ctx, producer.Page{Limit: 1, Token: *page.NextPageToken}))
	if len(page.Items) != 1 || page.Items[0].Name != "b" {
		t.Errorf("page %+v", page)
	}
	grown := ok[openapi.Topic](t)(c.UpdateTopic(ctx, "a", openapi.PutTopicRequest{Partitions: new(3)}, &topic))
	if got := ok[openapi.Topic](t)(c.Topic(ctx, "a")); got != grown || got.Partitions != 3 {
		t.Errorf("got %+v, want %+v", got, grown)
	}
	if _, err := c.UpdateTopic(ctx, "a", openapi.PutTopicRequest{Partitions: new(4)}, &topic); !errors.Is(err, producer.CodeVersionMismatch) {
		t.Errorf("changed what had changed: %v", err)
	}
	if err := c.DeleteTopic(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	_, err := c.Topic(ctx, "a/../b")
	e, _ := errors.AsType[*producer.Error](err)
	if e == nil || e.Code != producer.CodeUnknownTopic || !e.FromServer || e.Problem == nil || e.RequestID == "" || e.Outcome != openapi.NotApplied {
		t.Errorf("got %+v", e)
	}
}

func TestClientAppendsAndReads(t *testing.T) {
	c, ctx := newClient(t, listen(t)), t.Context()
	ok[openapi.Topic](t)(c.CreateTopic(ctx, openapi.CreateTopicRequest{Name: "a"}))
	id := ok[openapi.ProducerID](t)(c.AllocateProducer(ctx))
	r := openapi.AppendRequest{
		PID: &id.PID, Epoch: &id.Epoch, BaseSeq: new(int64(0)),
		Records: []openapi.AppendRecord{{Key: new("k"), ValueText: new("v")}, {Value: []byte(`{"a":1}`)}},
	}
	for _, duplicate := range []bool{false, true} {
		a := ok[openapi.AppendResponse](t)(c.Append(ctx, "a", 0, r))
		if *a.BaseOffset != 0 || *a.LastOffset != 1 || *a.NextSeq != 2 || a.Duplicate != duplicate {
			t.Errorf("answer %+v", a)
		}
	}
	var b batch.Builder
	b.Add(&batch.Record{Value: []byte("bin"), ValueForm: batch.FormText, Timestamp: batch.NoTimestamp})
	body := b.Build().Bytes
	a := ok[openapi.AppendResponse](t)(c.AppendBatch(ctx, "a", 0, &producer.Sequence{PID: id.PID, BaseSeq: 2}, body, producer.Identity))
	if *a.BaseOffset != 2 || *a.NextSeq != 3 {
		t.Errorf("answer %+v", a)
	}
	if a = ok[openapi.AppendResponse](t)(c.AppendBatch(ctx, "a", 0, nil, body, producer.Identity)); a.NextSeq != nil {
		t.Errorf("answer %+v", a)
	}
	_, err := c.AppendBatch(ctx, "a", 0, &producer.Sequence{PID: id.PID, BaseSeq: 9}, body, producer.Identity)
	e, _ := errors.AsType[*producer.Error](err)
	if e == nil || !errors.Is(err, producer.CodeOutOfOrderSequence) || !e.Retryable || *e.Problem.ExpectedSeq != 3 {
		t.Errorf("got %v", err)
	}

	list := ok[openapi.RecordList](t)(c.Records(ctx, "a", 0, producer.Read{Offset: "-2", Limit: 1, MaxBytes: 1000}))
	if len(list.Records) != 1 || *list.Records[0].ValueText != "bin" || list.NextOffset != 3 {
		t.Errorf("read %+v", list)
	}
	list = ok[openapi.RecordList](t)(c.Records(ctx, "a", 0, producer.Read{Base64: true}))
	if len(list.Records) != 4 || *list.Records[0].ValueBase64 != "dg==" {
		t.Errorf("read %+v", list)
	}
	start := time.Now()
	list = ok[openapi.RecordList](t)(c.Records(ctx, "a", 0, producer.Read{Offset: producer.Latest, Wait: 30 * time.Millisecond}))
	if len(list.Records) != 0 || time.Since(start) < 30*time.Millisecond {
		t.Errorf("read %+v", list)
	}
}

func TestClientPartitionsProducersSnapshots(t *testing.T) {
	c, ctx := newClient(t, listen(t)), t.Context()
	ok[openapi.Topic](t)(c.CreateTopic(ctx, openapi.CreateTopicRequest{Name: "a"}))
	id := ok[openapi.ProducerID](t)(c.AllocateProducer(ctx))
	for seq := range int64(3) {
		ok[openapi.AppendResponse](t)(c.Append(ctx, "a", 0, openapi.AppendRequest{
			PID: &id.PID, Epoch: &id.Epoch, BaseSeq: &seq, Records: []openapi.AppendRecord{{ValueText: new("v")}},
		}))
	}
	if h := ok[openapi.BatchHeaderList](t)(c.Batches(ctx, "a", 0, 1, 1)); len(h.Items) != 1 || h.Items[0].BaseOffset != 1 {
		t.Errorf("headers %+v", h)
	}
	if h := ok[openapi.BatchHeaderList](t)(c.Batches(ctx, "a", 0, -1, 0)); len(h.Items) != 3 {
		t.Errorf("headers %+v", h)
	}
	if p := ok[openapi.Partition](t)(c.Roll(ctx, "a", 0)); len(p.Segments) != 2 {
		t.Errorf("rolled %+v", p)
	}
	if p := ok[openapi.ProducerList](t)(c.Producers(ctx, producer.Page{})); len(p.Items) != 1 {
		t.Errorf("producers %+v", p)
	}
	if p := ok[openapi.Producer](t)(c.Producer(ctx, id.PID)); len(p.Partitions) != 1 {
		t.Errorf("producer %+v", p)
	}
	if p := ok[openapi.PartitionProducerList](t)(c.PartitionProducers(ctx, "a", 0, producer.Page{})); len(p.Items) != 1 {
		t.Errorf("producers %+v", p)
	}
	if p := ok[openapi.PartitionProducer](t)(c.PartitionProducer(ctx, "a", 0, id.PID)); p.LastSeq != 2 || len(p.Recent) != 3 {
		t.Errorf("producer %+v", p)
	}
	taken := ok[[]openapi.Snapshot](t)(c.TakeSnapshots(ctx, producer.SnapshotFilter{Topic: "a", Partition: new(0)}))
	if len(taken) != 1 || taken[0].Offset != 3 {
		t.Fatalf("taken %+v", taken)
	}
	if l := ok[openapi.SnapshotList](t)(c.Snapshots(ctx, producer.SnapshotFilter{Topic: "a", Partition: new(0)}, producer.Page{})); len(l.Items) == 0 {
		t.Errorf("snapshots %+v", l)
	}
	if d := ok[openapi.SnapshotDetail](t)(c.Snapshot(ctx, "a", 0, 3, producer.Page{})); len(d.Items) != 1 {
		t.Errorf("snapshot %+v", d)
	}
	if v := ok[openapi.SnapshotVerification](t)(c.VerifySnapshot(ctx, "a", 0, 3)); !v.Match {
		t.Errorf("verification %+v", v)
	}
	if err := c.DeleteSnapshot(ctx, "a", 0, 3); err != nil {
		t.Error(err)
	}
	if tr := ok[openapi.TrimResponse](t)(c.Trim(ctx, "a", 0, 3)); tr.EarliestOffset != 3 {
		t.Errorf("trimmed %+v", tr)
	}
	if p := ok[openapi.Partition](t)(c.Partition(ctx, "a", 0)); p.EarliestOffset != 3 || p.NextOffset != 3 {
		t.Errorf("partition %+v", p)
	}
	if err := c.ExpireProducer(ctx, "a", 0, id.PID); err != nil {
		t.Error(err)
	}
	if _, err := c.PartitionProducer(ctx, "a", 0, id.PID); !errors.Is(err, producer.CodeUnknownProducerID) {
		t.Errorf("expired: %v", err)
	}
	if l := ok[openapi.Limits](t)(c.Limits(ctx)); l.ProducerWindow != 5 {
		t.Errorf("limits %+v", l)
	}
	if v := ok[openapi.Version](t)(c.Version(ctx)); v.Version != "1.2.3" {
		t.Errorf("version %+v", v)
	}
	if err := c.Ready(ctx); err != nil {
		t.Error(err)
	}
}

func TestFollow(t *testing.T) {
	c := newClient(t, listen(t))
	ok[openapi.Topic](t)(c.CreateTopic(t.Context(), openapi.CreateTopicRequest{Name: "a"}))
	// Not under the context of the follower: it may see a record before its append is
	// answered.
	add := func(v string) {
		if _, err := c.Append(t.Context(), "a", 0, openapi.AppendRequest{Records: []openapi.AppendRecord{{ValueText: &v}}}); err != nil {
			t.Error(err)
		}
	}
	add("0")
	var adding sync.WaitGroup
	defer adding.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	for r, err := range c.Follow(ctx, "a", 0, producer.Read{}) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		if *r.ValueText != strconv.Itoa(n) || r.Offset != int64(n) {
			t.Errorf("record %d is %+v", n, r)
		}
		if n++; n == 5 {
			cancel()
			continue
		}
		next := strconv.Itoa(n)
		adding.Go(func() { add(next) })
	}
	cancel()
	if n != 5 {
		t.Errorf("followed %d records", n)
	}
	for _, err := range c.Follow(t.Context(), "nothing", 0, producer.Read{}) {
		if !errors.Is(err, producer.CodeUnknownTopic) {
			t.Error(err)
		}
	}
}

func TestProtocols(t *testing.T) {
	var seen string
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Proto
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"ok"}`)
	})
	plain := httptest.NewUnstartedServer(echo)
	plain.Config.Protocols = new(http.Protocols)
	plain.Config.Protocols.SetHTTP1(true)
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Start()
	defer plain.Close()
	secure := httptest.NewUnstartedServer(echo)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	secureConfig := secure.Client().Transport.(*http.Transport).TLSClientConfig
	for _, tt := range []struct {
		url, want string
		opts      []producer.ClientOption
	}{
		{plain.URL, "HTTP/1.1", nil},
		{plain.URL, "HTTP/1.1", []producer.ClientOption{producer.WithProtocol(producer.ProtocolHTTP1)}},
		{plain.URL, "HTTP/2.0", []producer.ClientOption{producer.WithProtocol(producer.ProtocolHTTP2)}},
		{secure.URL, "HTTP/2.0", []producer.ClientOption{producer.WithTLSConfig(secureConfig.Clone())}},
		{secure.URL, "HTTP/1.1", []producer.ClientOption{producer.WithTLSConfig(secureConfig.Clone()), producer.WithProtocol(producer.ProtocolHTTP1)}},
	} {
		if err := newClient(t, tt.url, tt.opts...).Ready(t.Context()); err != nil || seen != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.url, seen, err, tt.want)
		}
	}
}

// What no oncelog server has said is an error whose outcome is unknown.
func TestForeignAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		header string // "Name: value"
		body   string
		retry  bool
	}{
		"proxy's 502":            {502, "Content-Type: text/html", "<h1>Bad Gateway</h1>", true},
		"proxy's 404":            {404, "Content-Type: text/html", "<h1>Not Found</h1>", false},
		"proxy's 429":            {429, "Retry-After: 3", "slow down", true},
		"problem of another API": {409, "Content-Type: application/problem+json", `{"title":"Conflict","status":409}`, false},
		"broken problem":         {500, "Content-Type: application/problem+json", `{"code":"internal`, true},
		"redirect":               {307, "Location: https://elsewhere.test/", "", false},
		"page with 200":          {200, "Content-Type: text/html", "<h1>Log in</h1>", true},
		"nothing with 200":       {200, "Content-Type: application/json", "", true},
		"half an answer":         {200, "Content-Type: application/json", `{"topic":"a","parti`, true},
		"trailing data":          {200, "Content-Type: application/json", `{}{}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				k, v, _ := strings.Cut(tt.header, ": ")
				w.Header().Set(k, v)
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer ts.Close()
			_, err := newClient(t, ts.URL).Append(t.Context(), "a", 0, openapi.AppendRequest{})
			e, _ := errors.AsType[*producer.Error](err)
			if e == nil || e.Code != producer.CodeForeignAnswer || e.Outcome != openapi.Unknown || e.FromServer || e.Retryable != tt.retry || e.Status != tt.status {
				t.Errorf("got %+v", e)
			}
			if name == "proxy's 429" && e.RetryAfter != 3*time.Second {
				t.Errorf("retry after %v", e.RetryAfter)
			}
		})
	}
}

func TestLostAnswers(t *testing.T) {
	release := make(chan struct{})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/0/batches") {
			panic(http.ErrAbortHandler)
		}
		<-release
	}))
	ts.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer ts.Close()
	defer close(release)
	c, hasty := newClient(t, ts.URL), newClient(t, ts.URL, producer.WithRequestTimeout(50*time.Millisecond))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx       context.Context
		c         *producer.Client
		partition int
		code      producer.Code
		outcome   openapi.Outcome
		is        error
	}{
		"reset":          {t.Context(), c, 0, producer.CodeUnreachable, openapi.Unknown, io.EOF},
		"timeout":        {t.Context(), hasty, 1, producer.CodeRequestTimeout, openapi.Unknown, context.DeadlineExceeded},
		"caller is gone": {ended, c, 1, producer.CodeCanceled, openapi.Unknown, context.Canceled},
		// A port that was free a moment ago may be somebody else's by now; nobody has this one.
		"refused": {t.Context(), newClient(t, "http://127.0.0.1:1"), 0, producer.CodeUnreachable, openapi.NotApplied, nil},
	} {
		_, err := tt.c.Append(tt.ctx, "a", tt.partition, openapi.AppendRequest{})
		e, _ := errors.AsType[*producer.Error](err)
		if e == nil || e.Code != tt.code || e.Outcome != tt.outcome || !e.Retryable || (tt.is != nil && !errors.Is(err, tt.is)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestHeadersAndTokens(t *testing.T) {
	var got http.Header
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		_, _ = io.WriteString(w, `{"status":"ok"}`)
	}))
	defer ts.Close()
	c := newClient(t, ts.URL, producer.WithToken("secret"), producer.WithHeader("X-Tenant", "7"))
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got.Get("Authorization") != "Bearer secret" || got.Get("X-Tenant") != "7" || got.Get("X-Request-Id") == "" || got.Get("User-Agent") != "oncelog-go" {
		t.Errorf("sent %v", got)
	}
	c = newClient(t, ts.URL, producer.WithTokenFunc(func(context.Context) (string, error) { return "", errors.New("no token") }))
	if _, err := c.AllocateProducer(t.Context()); producer.OutcomeOf(err) != openapi.NotApplied || !strings.Contains(err.Error(), "no token") {
		t.Errorf("got %v", err)
	}
}
