package bench_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/store/batch"
)

// newLog serves a partition of 100 records, at most 7 in a page. change may alter what
// an answer says of the page from an offset.
func newLog(t *testing.T, change func(offset int64, lines *int, next *int64, high *string)) (bench.Target, *producer.Client) {
	t.Helper()
	const end = 100
	mux := http.NewServeMux()
	mux.HandleFunc("GET /topics/t/partitions/{p}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"topic":"t","partition":0,"earliestOffset":10,"nextOffset":%d,"bytes":0,"segments":[],"producers":0,"parked":0}`, end)
	})
	mux.HandleFunc("GET /topics/t/partitions/{p}/records", func(w http.ResponseWriter, r *http.Request) {
		offset, err := strconv.ParseInt(r.URL.Query().Get("offset"), 10, 64)
		if err != nil || offset < 10 || offset >= end || r.URL.Query().Get("maxBytes") != "1000" || r.Header.Get("Accept") != "application/x-ndjson" {
			http.Error(w, "not as it should be: "+r.URL.String(), http.StatusBadRequest)
			return
		}
		next := min(offset+7, end)
		lines, high := int(next-offset), strconv.Itoa(end)
		if change != nil {
			change(offset, &lines, &next, &high)
		}
		w.Header().Set("Next-Offset", strconv.FormatInt(next, 10))
		w.Header().Set("High-Watermark", high)
		for range lines {
			_, _ = io.WriteString(w, strings.Repeat("r", 99)+"\n")
			if offset%2 == 0 {
				_ = http.NewResponseController(w).Flush() // in chunks
			}
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	client, err := producer.NewClient(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return bench.Target{URL: s.URL}, client
}

func readLoad() bench.ReadLoad {
	return bench.ReadLoad{
		Connections: 2, Format: bench.NDJSON, PageBytes: 1000, PageRecords: 1000, Once: true,
		Duration: time.Minute, Timeout: time.Minute,
	}
}

func TestReadOnce(t *testing.T) {
	target, client := newLog(t, nil)
	got, err := bench.Read(context.Background(), target, readLoad(), ownTopic(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	const pages, records = 13, 90
	if got.Requests != 2*pages || got.Records != 2*records || got.Bytes != 2*100*records || got.LatencyMs.Count != 2*pages {
		t.Errorf("%+v", got)
	}
}

func TestReadAgainAndAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pages := 0
	target, client := newLog(t, func(int64, *int, *int64, *string) {
		if pages++; pages == 40 {
			cancel()
		}
	})
	l := readLoad()
	l.Once, l.Connections = false, 1
	got, err := bench.Read(ctx, target, l, ownTopic(), client, nil)
	if err == nil || got.Requests < 39 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWrongReads(t *testing.T) {
	for name, c := range map[string]struct {
		change func(offset int64, lines *int, next *int64, high *string)
		want   string
	}{
		"a line too few":      {func(_ int64, lines *int, _ *int64, _ *string) { *lines-- }, "has 6 records"},
		"a line too many":     {func(_ int64, lines *int, _ *int64, _ *string) { *lines++ }, "has 8 records"},
		"it does not go on":   {func(o int64, _ *int, next *int64, _ *string) { *next = o }, "goes on at 10"},
		"beyond the end":      {func(_ int64, lines *int, next *int64, _ *string) { *next += 1000; *lines += 1000 }, "the end is 100"},
		"no high watermark":   {func(_ int64, _ *int, _ *int64, high *string) { *high = "" }, "HTTP"},
		"a nonsensical field": {func(_ int64, _ *int, _ *int64, high *string) { *high = "many" }, "many"},
	} {
		t.Run(name, func(t *testing.T) {
			target, client := newLog(t, c.change)
			_, err := bench.Read(context.Background(), target, readLoad(), ownTopic(), client, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Batches are counted by their headers, whatever pieces they come in.
func TestBatchesAreCounted(t *testing.T) {
	var b batch.Builder
	var answer []byte
	at := []int{}
	for i := range 5 {
		b.Add(&batch.Record{Value: make([]byte, 50*i), Timestamp: batch.NoTimestamp})
		at = append(at, len(answer))
		answer = binary.BigEndian.AppendUint64(answer, uint64(100+i*(i+1)/2))
		answer = binary.BigEndian.AppendUint64(answer, 0)
		answer = append(answer, b.Build().Bytes...) // of i+1 records
	}
	for piece := 1; piece < 300; piece++ {
		if err := bench.Count(bench.Binary, slices.Chunk(answer, piece), 100, 115); err != nil {
			t.Fatalf("in pieces of %d: %v", piece, err)
		}
	}
	other := slices.Clone(answer)
	other[at[3]+7]++ // its offset
	broken := slices.Clone(answer)
	broken[at[2]+16] = 'X'
	for name, c := range map[string]struct {
		answer []byte
		to     int64
		want   string
	}{
		"one too many":   {answer, 114, "has 15 records"},
		"one missing":    {answer[:at[4]], 115, "has 10 records"},
		"cut off":        {answer[:len(answer)-1], 115, "within a batch"},
		"cut off early":  {answer[:at[4]+10], 115, "within a batch"},
		"another offset": {other, 115, "a batch at offset 107 where one at 106 must follow"},
		"no batch":       {broken, 115, "a batch begins with"},
	} {
		err := bench.Count(bench.Binary, slices.Chunk(c.answer, 100), 100, c.to)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	const length = 12_345
	path, err := bench.WriteFile(t.TempDir(), length, false)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != length {
		t.Fatalf("%v, %v", info, err)
	}
	in, stop := io.Pipe()
	out, address := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- bench.ServeFile(context.Background(), path, in, address) }()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	got, err := bench.ReadFile(context.Background(), strings.TrimSpace(url), readLoad(), length, nil)
	if err != nil {
		t.Error(err)
	} else if got.Bytes != 2*length || got.Requests != 2*13 {
		t.Errorf("%+v", got)
	}
	stop.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	for name, measure := range map[string]func() (*bench.Result, error){
		"sync": func() (*bench.Result, error) { return bench.Sync(context.Background(), dir, time.Millisecond, nil) },
		"commit": func() (*bench.Result, error) {
			return bench.Commit(context.Background(), dir, time.Millisecond, 3, 500, nil)
		},
	} {
		got, err := measure()
		if err != nil {
			t.Fatal(name, err)
		}
		if got.Requests == 0 || got.LatencyMs.Count != got.Requests || name == "commit" && got.Bytes != got.Requests*1500 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
