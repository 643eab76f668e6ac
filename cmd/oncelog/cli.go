package main

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// cli is the command line: what kong makes flags, environment variables, keys of the
// config file and help of.
type cli struct {
	Config configFile `env:"ONCELOG_CONFIG" placeholder:"FILE" help:"JSON file with values for settings."`

	Serve     serveCmd     `cmd:"" help:"Run the server."`
	Topic     topicCmd     `cmd:"" help:"Create, list, describe and delete topics."`
	Produce   produceCmd   `cmd:"" help:"Append the lines of standard input to a topic, each of them exactly once."`
	Consume   consumeCmd   `cmd:"" help:"Print the records of a topic."`
	Producers producersCmd `cmd:"" help:"Show what the server knows of producers."`
	Snapshots snapshotsCmd `cmd:"" help:"List, take, show, verify and delete snapshots of producer state."`
	Bench     benchCmd     `cmd:"" help:"Measure a server: rates, latencies, fsyncs, and what a retry costs."`
	Token     tokenCmd     `cmd:"" help:"Make, list and revoke tokens of a server."`
	Verify    verifyCmd    `cmd:"" help:"Prove what a running server has stored."`
	Backup    backupCmd    `cmd:"" help:"Copy the store of a running server to a file."`
	Restore   restoreCmd   `cmd:"" help:"Make a data directory of a backup."`
	Check     checkCmd     `cmd:"" help:"Check a data directory that no server is using."`
	Compact   compactCmd   `cmd:"" help:"Give space back in a data directory that no server is using."`
	Health    healthCmd    `cmd:"" help:"Ask a server whether it takes appends."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
	BenchPeer benchPeerCmd `cmd:"" hidden:"" help:"The other side of bench --compare."`
}

const description = "An HTTP gateway in front of an idempotent, partitioned log."

// Help is what follows the description in the help of oncelog itself.
func (cli) Help() string {
	return `Settings, which are the flags of serve and whatever else has a $ONCELOG_ name in its help, can also be given as that environment variable (--max-body-bytes: ONCELOG_MAX_BODY_BYTES), or as a key of the JSON file that --config names ({"max-body-bytes": "16MiB"}). A flag wins over the environment, the environment over the file. What a single command is to do, such as --topic or --output, is said on the command line only.

Exit codes: 0 done; 1 failed, or not all of it done; 2 bad flags, environment or config file. Some commands have more, which are in their help.

Numbers of bytes may have a unit: 64KiB, 16MiB, 1GiB. Times have one: 100ms, 30s, 24h.`
}

// parse reads args, environment and config file. help reports that help was asked for
// and printed. The command is not nil when err names flags of a known command.
func parse(args []string, std *stdio) (command *kong.Context, help bool, err error) {
	parser, err := kong.New(&cli{},
		kong.Name("oncelog"),
		kong.Description(description),
		kong.PostBuild(nameSettings),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Writers(std.out, std.err),
		// kong calls this after printing help, and then goes on parsing.
		kong.Exit(func(int) { help = true }),
	)
	if err != nil {
		return nil, false, err
	}
	if len(args) == 0 {
		return nil, false, explainNothing(parser, std)
	}
	command, err = parser.Parse(joinNegative(args))
	return command, help, err
}

// explainNothing prints the help for somebody who has typed the bare name. It goes to
// standard error, and the code is that of a usage error: a script whose variable with
// the command is empty must not take that for success.
func explainNothing(parser *kong.Kong, std *stdio) error {
	trace, err := kong.Trace(parser, nil)
	if err != nil {
		return err
	}
	parser.Stdout = std.err
	if err := trace.PrintUsage(false); err != nil {
		return err
	}
	return errNoCommand
}

var errNoCommand = errors.New("no command is given")

// joinNegative turns --from -5 into --from=-5: kong would take -5 for a flag, and there
// is none whose name is a number.
func joinNegative(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...)
		}
		if i+1 < len(args) && isBareFlag(args[i]) && isNegative(args[i+1]) {
			joined = append(joined, args[i]+"="+args[i+1])
			i++
			continue
		}
		joined = append(joined, args[i])
	}
	return joined
}

func isBareFlag(arg string) bool {
	return len(arg) > 2 && strings.HasPrefix(arg, "--") && !strings.Contains(arg, "=")
}

func isNegative(arg string) bool {
	n, err := strconv.ParseInt(arg, 10, 64)
	return err == nil && n < 0
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
