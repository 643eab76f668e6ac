package bench_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/oncelog/oncelog/cmd/oncelog/internal/bench"
)

// answers are read as net/http reads them, in pieces of any size.
func TestAnswers(t *testing.T) {
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nNext-Offset: 7\r\n\r\n"
	for name, text := range map[string]string{
		"length":           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"empty":            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"names in any way": "HTTP/1.1 404 Not Found\r\ncONTENT-lENGTH:3\r\nX-Other: Content-Length: 9\r\n\r\nabc",
		"chunked":          chunked + "5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n",
		"one byte chunks":  chunked + "1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
		"no chunk":         chunked + "0\r\n\r\n",
		"offsets":          "HTTP/1.1 200 OK\r\nnext-offset: 12\r\nHigh-Watermark: 13\r\nRetry-After: 2\r\nContent-Length: 1\r\n\r\nx",
		"interim":          "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
		"long":             "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("l", 100_000),
		"no reason":        "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx",
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 7, 1 << 20} {
				got, err := bench.ReadAnswer(inPieces(text, piece))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(byNetHTTP(t, text), got); d != "" {
					t.Errorf("in pieces of %d (-net/http +bench):\n%s", piece, d)
				}
			}
		})
	}
}

func byNetHTTP(t *testing.T, text string) bench.Answer {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(text))
	resp, err := http.ReadResponse(in, nil)
	for err == nil && resp.StatusCode < 200 {
		resp, err = http.ReadResponse(in, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	number := func(name string) int64 {
		n, err := strconv.ParseInt(resp.Header.Get(name), 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	return bench.Answer{
		Status: resp.StatusCode, Body: string(body),
		RetryAfter: number("Retry-After"), Next: number("Next-Offset"), High: number("High-Watermark"),
	}
}

func TestNoAnswers(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":               "",
		"another protocol":      "SSH-2.0-OpenSSH_9.6\r\n",
		"HTTP/1.0":              "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
		"no number":             "HTTP/1.1 2x0 OK\r\n\r\n",
		"cut off in the head":   "HTTP/1.1 200 OK\r\nContent-Le",
		"cut off in the body":   "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
		"cut off in a chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"a bad length":          "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
		"a huge length":         "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\nhello",
		"a bad size of a chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n0\r\n\r\n",
		"a chunk too long":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n",
		"a field without colon": "HTTP/1.1 200 OK\r\nContent-Length\r\n\r\n",
	} {
		if got, err := bench.ReadAnswer(inPieces(text, 1<<20)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// inPieces is a connection from which text comes in pieces of n bytes.
func inPieces(text string, n int) net.Conn { return &script{rest: text, piece: n} }

type script struct {
	net.Conn
	rest  string
	piece int
}

func (s *script) Read(p []byte) (int, error) {
	if s.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(s.piece, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}

func (*script) Write(p []byte) (int, error) { return len(p), nil }
func (*script) Close() error                { return nil }

func TestAcks(t *testing.T) {
	const good = `{"topic":"t","partition":0,"baseOffset":17,"lastOffset":18,"nextSeq":3,"duplicate":true,"appendedAt":"2026-01-02T03:04:05.678Z"}`
	want := bench.Ack{Base: 17, Last: 18, NextSeq: 3, Duplicate: true, At: "2026-01-02T03:04:05.678Z"}
	for _, text := range []string{
		good, good + "\n", strings.ReplaceAll(good, ",", " ,\n\t"), strings.ReplaceAll(good, ":", " : "),
		`{"appendedAt":"2026-01-02T03:04:05.678Z","duplicate":true,"nextSeq":3,"lastOffset":18,"baseOffset":17}`,
	} {
		if got, err := bench.ParseAck(text); err != nil || got != want && !strings.Contains(text, " : ") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	nothing := bench.Ack{Base: -1, Last: -1, NextSeq: -1}
	for _, text := range []string{"{}", `{"baseOffset":null,"lastOffset":null,"appendedAt":null}`} {
		if got, err := bench.ParseAck(text); err != nil || got.Base != nothing.Base || got.Last != nothing.Last || got.NextSeq != nothing.NextSeq || got.Duplicate {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "null", "[]", "{", `{"baseOffset"}`, `{"baseOffset":}`, `{"baseOffset":1`, `{"baseOffset":-1}`, `{"baseOffset":1.5}`,
		`{"baseOffset":"1"}x`[:17], `{"a":"\""}`, `{"a":[1,2]}`, `{"a":{}}`, `{"nextSeq":99999999999999999999}`,
	} {
		if got, err := bench.ParseAck(text); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
