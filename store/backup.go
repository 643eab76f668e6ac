package store

import (
	"context"
	"crypto/sha256"
	"io"
)

// Backups copies a store while it is in use. An engine that has something to copy
// implements it beside [Store].
type Backups interface {
	// Backup gives a copy of everything as it was between two commits: records, producer
	// state, snapshots and which producer ids have been issued. While one is open, another
	// fails with CodeOverloaded; without the space for it, it fails with CodeStorageFull.
	Backup(ctx context.Context) (*Backup, error)
}

// Backup is a copy of a store. It takes up space until it is closed, but holds up nobody.
type Backup struct {
	Content io.Reader // Size bytes
	Size    int64
	SHA256  [sha256.Size]byte // of the content
	// Close gives back what the copy takes up.
	Close func() error
}
