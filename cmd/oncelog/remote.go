package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// remote is the server that a client command talks to.
type remote struct {
	URL string `default:"http://127.0.0.1:8080" placeholder:"URL" help:"URL of the server. Default ${default}."`
}

// client makes a client for it. No request is sent.
func (r *remote) client() (*producer.Client, error) {
	c, err := producer.NewClient(r.URL)
	if err != nil {
		return nil, &usageError{err: fmt.Errorf("--url: %w", err)}
	}
	return c, nil
}

// explain says what an error of a client means to somebody at a keyboard.
func explain(err error) error {
	e, ok := errors.AsType[*producer.Error](err)
	switch {
	case !ok:
		return err
	case e.FromServer:
		var members strings.Builder
		for _, m := range problemErrors(e.Problem) {
			fmt.Fprintf(&members, " (%s: %s)", m.Pointer, m.Detail)
		}
		return fmt.Errorf("%s%s [%s, request %s]", e.Detail, &members, string(e.Code), e.RequestID)
	case e.Code == producer.CodeUnreachable && e.Outcome == openapi.NotApplied:
		return fmt.Errorf("the server cannot be reached: %w", e.Err)
	}
	return err
}

func problemErrors(p *openapi.Problem) []openapi.MemberError {
	if p == nil || len(p.Errors) < 2 {
		return nil // the detail says it already
	}
	return p.Errors
}

// allPages collects the items of all pages of a list.
func allPages[T any](fetch func(producer.Page) ([]T, *string, error)) ([]T, error) {
	const pageSize = 1000
	page := producer.Page{Limit: pageSize}
	var all []T
	for {
		items, next, err := fetch(page)
		if err != nil {
			return nil, explain(err)
		}
		all = append(all, items...)
		if next == nil || *next == "" {
			return all, nil
		}
		page.Token = *next
	}
}
