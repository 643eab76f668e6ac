package server_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncelog/oncelog/server"
	"github.com/oncelog/oncelog/server/access"
	"github.com/oncelog/oncelog/store"
	"github.com/oncelog/oncelog/store/memory"
)

// lockedEnv is an env that lets callers in by tokens. Its root may do everything.
type lockedEnv struct {
	*env
	control *access.Control
	file    access.File
	root    string // header
}

func newLockedEnv(t testing.TB, options ...with) *lockedEnv {
	t.Helper()
	return newLockedEnvOver(t, memory.Open(memory.Options{}), access.Options{}, options...)
}

func newLockedEnvOver(t testing.TB, st store.Store, o access.Options, options ...with) *lockedEnv {
	t.Helper()
	l := &lockedEnv{file: access.File{Path: filepath.Join(t.TempDir(), access.FileName)}}
	l.root = l.token(t, "root", "admin")
	o.File = l.file.Path
	var err error
	if l.control, err = access.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.control.Close)
	options = append(options, func(o *server.Options) { o.Access = l.control })
	l.env = newEnvOver(t, st, options...)
	return l
}

// token makes a token and gives the header that sends it.
func (l *lockedEnv) token(t testing.TB, name, scope string, prefixes ...string) string {
	t.Helper()
	return l.grant(t, access.Grant{Name: name, Scopes: []string{scope}, TopicPrefixes: prefixes})
}

func (l *lockedEnv) grant(t testing.TB, g access.Grant) string {
	t.Helper()
	token, _, err := l.file.CreateToken(g, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l.reload(t)
	return "Authorization: Bearer " + token
}

func (l *lockedEnv) revoke(t testing.TB, name string) {
	t.Helper()
	if _, err := l.file.Revoke(func(g access.Grant) bool { return g.Name == name }); err != nil {
		t.Fatal(err)
	}
	l.reload(t)
}

func (l *lockedEnv) reload(t testing.TB) {
	t.Helper()
	if l.control == nil {
		return
	}
	if err := l.control.Reload(); err != nil {
		t.Fatal(err)
	}
}

// topic creates a topic as root.
func (l *lockedEnv) topic(name string) string {
	l.t.Helper()
	l.json("PUT", "/topics/"+name, `{}`, l.root).is(201)
	return "/topics/" + name + "/partitions/0"
}

// logText is everything that was logged.
func (e *env) logText() []byte {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	return bytes.Clone(e.log.buf.Bytes())
}
