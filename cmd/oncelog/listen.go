package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
)

// listener is a listening socket.
type listener struct {
	net.Listener
	scheme string
	file   string // holds the URL while the server runs; "" : none
}

// listen opens the socket.
func listen(ctx context.Context, address, file string, secure bool) (*listener, error) {
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &listener{Listener: socket, scheme: "http", file: file}
	if secure {
		l.scheme = "https"
	}
	return l, nil
}

// announce logs where the server listens and writes it to the file.
func (l *listener) announce(ctx context.Context, log *slog.Logger) error {
	log.InfoContext(ctx, "listening", slog.String("address", l.url()))
	if err := l.writeFile(); err != nil {
		return fmt.Errorf("write --listen-file: %w", err)
	}
	return nil
}

func (l *listener) url() string { return l.scheme + "://" + l.Addr().String() }

// loopback reports whether only this machine can reach the socket.
func (l *listener) loopback() bool {
	tcp, ok := l.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// writeFile writes the URL so that nobody who waits for the file sees half of it.
func (l *listener) writeFile() error {
	if l.file == "" {
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(l.file), filepath.Base(l.file)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(l.url() + "\n")
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), l.file)
	}
	if err != nil {
		os.Remove(tmp.Name()) //nolint:errcheck // the first error is what matters
	}
	return err
}

// close stops listening and takes the file away. It may be called twice.
func (l *listener) close() {
	l.Close() //nolint:errcheck // fails when the server has closed it before
	if l.file != "" {
		os.Remove(l.file) //nolint:errcheck // a file that stays says what is no longer true, no more
	}
}
