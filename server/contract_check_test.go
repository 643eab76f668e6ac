package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestContractNoticesWhatIsWrong holds made-up exchanges against the document, so that
// the checks on all other tests' traffic are known to bite.
func TestContractNoticesWhatIsWrong(t *testing.T) {
	const (
		batches  = "/topics/t/partitions/0/batches"
		good     = `{"records":[{"value":1}]}`
		stored   = `{"topic":"t","partition":0,"baseOffset":0,"lastOffset":0,"duplicate":false,"appendedAt":"2026-01-02T03:04:05.678Z"}`
		jsonType = "application/json"
		records  = "/topics/t/partitions/0/records"
		list     = `{"records":[],"nextOffset":0,"highWatermark":0,"earliestOffset":0}`
		fenced   = `{"type":"/problems/producer-fenced","title":"A newer epoch has replaced this one","status":409,"detail":"d","instance":"/i","code":"producer-fenced","retryable":false,"outcome":"not-applied","requestId":"r","currentEpoch":1}`
		problem  = "application/problem+json"
	)
	for _, tc := range []struct {
		name, method, path, sentType, sent string
		status                             int
		gotType, got                       string
		ok                                 bool
	}{
		{"append", "POST", batches, jsonType, good, 200, jsonType, stored, true},
		{"append of lines", "POST", batches + "?pid=0&epoch=0&baseSeq=0", "application/x-ndjson", `{"value":1}` + "\n", 200, jsonType, stored, true},
		{"append of bytes", "POST", batches, "image/png", "\x89PNG", 200, jsonType, stored, true},
		{"append without a type", "POST", batches, "", "x", 200, jsonType, stored, true},
		{"problem", "POST", batches, jsonType, good, 409, problem, fenced, true},
		{"read", "GET", records + "?offset=-3&limit=1", "", "", 200, jsonType, list, true},
		{"no path of ours", "GET", "/nowhere", "", "", 404, problem, strings.NewReplacer("producer-fenced", "not-found", "409", "404").Replace(fenced), true},

		{"bad request accepted", "POST", batches, jsonType, `{"records":[]}`, 200, jsonType, stored, false},
		{"bad line accepted", "POST", batches, "application/x-ndjson", `{"value":1,"valueText":"x"}` + "\n", 200, jsonType, stored, false},
		{"bad query accepted", "POST", batches + "?pid=x", "image/png", "x", 200, jsonType, stored, false},
		{"bad path accepted", "POST", "/topics/t/partitions/x/batches", jsonType, good, 200, jsonType, stored, false},
		{"no such limit", "GET", records + "?limit=10001", "", "", 200, jsonType, list, false},
		{"member missing", "POST", batches, jsonType, good, 200, jsonType, `{"topic":"t"}`, false},
		{"member of another type", "POST", batches, jsonType, good, 200, jsonType, strings.Replace(stored, `"baseOffset":0`, `"baseOffset":"0"`, 1), false},
		{"number too large", "POST", batches, jsonType, good, 200, jsonType, strings.Replace(stored, `"baseOffset":0`, `"baseOffset":9007199254740992`, 1), false},
		{"another media type", "POST", batches, jsonType, good, 200, "text/plain", stored, false},
		{"another status", "POST", batches, jsonType, good, 201, jsonType, stored, false},
		{"problem on success", "POST", batches, jsonType, good, 200, problem, fenced, false},
		{"error that is no problem", "POST", batches, jsonType, good, 409, jsonType, fenced, false},
		{"code of another operation", "GET", records, "", "", 409, problem, fenced, false},
		{"code of another status", "POST", batches, jsonType, good, 404, problem, fenced, false},
		{"unknown code", "POST", batches, jsonType, good, 409, problem, strings.ReplaceAll(fenced, "producer-fenced", "fenced"), false},
		{"other than the table", "POST", batches, jsonType, good, 409, problem, strings.Replace(fenced, "false", "true", 1), false},
		{"bad line read", "GET", records, "", "", 200, "application/x-ndjson", `{"offset":0}` + "\n", false},
		{"bad event read", "GET", records, "", "", 200, "text/event-stream", "id: 0\ndata: {\"offset\":0}\n\n", false},
		{"not found without a problem", "GET", "/nowhere", "", "", 404, "text/plain", "404 page not found", false},
		{"answer from nowhere", "GET", "/nowhere", "", "", 200, jsonType, `{}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, tc.path, nil)
			if tc.sentType != "" {
				r.Header.Set("Content-Type", tc.sentType)
			}
			resp := &http.Response{StatusCode: tc.status, Header: http.Header{}, Request: r}
			resp.Header.Set("Content-Type", tc.gotType)
			resp.Header.Set("X-Request-Id", "r")
			errs := loadContract(t).check(r, []byte(tc.sent), resp, []byte(tc.got), true)
			if (len(errs) == 0) != tc.ok {
				t.Errorf("found %v", errs)
			}
			resp.Header.Del("X-Request-Id")
			if errs := loadContract(t).check(r, []byte(tc.sent), resp, []byte(tc.got), true); len(errs) == 0 && tc.path != "/nowhere" {
				t.Error("a response without a request id is not noticed")
			}
		})
	}
}
