package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/oncelog/oncelog/store"
)

// backupStep is how much of a backup one write has to bring through within the write
// timeout. The system copies it from the file to the connection where it can.
const backupStep = 4 << 20

// backup gives a copy of the store.
//
//	@Summary		Back up the store
//	@ID				backup
//	@Tags			service
//	@Description	Gives a copy of everything that is stored, as it was at one moment: records, producer state, snapshots, and which producer ids have been issued. Appends go on meanwhile. The server first makes the copy in its data directory, which takes as much space as the store, and as long as to read and write that; the answer begins when that is done. Only one is made and sent at a time. A client may take it slowly, but one that takes less than 4 MiB in 30 seconds is cut off.
//	@Description	An answer that is shorter than Content-Length, or has another digest than Repr-Digest says, is no backup. `oncelog backup` sees to both, and `oncelog restore` makes a data directory of it. Access tokens are not in it.
//	@Produce		application/octet-stream
//	@Success		200	{string}	string	"The copy, one file"
//	@Header			200	{integer}	Content-Length		"Bytes of the copy"
//	@Header			200	{string}	Repr-Digest			"SHA-256 of the copy (RFC 9530)"
//	@Header			200	{string}	Content-Disposition	"A name for the file"
//	@Failure	400	{object}	openapi.Problem	"malformed-request"
//	@Failure	404	{object}	openapi.Problem	"not-found"
//	@Failure	503	{object}	openapi.Problem	"not-ready, draining, overloaded"
//	@Failure	507	{object}	openapi.Problem	"storage-full"
//	@Security	bearer[admin]
//	@Router			/backup [get]
func (s *Server) backup(x *exchange, r *http.Request, st store.Store) error {
	if err := noQuery(r); err != nil {
		return err
	}
	copier, ok := st.(store.Backups)
	if !ok {
		return &problem{code: codeNotFound, detail: "this server keeps nothing that could be copied"}
	}
	h := x.Header()
	if r.Method == http.MethodHead { // a copy that nobody gets is not made
		h["Content-Type"] = typeBytes
		x.WriteHeader(http.StatusOK)
		return nil
	}
	b, err := copier.Backup(r.Context())
	if err != nil {
		return err
	}
	defer b.Close() //nolint:errcheck // the answer is what counts, and it is over
	h["Content-Type"] = typeBytes
	h["Cache-Control"] = noStore
	h.Set("Content-Length", strconv.FormatInt(b.Size, 10))
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(b.SHA256[:])+":")
	h.Set("Content-Disposition", `attachment; filename="oncelog-`+s.options.Now().UTC().Format("20060102T150405Z")+`.db"`)
	x.WriteHeader(http.StatusOK)
	return s.sendFile(x, r, b.Content, b.Size)
}

// sendFile writes n bytes, each step within the write timeout. It goes past the exchange,
// whose Write would keep the system from sending the file by itself.
func (s *Server) sendFile(x *exchange, r *http.Request, content io.Reader, n int64) error {
	defer x.deadline(time.Time{})
	for n > 0 {
		x.hurry()
		sent, err := io.CopyN(x.ResponseWriter, content, min(n, backupStep))
		x.bytes += sent
		if x.meter != nil {
			x.meter.Used(sent)
			x.meter.Pace(r.Context())
		}
		if err != nil {
			return sendError(err)
		}
		n -= sent
	}
	return nil
}

// sendError tells the failure to read a file from that of its reader to take it.
func sendError(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok || errors.Is(err, io.EOF) {
		return fmt.Errorf("read the copy: %w", err)
	}
	return gone(err)
}
