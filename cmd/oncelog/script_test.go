package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the transcripts in testdata against the real command. They have
// these commands besides those of testscript:
//
//	server start [flags]   starts a server on $WORK/data; its URL is in $ONCELOG_URL
//	server stop            SIGTERM, must end with code 0
//	server kill            SIGKILL
//	exits CODE oncelog …   runs a command that must end with the code
//
// At the end of each, `oncelog check` must find nothing in $WORK/data.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			tb, ok := env.T().(testing.TB)
			if !ok {
				return os.ErrInvalid
			}
			env.Values["gateway"] = &gateway{
				tb: tb, data: filepath.Join(env.WorkDir, "data"), listen: ownAddress(tb), dir: env.WorkDir,
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"server": serverCommand,
			"exits":  exitsCommand,
		},
	})
}

func serverCommand(ts *testscript.TestScript, neg bool, args []string) {
	g, ok := ts.Value("gateway").(*gateway)
	if !ok || neg || len(args) == 0 {
		ts.Fatalf("usage: server start [flags] | stop | kill")
	}
	switch args[0] {
	case "start":
		first := g.cmd == nil
		g.flags = args[1:]
		g.start()
		ts.Setenv("ONCELOG_URL", g.url)
		if first {
			ts.Defer(g.finish)
		}
	case "stop":
		g.stop()
	case "kill":
		g.kill()
	default:
		ts.Fatalf("unknown: server %s", args[0])
	}
}

func exitsCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command [args]")
	}
	code := exitOK
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, not %s", code, args[0])
	}
}
