package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/oncelog/oncelog/openapi"
)

// TestVerifyMissesNoTopic: one whose row is damaged is in no list of the server, and is not
// whole all the same.
func TestVerifyMissesNoTopic(t *testing.T) {
	g := newGateway(t)
	g.createTopic("t", 1, openapi.TopicConfig{})
	p := g.run("produce", "--topic", "t")
	fmt.Fprintln(p.in, "x")
	p.wait(exitOK)
	g.stop()
	g.flipTopic("t")
	g.start()
	defer g.flipTopic("t") // for the check of what is left behind
	defer g.stop()
	for _, format := range []string{"text", "json"} {
		v := g.run("verify", "--output", format)
		if said := v.wait(exitDamaged); said != "oncelog: 1 problem found\n" {
			t.Error(said)
		}
	}
	g.run("verify", "--topic", "t").wait(exitDamaged)
}

// flipTopic changes a bit in the row of a topic, or changes it back.
func (g *gateway) flipTopic(name string) {
	g.tb.Helper()
	db, err := bbolt.Open(filepath.Join(g.data, "oncelog.db"), 0o600, nil)
	if err != nil {
		g.tb.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("topics"))
		v := bytes.Clone(b.Get([]byte(name)))
		v[len(v)/2] ^= 1
		return b.Put([]byte(name), v)
	})
	if err != nil {
		g.tb.Fatal(err)
	}
}
