package access

import (
	"context"
	"log/slog"
	"os"
	"time"
)

// stamp tells versions of a file apart. The zero value is a file that is not there.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

func stampOf(path string) (stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.ModTime(), info.Size(), inodeOf(info)}, nil
}

// Watch looks at files again and again, until ctx ends, and whenever again is sent to. A
// look every second costs nothing, and unlike notifications of the file system it works
// for files that are replaced through links and on any file system. reload says what is
// wrong; the same is said once.
func Watch(ctx context.Context, log *slog.Logger, every time.Duration, again <-chan os.Signal, reload func() error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-again:
			last = ""
		}
		err := reload()
		switch {
		case err == nil:
			last = ""
		case err.Error() != last:
			last = err.Error()
			log.LogAttrs(ctx, slog.LevelError, "a file of access control cannot be used", slog.Any("error", err))
		}
	}
}
