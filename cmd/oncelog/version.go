package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCmd prints what was built.
type versionCmd struct {
	Output string `default:"text" enum:"text,json" placeholder:"FORMAT" help:"text or json. Default ${default}."`
}

// Run prints it.
func (c *versionCmd) Run(std *stdio) error {
	b := readBuild()
	if c.Output == outputJSON {
		return writeJSON(std.out, map[string]string{"version": b.version, "revision": b.revision, "go": runtime.Version()})
	}
	_, err := fmt.Fprintf(std.out, "oncelog %s (%s, %s)\n", b.version, b.revision, runtime.Version())
	return err
}

// build is what the Go command has stamped into the binary.
type build struct{ version, revision string }

func readBuild() build {
	b := build{version: "devel", revision: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		b.version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.revision = s.Value
		}
	}
	return b
}
