package producer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Backup says what was copied.
type Backup struct {
	Size   int64             // in bytes
	SHA256 [sha256.Size]byte // as the server said, and as it was found to be
}

// Backup writes a copy of the whole store to w, as it was at one moment. It returns only
// when size and digest are those that the server has announced; before that, what is in w is
// worth nothing. It takes as long as it takes: ctx bounds it, and no timeout of c. progress,
// if not nil, is told how far it has come. An error is an [*Error], or that of w.
func (c *Client) Backup(ctx context.Context, w io.Writer, progress func(done, total int64)) (Backup, error) {
	r := call{
		method: http.MethodGet, path: path("backup"),
		header: http.Header{
			"Accept":          {"application/octet-stream, application/problem+json"},
			"Accept-Encoding": {"identity"}, // the digest is of what is sent as it is
		},
	}
	id := c.idPrefix + strconv.FormatUint(c.idCount.Add(1), 10)
	req, err := c.request(ctx, r, id)
	if err != nil {
		return Backup{}, unsent(r, id, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Backup{}, lost(ctx, r, id, err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("X-Request-Id"); got != "" {
		id = got
	}
	if resp.StatusCode != http.StatusOK {
		return Backup{}, problem(ctx, r, id, resp)
	}
	want, err := reprDigest(resp.Header)
	if err == nil && resp.ContentLength < 0 {
		err = errors.New("the answer does not say how long it is")
	}
	if err != nil {
		return Backup{}, garbled(ctx, r, id, resp.StatusCode, err)
	}
	h := sha256.New()
	body := &counted{r: resp.Body, total: resp.ContentLength, tell: progress}
	switch _, err := io.Copy(io.MultiWriter(w, h), body); {
	case body.err != nil:
		e := lost(ctx, r, id, body.err)
		e.Detail = fmt.Sprintf("the backup broke off after %d of %d bytes", body.done, body.total)
		return Backup{}, e
	case err != nil:
		return Backup{}, err
	}
	got := Backup{Size: body.done, SHA256: [sha256.Size]byte(h.Sum(nil))}
	if got.SHA256 != want {
		return Backup{}, garbled(ctx, r, id, resp.StatusCode, fmt.Errorf("its SHA-256 is %x, the server said %x", got.SHA256, want))
	}
	return got, nil
}

// reprDigest is the SHA-256 that a Repr-Digest header field gives (RFC 9530).
func reprDigest(h http.Header) (sum [sha256.Size]byte, err error) {
	for item := range strings.SplitSeq(h.Get("Repr-Digest"), ",") {
		value, ok := strings.CutPrefix(strings.TrimSpace(item), "sha-256=:")
		if !ok {
			continue
		}
		b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(value, ":"))
		if err != nil || len(b) != len(sum) {
			return sum, errors.New("the header field Repr-Digest is malformed")
		}
		return [sha256.Size]byte(b), nil
	}
	return sum, errors.New("the answer has no SHA-256 in Repr-Digest")
}

// counted tells how much has been read.
type counted struct {
	r           io.Reader
	done, total int64
	tell        func(done, total int64)
	err         error // why there was no more, nil at the end
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.done += int64(n)
	if !errors.Is(err, io.EOF) {
		c.err = err
	}
	if c.tell != nil {
		c.tell(c.done, c.total)
	}
	return n, err
}
