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

	"github.com/espalier-dev/espalier/cmd/internal/report"
)

// The exit codes: nothing found, findings, and a command that failed.
const (
	ExitNothing  = 0
	ExitFindings = 1
	ExitFailed   = 2
)

// errFindings ends a command that has findings, which are reported already.
var errFindings = errors.New("findings")

// App is what all commands share.
type App struct {
	Name string // of the program as the user calls it
	In   io.Reader
	Out  io.Writer
	Err  io.Writer

	format   string
	color    string
	severity string
	config   string
	gate     gate

	oneLarge sync.Mutex // held while a large file is worked on
}

// Command makes a subcommand.
type Command func(*App) *cobra.Command

// commands are those of the program espalier, in the order of the help.
var commands = []Command{
	newCheck,
	newValidate,
	newPrune,
	newDefault,
	newAdmit,
	newConvert,
	newExplain,
	newDiff,
	newPlan,
	newFix,
	newCost,
	newSchema,
	newMigrate,
	newTenant,
	newEtcd,
	newDoctor,
	newTop,
	newChecks,
	newLSP,
	newWebhook,
	serverCommand("dev", DevShort),
	serverCommand("serve", ServeShort),
	serverCommand("envtest", EnvtestShort),
	NewVersion,
	NewMan,
}

// The help lists commands in the order of the work.
func init() { cobra.EnableCommandSorting = false }

// Main runs the program espalier with the arguments after its name and returns its
// exit code.
func Main(ctx context.Context, program string, args []string, in io.Reader, out, errOut io.Writer) int {
	a := New(program, in, out, errOut)
	return a.Run(ctx, args, newRoot(a), commands...)
}

// New returns what the commands of a program share. The program is the zeroth argument.
func New(program string, in io.Reader, out, errOut io.Writer) *App {
	return &App{Name: programName(program), In: in, Out: out, Err: errOut}
}

// CalledAs takes the name that another program calls this one by from its arguments.
func (a *App) CalledAs(args []string) []string {
	if len(args) == 0 {
		return args
	}
	name, ok := strings.CutPrefix(args[0], calledAs)
	if !ok {
		return args
	}
	a.Name = name
	return args[1:]
}

// Run runs one of the commands and returns the exit code. The root command says what
// the program is.
func (a *App) Run(ctx context.Context, args []string, root *cobra.Command, commands ...Command) int {
	a.complete(root, commands)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return ExitNothing
	case errors.Is(err, errFindings):
		return ExitFindings
	}
	fmt.Fprintf(a.Err, "%s: %v\n", a.Name, err)
	return ExitFailed
}

// programName is how users call the program: linked as kubectl-espalier it is a
// plugin of kubectl.
func programName(program string) string {
	base := strings.TrimSuffix(filepath.Base(program), ".exe")
	if plugin, ok := strings.CutPrefix(base, "kubectl-"); ok {
		return "kubectl " + plugin
	}
	if base == serverProgram {
		return serverProgram
	}
	return "espalier"
}

// newRoot describes the program espalier.
func newRoot(a *App) *cobra.Command {
	return &cobra.Command{
		Short: "Check CRDs and custom resources as an API server does, without a cluster",
		Long: `Espalier reports what an API server would refuse in CustomResourceDefinitions
(CRDs) and custom resources, with the line, the reason and the fix. It needs no
cluster and no network.

Exit codes: 0 nothing found, 1 findings, 2 could not run.`,
		Example: a.Example(`
  # Check the CRDs of a folder
  %[1]s check config/crd

  # Validate an object
  %[1]s validate --crd config/crd my-object.yaml

  # Find out what a change to a CRD breaks, and for whom
  %[1]s diff old.yaml new.yaml`),
	}
}

// complete gives a root command its subcommands and what the programs have in common.
func (a *App) complete(root *cobra.Command, commands []Command) {
	root.Use = a.Name
	root.Version = Version()
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Args = knownCommand
	root.SuggestionsMinimumDistance = 2
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	if strings.Contains(a.Name, " ") {
		root.Use = "kubectl-espalier"
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: a.Name}
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = false
	flags := root.PersistentFlags()
	flags.StringVar(&a.color, "color", "auto", "colours in text: auto (on a terminal, unless NO_COLOR is set), always or never")
	flags.StringVar(&a.config, "config", "", "settings file (default: the nearest "+settingsName+" in this folder or above; \"none\" for no settings)")
	fileFlags(root, "config")
	Must(root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp)))
	for _, command := range commands {
		root.AddCommand(command(a))
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath())
	})
}

// knownCommand refuses arguments of the program itself: they are mistyped commands.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		hint = ": did you mean " + near[0] + "?"
	}
	return fmt.Errorf("there is no command %q%s\nSee '%s --help'", args[0], hint, root.CommandPath())
}

// Must is for errors that a mistake in this package alone can cause.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Example fills the program's name into an example.
func (a *App) Example(text string) string {
	return strings.TrimLeft(strings.ReplaceAll(text, "%[1]s", a.Name), "\n")
}

// reportFlags are for commands that report diagnostics.
func (a *App) reportFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.format, "output", "o", "text", "output format: "+strings.Join(report.Formats, ", "))
	cmd.Flags().StringVar(&a.severity, "severity", "warning", "report findings of at least this severity: error, warning or info")
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(report.Formats, cobra.ShellCompDirectiveNoFileComp)))
	Must(cmd.RegisterFlagCompletionFunc("severity", cobra.FixedCompletions([]string{"error", "warning", "info"}, cobra.ShellCompDirectiveNoFileComp)))
}

// takesFiles has a command run on the files that its arguments name, or -f, for those used to kubectl.
func takesFiles(cmd *cobra.Command, run func(ctx context.Context, files []string) error) {
	var named []string
	cmd.Flags().StringSliceVarP(&named, "filename", "f", nil, "file, folder, pattern or - for standard input; the same as an argument")
	cmd.ValidArgsFunction = completeFiles
	fileFlags(cmd, "filename")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all := append(append([]string{}, args...), named...)
		if len(all) == 0 {
			return fmt.Errorf("no files given: name files, folders or - for standard input\nSee '%s --help'", cmd.CommandPath())
		}
		return run(cmd.Context(), all)
	}
}

// Colored reports whether to write colours to out.
func (a *App) Colored() (bool, error) {
	switch a.color {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return os.Getenv("NO_COLOR") == "" && IsTerminal(a.Out), nil
	}
	return false, fmt.Errorf("--color is auto, always or never, not %q", a.color)
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
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
