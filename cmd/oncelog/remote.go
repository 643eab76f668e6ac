package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/oncelog/oncelog/openapi"
	"github.com/oncelog/oncelog/producer"
)

// remote is the server that a client command talks to.
type remote struct {
	URL string `env:"ONCELOG_URL" default:"http://127.0.0.1:8080" placeholder:"URL" help:"URL of the server. Default ${default}."`

	TokenFile  string `env:"ONCELOG_TOKEN_FILE" placeholder:"FILE" help:"File with the token to send; it is read again when it changes. Default: the token in the environment variable ONCELOG_TOKEN, if that is set."`
	CAFile     string `name:"ca-file" env:"ONCELOG_CA_FILE" placeholder:"FILE" help:"PEM file of the authorities that the server's certificate may come from. Default: those of this machine."`
	ClientCert string `env:"ONCELOG_CLIENT_CERT" placeholder:"FILE" help:"PEM file of a client certificate to show to the server."`
	ClientKey  string `env:"ONCELOG_CLIENT_KEY" placeholder:"FILE" help:"PEM file of its key."`
}

// tokenVariable is an environment variable and no flag: other users of a machine can see
// the command lines of its processes.
const tokenVariable = "ONCELOG_TOKEN"

// options are the credentials, and whom to trust.
func (r *remote) options() ([]producer.ClientOption, error) {
	var options []producer.ClientOption
	if r.TokenFile != "" {
		options = append(options, producer.WithTokenFile(r.TokenFile))
	} else if token := strings.TrimSpace(os.Getenv(tokenVariable)); token != "" {
		options = append(options, producer.WithToken(token))
	}
	if r.ClientCert != "" || r.ClientKey != "" {
		pair, err := tls.LoadX509KeyPair(r.ClientCert, r.ClientKey)
		if err != nil {
			return nil, &usageError{err: fmt.Errorf("--client-cert and --client-key: %w", err)}
		}
		options = append(options, producer.WithTLSConfig(&tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		}))
	}
	if r.CAFile != "" {
		options = append(options, producer.WithCAFile(r.CAFile))
	}
	return options, nil
}

// client makes a client for it, with further options. No request is sent.
func (r *remote) client(more ...producer.ClientOption) (*producer.Client, error) {
	options, err := r.options()
	if err != nil {
		return nil, err
	}
	c, err := producer.NewClient(r.URL, append(options, more...)...)
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
	case e.Code == producer.CodeUnreachable && e.Outcome == openapi.NotApplied && e.Detail == "":
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
