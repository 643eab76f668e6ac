package server

import (
	"net/http"
	"strings"

	"github.com/oncelog/oncelog/store"
)

// checkIfMatch fails unless the topic is at a version that the request allows.
func checkIfMatch(r *http.Request, t *store.Topic) error {
	fields := r.Header["If-Match"]
	if fields == nil {
		return nil
	}
	tag := topicTag(t)
	for each := range tags(fields) {
		if each == "*" || each == tag { // a weak tag never matches here (RFC 9110 section 13.1.1)
			return nil
		}
	}
	return versionMismatch("the topic is at " + tag)
}

func versionMismatch(detail string) error {
	return &problem{code: string(store.CodeVersionMismatch), detail: detail}
}

// matchesTag reports whether an If-None-Match names the strong tag, or anything.
func matchesTag(fields []string, tag string) bool {
	for each := range tags(fields) {
		if each == "*" || strings.TrimPrefix(each, "W/") == tag {
			return true
		}
	}
	return false
}

// tags gives the entity tags of a header. None of ours holds a comma.
func tags(fields []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, field := range fields {
			for part := range strings.SplitSeq(field, ",") {
				if !yield(strings.TrimSpace(part)) {
					return
				}
			}
		}
	}
}
