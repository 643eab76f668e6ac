package access_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncelog/oncelog/server/access"
)

// TestFileIsPrivate: mode 0600, also for one that had another, and 0700 for a directory
// that had to be made.
func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes")
	}
	e := newFile(t)
	e.token(produce("a"))
	mode := func(path string) fs.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if got := mode(e.file.Path); got != 0o600 {
		t.Errorf("the file has mode %v", got)
	}
	if got := mode(filepath.Dir(e.file.Path)); got != 0o700 {
		t.Errorf("the directory has mode %v", got)
	}
	if err := os.Chmod(e.file.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	e.start()
	if !strings.Contains(e.log.String(), "others can read the file of grants") {
		t.Errorf("the log says nothing: %s", &e.log)
	}
	e.token(produce("b"))
	if got := mode(e.file.Path); got != 0o600 {
		t.Errorf("after a change the file has mode %v", got)
	}
}

// TestWritersTakeTurns: of many changes at a time none is lost, whichever process makes
// them, and a reader never sees half of a file.
func TestWritersTakeTurns(t *testing.T) {
	e := newFile(t)
	doomed := []string{}
	for i := range 20 {
		name := fmt.Sprintf("doomed %d", i)
		e.token(produce(name))
		doomed = append(doomed, name)
	}
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := e.file.Grants(); err != nil {
				t.Errorf("read: %v", err)
				return
			}
		}
	})
	for i := range 20 {
		writers.Go(func() {
			if _, _, err := e.file.CreateToken(produce(fmt.Sprintf("new %d", i)), time.Now()); err != nil {
				t.Error(err)
			}
		})
		writers.Go(func() {
			if _, err := e.file.Revoke(func(g access.Grant) bool { return g.Name == doomed[i] }); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	grants, err := e.file.Grants()
	if err != nil || len(grants) != 20 {
		t.Fatalf("%d grants are left, %v", len(grants), err)
	}
	for _, g := range grants {
		if !strings.HasPrefix(g.Name, "new ") {
			t.Errorf("%q has come back", g.Name)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(e.file.Path), "*")); err != nil || len(left) != 2 {
		t.Errorf("files left: %q, %v", left, err)
	}
}

// TestLinkedFile: a link to the file stays one.
func TestLinkedFile(t *testing.T) {
	dir := t.TempDir()
	target := access.File{Path: filepath.Join(dir, "real.json")}
	if _, _, err := target.CreateToken(produce("a"), time.Now()); err != nil {
		t.Fatal(err)
	}
	link := access.File{Path: filepath.Join(dir, "link.json")}
	if err := os.Symlink("real.json", link.Path); err != nil {
		t.Skip(err)
	}
	if _, _, err := link.CreateToken(produce("b"), time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, f := range []access.File{target, link} {
		if g, err := f.Grants(); err != nil || len(g) != 2 {
			t.Errorf("%s: %d grants, %v", f.Path, len(g), err)
		}
	}
}

func TestRevokeNobody(t *testing.T) {
	e := newFile(t)
	e.token(produce("a"))
	if _, err := e.file.Revoke(func(access.Grant) bool { return false }); !errors.Is(err, access.ErrNoGrant) {
		t.Errorf("got %v", err)
	}
}

// TestBadGrants: what cannot be meant is refused when it is made, and the whole file when
// it is in there.
func TestBadGrants(t *testing.T) {
	e := newFile(t)
	for name, g := range map[string]access.Grant{
		"no scope":        {Name: "x"},
		"unknown scope":   {Name: "x", Scopes: []string{"all"}},
		"empty prefix":    produce("x", ""),
		"no topic's name": produce("x", "a/b"),
		"made-up token":   produce("token:x"),
		"made-up cert":    produce("cert:x"),
		"control":         produce("x\ny"),
		"long name":       produce(strings.Repeat("x", 129)),
		"negative quota":  {Name: "x", Scopes: []string{"admin"}, Quota: access.Quota{Requests: -1}},
	} {
		if _, _, err := e.file.CreateToken(g, e.now()); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, err := os.Stat(e.file.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
	e.token(produce("a"))
	good, err := os.ReadFile(e.file.Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"unknown member": {`"scopes"`, `"onlyOnSundays": true, "scopes"`},
		"newer version":  {`"version": 1`, `"version": 2`},
		"unknown scope":  {`"produce"`, `"everything"`},
		"no name":        {`"name": "a"`, `"name": ""`},
		"short hash":     {`"hash": "`, `"hash": "00`},
		"no hash":        {`"hash": "`, `"certificate": "`},
		"cut off":        {"]\n}", ""},
		"double member":  {`"version": 1`, `"version": 1, "version": 1`},
		"trailing data":  {"]\n}", "]\n} {}"},
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		if bad == string(good) {
			t.Fatalf("%s: nothing to change in %s", name, good)
		}
		if name == "no hash" {
			bad = strings.Replace(bad, `"name"`, `"hash": "`+strings.Repeat("0", 64)+`", "name"`, 1)
		}
		if err := os.WriteFile(e.file.Path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if g, err := e.file.Grants(); err == nil {
			t.Errorf("%s is taken: %+v", name, g)
		}
		if _, _, err := e.file.CreateToken(produce("b"), e.now()); err == nil {
			t.Errorf("%s: the file is replaced although it could not be read", name)
		}
	}
}
