package cli

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/espalier-dev/espalier/cmd/internal/scripttest"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect, and what pages repeat of the tables")

// TestMain makes this test binary the program itself when it is called by the
// program's name, linked as a plugin of kubectl too.
func TestMain(m *testing.M) {
	program := func() {
		os.Exit(Main(context.Background(), os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testscript.Main(m, map[string]func(){"espalier": program, "kubectl-espalier": program})
}

// TestGoldenScripts runs the scenarios in testdata/script.
//
// With -short, which is for the race detector, only those run whose commands do
// several things at a time: the others start the program a hundred times.
func TestGoldenScripts(t *testing.T) {
	dir, files := "testdata/script", []string(nil)
	if testing.Short() {
		dir, files = "", []string{"testdata/script/check.txtar", "testdata/script/validate.txtar", "testdata/script/diff.txtar"}
	}
	scripttest.Run(t, dir, files, *update, nil)
}
