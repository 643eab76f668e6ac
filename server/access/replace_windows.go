package access

import (
	"errors"
	"os"
	"path/filepath"
)

// replaceFile puts text in the place of the file, as nearly in one step as can be.
func replaceFile(path string, text []byte) error {
	t, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(t.Name())
	_, err = t.Write(text)
	if err := errors.Join(err, t.Sync(), t.Close()); err != nil {
		return err
	}
	return os.Rename(t.Name(), path)
}
