package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/espalier-dev/espalier/internal/report"
)

// The exit codes.
const (
	exitNothing  = 0
	exitFindings = 1
	exitFailed   = 2
)

// errFindings ends a command that has findings, which are reported already.
var errFindings = errors.New("findings")

// app is what all commands share.
type app struct {
	name string // of the program as the user calls it
	in   io.Reader
	out  io.Writer
	err  io.Writer

	format   string
	color    string
	severity string
	config   string

	oneLarge sync.Mutex // held while a large file is worked on
}

// commands make the subcommands, in the order of the help.
var commands = []func(*app) *cobra.Command{
	newCheck,
	newValidate,
	newPrune,
	newDefault,
	newAdmit,
	newExplain,
	newDiff,
	newFix,
	newCost,
	newSchema,
	newRules,
	newDev,
	newTolerantServe,
	newEnvtest,
	newVersion,
}

// The help lists commands in the order of the work.
func init() { cobra.EnableCommandSorting = false }

// Main runs the program with the arguments after its name and returns its exit
// code.
func Main(ctx context.Context, program string, args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{name: programName(program), in: in, out: out, err: errOut}
	if run := disguise(program); run != nil {
		return run(ctx, a, args)
	}
	return a.run(ctx, args)
}

// run runs a command.
func (a *app) run(ctx context.Context, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitNothing
	case errors.Is(err, errFindings):
		return exitFindings
	}
	fmt.Fprintf(a.err, "%s: %v\n", a.name, err)
	return exitFailed
}

// programName is how users call the program: linked as kubectl-espalier it is a
// plugin of kubectl.
func programName(program string) string {
	base := strings.TrimSuffix(filepath.Base(program), ".exe")
	if plugin, ok := strings.CutPrefix(base, "kubectl-"); ok {
		return "kubectl " + plugin
	}
	return "espalier"
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   a.name,
		Short: "The API server's verdict on CustomResourceDefinitions and custom resources, offline",
		Long: `Espalier says what an API server would say about CustomResourceDefinitions and
custom resources, with the line, the reason and the fix. It needs no cluster and
no network.

Exit codes: 0 nothing found, 1 findings, 2 could not run.`,
		Example: a.example(`
  # Everything a server would refuse in the CRDs of a folder, and advice
  %[1]s check config/crd

  # What a server would answer for an object
  %[1]s validate --crd config/crd my-object.yaml

  # What a change of a CRD breaks, and for whom
  %[1]s diff old.yaml new.yaml`),
		Version:       Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	if strings.Contains(a.name, " ") {
		root.Use = "kubectl-espalier"
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: a.name}
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = false
	flags := root.PersistentFlags()
	flags.StringVar(&a.color, "color", "auto", "colours in text: auto (on a terminal, unless NO_COLOR is set), always or never")
	flags.StringVar(&a.config, "config", "", "settings file (default: the nearest "+settingsName+" in this folder or above; \"none\" for no settings)")
	must(root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp)))
	for _, command := range commands {
		root.AddCommand(command(a))
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath())
	})
	return root
}

// must is for errors that a mistake in this package alone can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// example fills the program's name into an example.
func (a *app) example(text string) string {
	return strings.TrimLeft(strings.ReplaceAll(text, "%[1]s", a.name), "\n")
}

// reportFlags are for commands that report diagnostics.
func (a *app) reportFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.format, "output", "o", "text", "output format: "+strings.Join(report.Formats, ", "))
	cmd.Flags().StringVar(&a.severity, "severity", "warning", "report what is at least this severe: error, warning or info")
	must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(report.Formats, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("severity", cobra.FixedCompletions([]string{"error", "warning", "info"}, cobra.ShellCompDirectiveNoFileComp)))
}

// filenameFlag adds -f, for those used to kubectl; files are arguments too.
func filenameFlag(cmd *cobra.Command, into *[]string) {
	cmd.Flags().StringSliceVarP(into, "filename", "f", nil, "file, folder, pattern or - for standard input; the same as an argument")
}

// paths joins arguments and -f, and asks for at least one.
func paths(cmd *cobra.Command, args, filenames []string) ([]string, error) {
	all := append(append([]string{}, args...), filenames...)
	if len(all) == 0 {
		return nil, fmt.Errorf("which files? Name files, folders or - for standard input\nSee '%s --help'", cmd.CommandPath())
	}
	return all, nil
}

// colored reports whether to write colours to out.
func (a *app) colored() (bool, error) {
	switch a.color {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return os.Getenv("NO_COLOR") == "" && isTerminal(a.out), nil
	}
	return false, fmt.Errorf("--color is auto, always or never, not %q", a.color)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// release is set when a release is built.
var release string

// Version returns the version of the program.
func Version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "development"
}
