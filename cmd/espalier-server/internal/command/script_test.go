package command

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/cmd/internal/scripttest"
)

var update = flag.Bool("update", false, "rewrite what the scripts and the guides expect")

// TestMain makes this test binary the programs themselves when it is called by their
// names. As for users, espalier runs espalier-server.
func TestMain(m *testing.M) {
	// The key of `espalier dev` is not the developer's own.
	if _, set := os.LookupEnv("XDG_STATE_HOME"); !set {
		cli.Must(os.Setenv("XDG_STATE_HOME", filepath.Join(os.TempDir(), "espalier-test-state")))
	}
	program := func(main func(context.Context, string, []string, io.Reader, io.Writer, io.Writer) int) func() {
		return func() {
			os.Exit(main(context.Background(), os.Args[0], os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		}
	}
	testscript.Main(m, map[string]func(){"espalier": program(cli.Main), "kubectl-espalier": program(cli.Main), "espalier-server": program(Main)})
}

// TestGoldenScripts runs the scenarios in testdata/script. Under the race detector, with -short, it does not: they
// start the programs very often.
func TestGoldenScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts the programs very often: it runs without the race detector")
	}
	scripttest.Run(t, "testdata/script", nil, *update, liveCommands(t))
}
