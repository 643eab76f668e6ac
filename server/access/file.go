package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// File is the file of grants. It is written whole and replaced in one step, so that a
// server reads either the old grants or the new ones; those who write take turns.
type File struct {
	Path string
}

// FileName is the name of the file in a data directory.
const FileName = "access.json"

// ErrNoGrant is why nothing can be revoked.
var ErrNoGrant = errors.New("there is no such grant")

const (
	fileVersion = 1
	// lockSuffix makes the name of the file that writers lock. It stays, and so tells
	// that there have been grants.
	lockSuffix = ".lock"
)

type document struct {
	Version int     `json:"version"`
	Grants  []Grant `json:"grants"`
}

// Grants reads the file. It fails with [fs.ErrNotExist] when there is none.
func (f File) Grants() ([]Grant, error) {
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, err
	}
	grants, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return grants, nil
}

// parse reads grants, all of them or none: leaving out a member that it does not know
// could give its holder more than was meant.
func parse(text []byte) ([]Grant, error) {
	var d document
	if err := json.Unmarshal(text, &d, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if d.Version != fileVersion {
		return nil, fmt.Errorf("version %d; this program reads version %d", d.Version, fileVersion)
	}
	ids, certificates := map[string]bool{}, map[string]bool{}
	for i := range d.Grants {
		g := &d.Grants[i]
		if err := g.check(); err != nil {
			return nil, fmt.Errorf("grants[%d]: %w", i, err)
		}
		if ids[g.ID] || (g.Certificate != "" && certificates[g.Certificate]) {
			return nil, fmt.Errorf("grants[%d]: its id or certificate is there twice", i)
		}
		ids[g.ID], certificates[g.Certificate] = true, true
	}
	return d.Grants, nil
}

// CreateToken adds the grant and returns its token, which is kept nowhere. ID, Hash and
// CreatedAt are set here; a Name that is empty too.
func (f File) CreateToken(g Grant, now time.Time) (token string, made Grant, err error) {
	var h Hash
	token, g.ID, h = newToken()
	g.Hash = &h
	if g.Name == "" {
		g.Name = tokenPrincipal + g.ID
	} else if err := checkName(g.Name); err != nil {
		return "", Grant{}, err
	}
	if err := f.add(&g, now); err != nil {
		return "", Grant{}, err
	}
	return token, g, nil
}

// AllowCertificate adds the grant of those who show a certificate of g.Certificate's name.
func (f File) AllowCertificate(g Grant, now time.Time) (made Grant, err error) {
	_, g.ID, _ = newToken()
	if g.Name == "" {
		g.Name = principalOf(g.Certificate)
	} else if err := checkName(g.Name); err != nil {
		return Grant{}, err
	}
	return g, f.add(&g, now)
}

func (f File) add(g *Grant, now time.Time) error {
	g.CreatedAt = now.UTC().Truncate(time.Millisecond)
	g.ExpiresAt = g.ExpiresAt.UTC().Truncate(time.Millisecond)
	if err := g.check(); err != nil {
		return err
	}
	return f.change(func(grants []Grant) ([]Grant, error) {
		taken := func(o Grant) bool { return g.Certificate != "" && o.Certificate == g.Certificate }
		if slices.ContainsFunc(grants, taken) {
			return nil, fmt.Errorf("the certificate %q has a grant; revoke that first", g.Certificate)
		}
		return append(grants, *g), nil
	})
}

// Revoke removes the grants that match and returns them. It fails with ErrNoGrant when
// none does.
func (f File) Revoke(match func(Grant) bool) (revoked []Grant, err error) {
	err = f.change(func(grants []Grant) (left []Grant, err error) {
		for _, g := range grants {
			if match(g) {
				revoked = append(revoked, g)
			} else {
				left = append(left, g)
			}
		}
		if len(revoked) == 0 {
			return nil, ErrNoGrant
		}
		return left, nil
	})
	return revoked, err
}

// change replaces the file by what edit makes of it, while nobody else does.
func (f File) change(edit func([]Grant) ([]Grant, error)) error {
	path, err := filepath.EvalSymlinks(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = f.Path, os.MkdirAll(filepath.Dir(f.Path), 0o700)
	}
	if err != nil {
		return err
	}
	unlock, err := lock(path + lockSuffix)
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	defer unlock()
	grants, err := File{Path: path}.Grants()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if grants, err = edit(grants); err != nil {
		return err
	}
	return write(path, grants)
}

// write replaces the file durably: a revocation must not come undone by a loss of power.
func write(path string, grants []Grant) error {
	text, err := format(grants)
	if err != nil {
		return err
	}
	return replaceFile(path, text)
}

func format(grants []Grant) ([]byte, error) {
	if grants == nil {
		grants = []Grant{}
	}
	text, err := json.Marshal(document{fileVersion, grants}, jsontext.WithIndent("  "))
	return append(text, '\n'), err
}
