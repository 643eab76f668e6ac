// Command oncelog is an HTTP gateway in front of an idempotent, partitioned log, and
// the client, inspector and checker that go with it. `oncelog --help` is its manual.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes. Scripts rely on them.
const (
	exitOK      = 0
	exitFailure = 1 // what was asked for could not be done, or not all of it
	exitUsage   = 2 // what was asked for makes no sense: flags, environment, config file

	// Of commands that look at what is stored; when they cannot for any other reason, they
	// end with exitFailure.
	exitDamaged = 3 // problems were found
	exitInUse   = 4 // another process has the directory open
	exitMissing = 5 // there is no store in the directory
)

// exitError is a failure that has an exit code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals // whoever asks twice does not want to wait
		os.Exit(exitFailure)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run does what args ask for and returns the exit code. It reads the environment
// variables named in the help. When ctx ends, it finishes what it must and returns.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	std := &stdio{in: stdin, out: stdout, err: stderr}
	command, help, err := parse(args, std)
	if help {
		return exitOK
	}
	if err == nil {
		command.BindTo(ctx, (*context.Context)(nil))
		err = command.Run(std)
	} else {
		err = &usageError{err: err}
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "oncelog: %v\n", err)
	if usage, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(stderr, "oncelog: see %s\n", usage.help(command))
		return exitUsage
	}
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	return exitFailure
}
