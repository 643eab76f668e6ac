package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
)

// listener is a listening socket that has told where it listens.
type listener struct {
	net.Listener
	file string // holds the URL while the server runs; "" : none
}

// listen opens the socket, logs its URL and writes it to file.
func listen(ctx context.Context, address, file string, log *slog.Logger) (*listener, error) {
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := &listener{Listener: socket, file: file}
	log.InfoContext(ctx, "listening", slog.String("address", l.url()))
	if tcp, ok := socket.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		log.WarnContext(ctx, "OTHER MACHINES CAN REACH THIS SERVER, AND THERE IS NO ACCESS CONTROL: "+
			"whoever reaches the port can read, append and delete. Listen on 127.0.0.1 or put a proxy in front",
			slog.String("address", l.url()))
	}
	if err := l.writeFile(); err != nil {
		l.close()
		return nil, fmt.Errorf("write --listen-file: %w", err)
	}
	return l, nil
}

func (l *listener) url() string { return "http://" + l.Addr().String() }

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
