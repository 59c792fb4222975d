package cli

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect")

// TestMain makes this test binary the program itself when it is called by the
// program's name, linked as a plugin of kubectl too.
func TestMain(m *testing.M) {
	// The key of `espalier dev` is not the developer's own.
	if _, set := os.LookupEnv("XDG_STATE_HOME"); !set {
		must(os.Setenv("XDG_STATE_HOME", filepath.Join(os.TempDir(), "espalier-test-state")))
	}
	program := func() {
		os.Exit(Main(context.Background(), os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){"espalier": program, "kubectl-espalier": program})
}

// TestGoldenScripts runs the scenarios in testdata/script. Beside the commands
// of testscript they have
//
//	exits CODE espalier ARGUMENTS...
//
// which is exec and demands the exit code.
//
// With -short, which is for the race detector, only those run whose commands do
// several things at a time: the others start the program a hundred times.
func TestGoldenScripts(t *testing.T) {
	dir, files := "testdata/script", []string(nil)
	if testing.Short() {
		dir, files = "", []string{"testdata/script/check.txtar", "testdata/script/validate.txtar", "testdata/script/diff.txtar"}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGUMENTS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, not %d", got, want)
	}
}
