package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/oncelog/oncelog/server/access"
)

// accessFlags say who may use the server, and how much.
type accessFlags struct {
	AccessFile string   `placeholder:"FILE" help:"File of tokens and other grants, as oncelog token makes it. Access control is on when it is there. Default: access.json in the data directory."`
	Insecure   bool     `help:"Serve without access control on an address that other machines can reach. Everybody may do everything then."`
	AllowHost  []string `placeholder:"NAME" help:"Name that the server may be asked for by, without a port; others are refused then. May be repeated. Default: without access control on a loopback address the names of this machine, else any."`

	TLSCert          string   `name:"tls-cert" placeholder:"FILE" help:"PEM file of the server's certificate, with the intermediate ones behind it. Read again when it changes, as are the key and the client authorities."`
	TLSKey           string   `name:"tls-key" placeholder:"FILE" help:"PEM file of its key."`
	TLSMinVersion    string   `name:"tls-min-version" default:"1.3" enum:"1.2,1.3" placeholder:"VERSION" help:"Oldest version of TLS to speak, 1.2 or 1.3. Default ${default}."`
	TLSClientCA      string   `name:"tls-client-ca" placeholder:"FILE" help:"PEM file of authorities whose client certificates are taken as credentials."`
	TLSClientRequire bool     `name:"tls-client-require" help:"Refuse connections without a client certificate, those of probes too."`
	TLSClientScope   []string `name:"tls-client-scope" placeholder:"SCOPE" help:"What client certificates without a grant of their own may do: produce, consume, admin. Default: nothing."`

	quotaFlags `prefix:"quota-"`
}

// quotaFlags are what a principal may use.
type quotaFlags struct {
	Requests  int64    `placeholder:"N" help:"Requests a second of each principal. 0: no bound."`
	Bytes     byteSize `placeholder:"BYTES" help:"Bytes a second of its request and answer bodies. 0: no bound."`
	Producers int64    `placeholder:"N" help:"Producer ids an hour that it may allocate. 0: no bound."`
	Held      int64    `placeholder:"N" help:"Batches of it that may be held for their predecessors at a time. 0: no bound."`
}

func (q *quotaFlags) quota() access.Quota {
	return access.Quota{Requests: q.Requests, Bytes: int64(q.Bytes), Producers: q.Producers, Held: q.Held}
}

// validate refuses flags that make no sense together.
func (c *accessFlags) validate() error {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key are needed together")
	case c.TLSClientCA != "" && c.TLSCert == "":
		return errors.New("--tls-client-ca needs --tls-cert and --tls-key")
	case (c.TLSClientRequire || len(c.TLSClientScope) > 0) && c.TLSClientCA == "":
		return errors.New("--tls-client-require and --tls-client-scope need --tls-client-ca")
	case c.Requests < 0 || c.Producers < 0 || c.Held < 0:
		return errors.New("a quota is negative")
	}
	if _, err := access.ParseScopes(c.TLSClientScope); err != nil {
		return fmt.Errorf("--tls-client-scope: %w", err)
	}
	return nil
}

// loadTLS loads certificates, nil for none.
func (c *accessFlags) loadTLS() (*access.TLS, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	o := access.TLSOptions{Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA, RequireClient: c.TLSClientRequire}
	if c.TLSMinVersion == "1.2" {
		o.MinVersion = tls.VersionTLS12
	}
	t, err := access.NewTLS(o)
	if err != nil {
		return nil, &usageError{err: err}
	}
	return t, nil
}

// control says who may come in. It refuses to serve everybody on the network unless that
// is asked for.
func (c *accessFlags) control(ctx context.Context, data string, secure *access.TLS, l *listener, log *slog.Logger) (*access.Control, error) {
	file := c.AccessFile
	if file == "" {
		file = filepath.Join(data, access.FileName)
	}
	scopes, err := access.ParseScopes(c.TLSClientScope)
	if err != nil {
		return nil, err
	}
	control, err := access.New(access.Options{
		File: file, TLS: secure, CertificateScopes: scopes, Quota: c.quota(),
		Hosts: c.AllowHost, Loopback: l.loopback(), Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("access control: %w", err)
	}
	switch {
	case l.loopback():
	case control.Anonymous() && !c.Insecure:
		control.Close()
		return nil, &usageError{err: fmt.Errorf("--listen %s lets other machines in, and there is no access control: "+
			"make a token with oncelog token create --access-file %s --scope admin, or say --insecure", l.Addr(), file)}
	case control.Anonymous():
		log.WarnContext(ctx, "OTHER MACHINES CAN REACH THIS SERVER, AND THERE IS NO ACCESS CONTROL: "+
			"whoever reaches the port can read, append and delete. --insecure says that this is meant",
			slog.String("address", l.Addr().String()))
	case secure == nil:
		log.WarnContext(ctx, "TOKENS TRAVEL UNENCRYPTED: other machines can reach this server, and it has no --tls-cert. "+
			"Whoever can listen on the way can use them. Put TLS in front, if it is not there",
			slog.String("address", l.Addr().String()))
	}
	return control, nil
}

// watch follows the files of access control until ctx ends, and on SIGHUP. The returned
// function waits for its end.
func watch(ctx context.Context, control *access.Control, secure *access.TLS, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		access.Watch(ctx, log, time.Second, again, func() error {
			return errors.Join(reloadTLS(ctx, control, secure, log), control.Reload())
		})
	}()
	return func() {
		signal.Stop(again)
		cancel()
		<-done
	}
}

func reloadTLS(ctx context.Context, control *access.Control, secure *access.TLS, log *slog.Logger) error {
	if secure == nil {
		return nil
	}
	before := secure.Certificate()
	distrust, err := secure.Reload()
	if distrust {
		control.Distrust()
		log.InfoContext(ctx, "client authorities reloaded, all client certificates are verified anew")
	}
	if now := secure.Certificate(); now != before {
		log.InfoContext(ctx, "certificate reloaded", slog.String("serial", now.SerialNumber.Text(16)), slog.Time("expires", now.NotAfter))
	}
	return err
}

// overTLS prepares the server for TLS, if there is a certificate, and gives the function
// that serves what the listener accepts.
func overTLS(web *http.Server, l *listener, secure *access.TLS) (serve func() error) {
	if secure == nil {
		return func() error { return web.Serve(l) }
	}
	web.TLSConfig = secure.Config()
	web.ConnContext = secure.ConnContext
	web.Protocols.SetHTTP2(true)
	return func() error { return web.ServeTLS(l, "", "") }
}
