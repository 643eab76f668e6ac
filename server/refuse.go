package server

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
)

// comeLater reports the codes that say that the server cannot take a request just now,
// whatever is in it.
func comeLater(code string) bool {
	switch code {
	case string(store.CodeOverloaded), access.CodeRateLimited, string(store.CodeNotReady), string(store.CodeDraining):
		return true
	}
	return false
}

// refuse answers a request of HTTP/1 with a problem before its body has been read: who is
// to come later should know before it has sent everything, and a server that has too much
// to do should not wait for what it will throw away. What comes all the same is read
// afterwards; see drainBody.
func (x *exchange) refuse(r *http.Request, p *openapi.Problem) error {
	b, err := json.Marshal(p, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return err
	}
	b = append(b, '\n')
	control := http.NewResponseController(x.ResponseWriter)
	_ = control.EnableFullDuplex() // or net/http reads a part of the body first
	h := x.Header()
	h["Content-Type"] = typeProblem
	h["Cache-Control"] = noStore
	h["Content-Length"] = []string{decimal(int64(len(b)))}
	if r.Header.Get("Expect") != "" || r.ContentLength > drainBytes { // it will not be read to its end
		h.Set("Connection", "close")
	}
	x.WriteHeader(p.Status)
	if _, err := x.Write(b); err != nil {
		return err
	}
	if err := control.Flush(); err != nil {
		return err
	}
	x.drainBody(r)
	return nil
}
