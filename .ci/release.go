//go:build ignore

// Reads .goreleaser.yaml as goreleaser does, so that a member that it does not know is an
// error, checks that the files that it packs are there, and prints what it builds: a line
// for each target with GOOS, GOARCH, main package, flags and linker flags, between tabs.
//
//	go run -modfile=.ci/release.mod .ci/release.go
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

func main() {
	if err := run(".goreleaser.yaml"); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	project, err := config.Load(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := packed(&project); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(project.Builds) == 0 {
		return fmt.Errorf("%s builds nothing", file)
	}
	for _, b := range project.Builds {
		if !slices.Equal(b.Env, []string{"CGO_ENABLED=0"}) {
			return fmt.Errorf("build %s: the environment is %q", b.ID, b.Env)
		}
		for _, target := range b.Targets {
			goos, goarch, ok := strings.Cut(target, "_")
			if !ok || strings.Contains(goarch, "_") {
				return fmt.Errorf("build %s: target %q", b.ID, target)
			}
			fmt.Println(strings.Join([]string{goos, goarch, b.Main, strings.Join(b.Flags, " "), strings.Join(b.Ldflags, " ")}, "\t"))
		}
	}
	return nil
}

// packed fails unless the files of archives and packages are there.
func packed(project *config.Project) error {
	var patterns []string
	for _, a := range project.Archives {
		for _, f := range a.Files {
			patterns = append(patterns, f.Source)
		}
	}
	for _, p := range project.NFPMs {
		for _, c := range p.Contents {
			patterns = append(patterns, c.Source)
		}
	}
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("there is no %s", p)
		}
	}
	return nil
}
