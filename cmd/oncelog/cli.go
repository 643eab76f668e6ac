package main

import (
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// cli is the command line: what kong makes flags, environment variables, keys of the
// config file and help of.
type cli struct {
	Config configFile `placeholder:"FILE" help:"JSON file with values for flags."`

	Serve     serveCmd     `cmd:"" help:"Run the server."`
	Topic     topicCmd     `cmd:"" help:"Create, list, describe and delete topics."`
	Produce   produceCmd   `cmd:"" help:"Append the lines of standard input to a topic, each of them exactly once."`
	Consume   consumeCmd   `cmd:"" help:"Print the records of a topic."`
	Producers producersCmd `cmd:"" help:"Show what the server knows of producers."`
	Snapshots snapshotsCmd `cmd:"" help:"List, take, show, verify and delete snapshots of producer state."`
	Check     checkCmd     `cmd:"" help:"Check a data directory that no server is using."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
}

const description = "An HTTP gateway in front of an idempotent, partitioned log."

// Help is what follows the description in the help of oncelog itself.
func (cli) Help() string {
	return `Every flag can also be given as an environment variable, ONCELOG_ and its name in capitals (--max-body-bytes: ONCELOG_MAX_BODY_BYTES), or as a key of the JSON file that --config names ({"max-body-bytes": "16MiB"}). A flag wins over the environment, the environment over the file.

Exit codes: 0 done; 1 failed, or not all of it done; 2 bad flags, environment or config file.

Numbers of bytes may have a unit: 64KiB, 16MiB, 1GiB. Times have one: 100ms, 30s, 24h.`
}

// parse reads args, environment and config file. help reports that help was asked for
// and printed. The command is not nil when err names flags of a known command.
func parse(args []string, std *stdio) (command *kong.Context, help bool, err error) {
	parser, err := kong.New(&cli{},
		kong.Name("oncelog"),
		kong.Description(description),
		kong.DefaultEnvars("ONCELOG"),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Writers(std.out, std.err),
		// kong calls this after printing help, and then goes on parsing.
		kong.Exit(func(int) { help = true }),
	)
	if err != nil {
		return nil, false, err
	}
	command, err = parser.Parse(args)
	return command, help, err
}

// usageError is a mistake in how oncelog was called.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// help names the command that explains how it should have been called.
func (e *usageError) help(command *kong.Context) string {
	words := []string{"oncelog"}
	if parseError, ok := e.err.(*kong.ParseError); ok { //nolint:errorlint // kong returns it as it is
		command = parseError.Context
	}
	if command != nil {
		for _, p := range command.Path {
			if p.Command != nil {
				words = append(words, p.Command.Name)
			}
		}
	}
	return strings.Join(append(words, "--help"), " ")
}

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// isTerminal reports whether somebody is looking at w.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
