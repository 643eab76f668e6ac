//go:build !windows

package access

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// replaceFile puts text in the place of the file in one step, durably.
func replaceFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	t, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer t.Cleanup() //nolint:errcheck // does nothing after a success, and the failure is told
	if err := keepOwner(t.File, path); err != nil {
		return err
	}
	if _, err := t.Write(text); err != nil {
		return err
	}
	if err := t.CloseAtomicallyReplace(); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
