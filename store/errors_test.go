package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/oncelog/oncelog/store"
)

func TestErrorIsAskedByCode(t *testing.T) {
	err := fmt.Errorf("append to t/0: %w", &store.Error{Code: store.CodeStorageFailed, Detail: "the disk is gone", Err: io.ErrUnexpectedEOF})
	if !errors.Is(err, &store.Error{Code: store.CodeStorageFailed}) {
		t.Error("errors.Is does not find the code")
	}
	if errors.Is(err, &store.Error{Code: store.CodeStorageFull}) || errors.Is(err, &store.Error{}) {
		t.Error("errors.Is finds a code that is not there")
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		t.Error("errors.Is does not look at the cause")
	}
	inner := store.Errorf(store.CodeOverloaded, "%d wait", 3)
	outer := &store.Error{Code: store.CodeNotReady, Err: inner}
	if !errors.Is(outer, &store.Error{Code: store.CodeOverloaded}) || store.CodeOf(outer) != store.CodeNotReady {
		t.Error("of an error within another the outer code counts, and both are found")
	}
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want store.Code
	}{
		{nil, ""},
		{io.EOF, store.CodeInternal},
		{context.Canceled, store.CodeInternal},
		{store.Errorf(store.CodeUnknownTopic, "no"), store.CodeUnknownTopic},
		{fmt.Errorf("wrapped: %w", store.Errorf(store.CodeUnknownTopic, "no")), store.CodeUnknownTopic},
		{errors.Join(io.EOF, store.Errorf(store.CodeTooLarge, "no")), store.CodeTooLarge},
	} {
		if got := store.CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*store.Error{
		"draining":                             {Code: store.CodeDraining},
		"unknown-topic: no topic 100%":         store.Errorf(store.CodeUnknownTopic, "no topic %d%%", 100),
		"storage-failed: EOF":                  {Code: store.CodeStorageFailed, Err: io.EOF},
		"storage-failed: the sync failed: EOF": {Code: store.CodeStorageFailed, Detail: "the sync failed", Err: io.EOF},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
