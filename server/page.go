package server

import (
	"encoding/base64"
	"strconv"
	"strings"
)

const (
	defaultPage = 100
	maxPage     = 1000
)

// Each list has a mark of its own in its tokens, so that one list's token is refused by
// another.
const (
	topicTokens    = "t"
	producerTokens = "p"
	snapshotTokens = "s"
	numberTokens   = "n" // of partitions
)

// page takes limit and pageToken. after is the key that the page begins behind, "" for
// the first page.
func (q *query) page(mark string) (limit int, after string) {
	limit = int(q.integer("limit", defaultPage, 1, maxPage))
	token, ok := q.text("pageToken")
	if !ok {
		return limit, ""
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(token)
	kind, key, cut := strings.Cut(string(text), ":")
	if err != nil || !cut || kind != mark || key == "" {
		q.fault("pageToken", "is not a token of this list")
		return limit, ""
	}
	return limit, key
}

// pidPage is page for a list by producer id; after is −1 for the first page.
func (q *query) pidPage() (limit int, after int64) {
	return q.numberedPage(producerTokens)
}

// numberedPage is page for a list by a number; after is −1 for the first page.
func (q *query) numberedPage(mark string) (limit int, after int64) {
	limit, key := q.page(mark)
	if key == "" {
		return limit, -1
	}
	after, ok := parseInteger(key)
	if !ok {
		q.fault("pageToken", "is not a token of this list")
	}
	return limit, after
}

// cutPage cuts the one item too many that was asked for to see whether there is a next
// page, and gives the token of that page, nil when there is none.
func cutPage[T any](items []T, limit int, mark string, key func(*T) string) ([]T, *string) {
	if len(items) <= limit {
		return items, nil
	}
	items = items[:limit]
	token := base64.RawURLEncoding.EncodeToString([]byte(mark + ":" + key(&items[limit-1])))
	return items, &token
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
