package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// serverProgram has the commands that run an API server. It is a program of its own, so that the offline
// commands do not pay for what it links: it is three times as large.
const serverProgram = "espalier-server"

// What the commands of the server's program do, in one line: both programs list them.
const (
	DevShort     = "Run a control plane on this machine, without setup"
	ServeShort   = "Run an API server for CRDs and their objects on etcd"
	EnvtestShort = "Create a folder of programs for controller-runtime's envtest"
)

// calledAs is the first argument of the server's program when another program runs it: the name for its help.
const calledAs = "--called-as="

// serverCommand makes a command that the server's program runs, with all arguments as they are.
func serverCommand(name, short string) Command {
	return func(a *App) *cobra.Command {
		cmd := &cobra.Command{
			Use:   name,
			Short: short,
			Long: fmt.Sprintf(`%s

The program %s runs this command. Install it in the folder of this program
or in the PATH.`, short, serverProgram),
			Example:            a.Example("  %[1]s " + name + " --help"),
			DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.runServer(cmd.Context(), append([]string{name}, args...))
			},
		}
		help := cmd.HelpFunc()
		cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
			if _, err := findServer(); err != nil {
				help(cmd, args)
				return
			}
			if err := a.runServer(cmd.Context(), []string{name, "--help"}); err != nil {
				fmt.Fprintf(a.Err, "%s: %v\n", a.Name, err)
			}
		})
		return cmd
	}
}

// runServer runs the server's program in the place of this one.
func (a *App) runServer(ctx context.Context, args []string) error {
	path, err := findServer()
	if err != nil {
		return fmt.Errorf("'%s %s' needs the program %s, which is neither in the folder of this program nor in the PATH\n"+
			"Install it: go install github.com/espalier-dev/espalier/cmd/%[3]s@%[4]s", a.Name, args[0], serverProgram, installVersion())
	}
	return replaceProcess(ctx, path, slices.Concat([]string{path, calledAs + a.Name}, args))
}

// findServer returns the path of the server's program: in the folder of this program, since they are released together,
// or in the PATH.
func findServer() (string, error) {
	name := ProgramFile(serverProgram)
	self, err := os.Executable()
	if err != nil {
		return exec.LookPath(name)
	}
	if target, err := filepath.EvalSymlinks(self); err == nil {
		self = target
	}
	if sibling, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
		return sibling, nil
	}
	return exec.LookPath(name)
}

// ProgramFile is the name of a program's file.
func ProgramFile(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// installVersion is the version that belongs to this program, for go install.
func installVersion() string {
	if version := Version(); strings.HasPrefix(version, "v") && !strings.Contains(version, "-") {
		return version
	}
	return "latest"
}
