package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/oncelog/oncelog/producer"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store/bolt"
)

// digestSuffix is the name of the file beside a backup that says its SHA-256, as sha256sum
// writes it.
const digestSuffix = ".sha256"

// backupCmd copies a running server's store.
type backupCmd struct {
	remote
	Target []string `arg:"" placeholder:"FILE" help:"The file to write, which must not exist, or - for standard output; before it, if given, the URL of the server."`
}

// Help is what follows the description in the command's help.
func (backupCmd) Help() string {
	return `Writes a copy of the whole store, as it was at one moment, to a file: records, producer state, snapshots and which producer ids have been issued. Appends go on meanwhile. The server first makes the copy in its data directory, so there must be as much free space. The copy is checked against the digest that the server announces, which is also written to FILE.sha256 (sha256sum -c reads it). It needs the scope admin for all topics.

Access tokens are not in it: they are in access.json in the data directory.`
}

// Validate takes the URL from before the file.
func (c *backupCmd) Validate() error {
	switch len(c.Target) {
	case 1:
	case 2:
		c.URL, c.Target = c.Target[0], c.Target[1:]
	default:
		return errors.New("give a file, or the URL of a server and a file")
	}
	return nil
}

// Run copies it.
func (c *backupCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	path := c.Target[0]
	if path == "-" {
		b, err := copyBackup(ctx, std, client, std.out)
		if err == nil {
			_, err = fmt.Fprintf(std.err, "%d bytes, SHA-256 %x\n", b.Size, b.SHA256)
		}
		return err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s exists already", path), err)
	}
	b, err := copyToFile(ctx, std, client, path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%s: %d bytes, SHA-256 %x\n", path, b.Size, b.SHA256)
	return err
}

// copyToFile writes a backup and its digest to files that get their names when they are
// whole and on disk, the backup last: whatever comes between, a file of its name is whole.
func copyToFile(ctx context.Context, std *stdio, client *producer.Client, path string) (b producer.Backup, err error) {
	part, err := writePart(path, func(w io.Writer) error {
		b, err = copyBackup(ctx, std, client, w)
		return err
	})
	if err != nil {
		return b, err
	}
	defer os.Remove(part) //nolint:errcheck // it is gone when it has got its name
	digest, err := writePart(path+digestSuffix, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%x  %s\n", b.SHA256, filepath.Base(path))
		return err
	})
	if err != nil {
		return b, err
	}
	defer os.Remove(digest) //nolint:errcheck // so is this
	if err := os.Rename(digest, path+digestSuffix); err != nil {
		return b, err
	}
	return b, errors.Join(moveNew(part, path), syncDir(filepath.Dir(path)))
}

func copyBackup(ctx context.Context, std *stdio, client *producer.Client, w io.Writer) (producer.Backup, error) {
	bar := newProgress(std, "backing up", 0)
	defer bar.end()
	b, err := client.Backup(ctx, w, bar.set)
	if err != nil {
		return b, explain(err)
	}
	return b, nil
}

// writePart writes what will be at a path to a file beside it, durably, and gives the name
// of that.
func writePart(path string, write func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name()) //nolint:errcheck // the first error is what matters
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	return f.Name(), errors.Join(err, f.Close())
}

// moveNew gives a file a name that no file has. A link fails where there is one, which a
// rename would replace.
func moveNew(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil:
		return os.Remove(from)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already", to)
	}
	return os.Rename(from, to) // not every file system has links
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// restoreCmd makes a data directory of a backup.
type restoreCmd struct {
	File string `arg:"" help:"The backup, or - for standard input."`
	Dir  string `arg:"" help:"The data directory to make, or one without a store in it."`
}

// Help is what follows the description in the command's help.
func (restoreCmd) Help() string {
	return `Makes a data directory of a backup, or of a store file that no server was using. If there is a FILE.sha256 beside it, the backup must have that digest. All of it is examined as by oncelog check before it gets its place; when something is wrong, nothing of it is left in DIR. A store that is in DIR already is never touched.

A server on that directory goes on from what the backup knows: what was stored after it is gone, and a producer that goes on is told where the backup ends. Producer ids that may have been issued since are never issued again. Run it as the user that the server runs as. Access tokens (access.json) are not in a backup.

Exit codes: 0 restored; 1 failed; 2 bad flags; 3 the backup is damaged, each problem is a line of the output.`
}

// Run restores it.
func (c *restoreCmd) Run(ctx context.Context, std *stdio) error {
	from, sum, err := c.open(std)
	if err != nil {
		return err
	}
	defer from.Close()
	bar := newProgress(std, "restoring", 0)
	report, err := bolt.Restore(ctx, c.Dir, from, bolt.RestoreOptions{SHA256: sum, Progress: bar.set})
	bar.end()
	if err != nil {
		err = fmt.Errorf("restore %s: %w", c.File, err)
		if errors.Is(err, bolt.ErrDamaged) {
			err = &exitError{exitDamaged, err}
		}
		return err
	}
	if err := writeReport(std, "text", report); err != nil {
		return err
	}
	if n := len(report.Problems); n > 0 {
		return &exitError{exitDamaged, fmt.Errorf("%s: %s found, nothing was restored", c.File, counted(n, "problem", "problems"))}
	}
	return c.done(std)
}

// done says what there is now, and what may be missing.
func (c *restoreCmd) done(std *stdio) error {
	_, err := fmt.Fprintf(std.err, "oncelog: restored to %s\n", c.Dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.Dir, access.FileName)); err == nil {
		return nil
	}
	_, err = fmt.Fprintf(std.err, "oncelog: access tokens are not in a backup: if the server had some, copy its %s to %s before you start it\n", access.FileName, c.Dir)
	return err
}

// open opens the backup and reads its digest, nil if there is none.
func (c *restoreCmd) open(std *stdio) (io.ReadCloser, *[sha256.Size]byte, error) {
	if c.File == "-" {
		return io.NopCloser(bufio.NewReader(std.in)), nil, nil
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(c.File + digestSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil, nil
	}
	var sum [sha256.Size]byte
	if err == nil {
		if len(text) < hex.EncodedLen(len(sum)) {
			err = errors.New("too short for a SHA-256")
		} else {
			_, err = hex.Decode(sum[:], text[:hex.EncodedLen(len(sum))])
		}
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s%s: %w", c.File, digestSuffix, err), f.Close())
	}
	return f, &sum, nil
}
