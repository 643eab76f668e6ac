package main

import (
	"context"
	"log/slog"
	"net"
	"os"
)

// States of a service that systemd asks to be told of.
const (
	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
)

// notify tells systemd how the service is doing, if it has asked for that, so that what is
// ordered after the service starts when it is ready and not when its process is there
// (sd_notify(3)).
func notify(ctx context.Context, log *slog.Logger, state string) {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixgram", socket)
	if err == nil {
		defer conn.Close() //nolint:errcheck // a datagram has gone by then
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		log.WarnContext(ctx, "systemd was not told", slog.String("state", state), slog.Any("error", err))
	}
}
